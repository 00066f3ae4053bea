//! The schema of `[auth]`.

use serde_json::{Value, json};
use toolhub_core::Role;

use super::{count, described, duration, flag, list, map, one_of, requiring, table, text, texts};

pub(super) fn auth() -> Value {
    table(
        "Who may connect, and who may call what",
        [
            ("resource", text("Public URL of this gateway, which tokens of `issuers` must be issued for")),
            ("issuers", list("Identity providers whose tokens are accepted", issuer())),
            ("tokens", list("Keys. Without any key and issuer, only this machine can connect", token())),
            ("rules", list("Rules. Once there is one, what no rule allows is forbidden", rule())),
            ("hold", duration("How long a held call waits for a decision (default: 1h)")),
        ],
    )
}

pub(super) fn audit() -> Value {
    table(
        "The audit log",
        [
            (
                "enabled",
                flag(
                    "Append every call, refusal and change to the audit log (default: true with keys or issuers)",
                ),
            ),
            ("keep", duration("How long records are kept (default: 400d)")),
        ],
    )
}

fn role(description: &str) -> Value {
    let names: Vec<&str> = Role::ALL.into_iter().map(Role::name).collect();
    described(json!({"type": "array", "items": one_of(&names, "A role")}), description)
}

fn token() -> Value {
    let digest = described(
        json!({"type": "string", "pattern": "^[0-9A-Fa-f]{64}$"}),
        "SHA-256 of the key, 64 hexadecimal digits",
    );
    let token = table(
        "A key; `toolhub keys new NAME` writes these lines",
        [
            ("name", text("Name of the person or program")),
            ("sha256", digest),
            ("roles", role("Its roles (default: caller)")),
            ("profiles", texts("Profiles that it opens (default: all)")),
            ("expires", text("Date or time from which it is refused, such as 2027-01-31")),
            ("per_day", count(1, "Maximum number of calls per day, UTC")),
            (
                "revoked",
                text(
                    "When the key was revoked, which `toolhub keys revoke` writes: it is refused, and no other key may have its name",
                ),
            ),
        ],
    );
    let mut token = requiring(token, &["name"]);
    token["anyOf"] = json!([{"required": ["sha256"]}, {"required": ["revoked"]}]);
    token
}

fn issuer() -> Value {
    let condition = json!({"type": "string", "pattern": "^(\\*|groups:.+|scope:.+)$"});
    let conditions = json!({"anyOf": [condition, {"type": "array", "items": condition}]});
    let introspection = requiring(
        table(
            "Client of this gateway at the provider, with which opaque tokens are checked (RFC 7662)",
            [
                ("client_id", text("Id of the client")),
                ("client_secret", text("Its secret; `${VAR}` is filled in")),
                ("endpoint", text("Introspection endpoint (default: from the provider's metadata)")),
            ],
        ),
        &["client_id", "client_secret"],
    );
    let issuer = table(
        "An identity provider",
        [
            ("url", text("Issuer URL, exactly as in the claim `iss`")),
            ("client_id", text("Id of the hub at the provider, for the login at the console")),
            ("client_secret", text("Its secret; `${VAR}` is filled in; a public client has none")),
            (
                "roles",
                map("Who gets which role: `*`, `groups:NAME`, `scope:NAME`, or a list of those", conditions),
            ),
            ("groups_claim", text("Claim that lists the groups (default: groups)")),
            ("typ", texts("Accepted values of the token header `typ` (default: at+jwt)")),
            ("audiences", texts("Further accepted audiences; such a token opens every profile")),
            ("private_network", flag("URLs in its metadata may be in a private network (default: false)")),
            ("introspection", introspection),
        ],
    );
    requiring(issuer, &["url"])
}

fn rule() -> Value {
    let hints = table(
        "Effect hints of tools",
        [
            ("read_only", flag("Changes nothing")),
            ("destructive", flag("May delete or overwrite")),
            ("idempotent", flag("Repeating it has no further effect")),
            ("open_world", flag("Reaches systems outside")),
        ],
    );
    let kinds = json!({"type": "array", "items": {"enum": ["tool", "prompt", "resource", "skill"]}});
    let rule = table(
        "A rule. Every given selector must match",
        [
            ("name", text("Name in the audit log and in explanations")),
            ("effect", one_of(&["allow", "ask", "forbid"], "`forbid` beats `ask`, which beats `allow`")),
            ("roles", role("Principals with one of these roles")),
            ("groups", texts("Principals in one of these groups")),
            ("principals", texts("These principals: `local`, `key:NAME`, `oidc:ISSUER#SUBJECT`")),
            ("profiles", texts("Through these profiles")),
            ("servers", texts("Items of these sources: `native`, `skill` or a server; `*` is any text")),
            ("tools", texts("Items with these names; `*` is any text")),
            ("tags", texts("Tools with one of these tags")),
            ("hints", hints),
            ("kinds", described(kinds, "Kinds of items")),
            (
                "arguments",
                described(json!({"type": "object"}), "JSON Schema that the arguments of the call match"),
            ),
            ("scope", text("Scopes that an access token needs, separated by spaces")),
        ],
    );
    requiring(rule, &["effect"])
}
