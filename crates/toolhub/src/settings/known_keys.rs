//! Reports unknown keys in `toolhub.toml`, which are most likely typing errors. They are warnings, not errors, since a newer
//! version may define them.

use std::ops::Range;
use std::path::Path;

use toml_edit::{Document, Item, TableLike};
use toolhub_client_config::ConfigError;
use toolhub_core::Localize as _;
use toolhub_core::lang::LocalizedText;
use toolhub_engine::similar_names;

/// Tables whose entries have user-defined names. The keys of agents and profiles are checked separately.
const USER_NAMED_TABLES: [&str; 3] = ["agents", "profiles", "tags"];
const TABLES: [(&str, &[&str]); 18] = [
    (
        "serve",
        &[
            "bind",
            "hosts",
            "origins",
            "body_bytes",
            "max_concurrent",
            "per_second",
            "fast_path",
            "header_timeout",
            "drain",
            "limits",
            "access_log",
        ],
    ),
    ("auth", &["resource", "issuers", "tokens", "rules", "hold"]),
    ("audit", &["enabled", "keep"]),
    ("telemetry", &["enabled", "otlp", "service", "sampling"]),
    ("llm", &["enabled", "url", "model", "api", "key", "tool_calls", "timeout", "max_tokens", "temperature"]),
    ("routing", &["order", "batch", "strategies", "equivalent"]),
    ("limits", &["call", "call_cap", "connect", "starts", "result"]),
    ("approvals", &["pin"]),
    ("native", &["folders", "enabled", "disabled"]),
    ("search", &["model"]),
    (
        "store",
        &[
            "url",
            "durability",
            "required",
            "keep_calls",
            "keep_results",
            "result_bytes",
            "max_size",
            "detail",
        ],
    ),
    ("skills", &["enabled", "folders", "grants", "allow_missing", "python"]),
    ("openai", &["enabled", "approved_tools", "keep", "max_size"]),
    (
        "script",
        &[
            "enabled",
            "cpu",
            "time",
            "memory",
            "calls",
            "concurrent_calls",
            "output",
            "max_running",
            "warm_hosts",
        ],
    ),
    (
        "cluster",
        &["nats", "prefix", "credentials", "authorities", "lease", "scripts", "skills", "session_keys"],
    ),
    ("worker", &["labels", "capacity", "scripts", "skills"]),
    ("web_search", &["provider", "url", "api_key"]),
    (
        "servers",
        &[
            "id",
            "enabled",
            "era",
            "connect_timeout",
            "call_timeout",
            "idle_timeout",
            "credentials",
            "instances",
            "labels",
            "max_instances",
            "roots",
            "tools",
            "disabled_tools",
            "env_pass",
            "hints",
            "tags",
            "pin",
            "oauth",
            "sandbox",
        ],
    ),
];
const SERVE_LIMITS: [&str; 9] = [
    "sessions",
    "streams",
    "pending_input",
    "subscriptions",
    "upload_bytes",
    "unread_bytes",
    "replay_bytes",
    "unproven_connections",
    "write_timeout",
];
const AGENT: [&str; 8] =
    ["model", "instructions", "tools", "mode", "rounds", "time", "tokens", "prompt_tokens"];
const PROFILE: [&str; 10] = [
    "servers",
    "tools",
    "allow",
    "deny",
    "tags",
    "expose",
    "pinned",
    "coerce_arguments",
    "lossless",
    "overrides",
];
const OAUTH: [&str; 8] = [
    "client_id",
    "client_secret",
    "client_metadata_url",
    "issuer",
    "private_network",
    "scopes",
    "redirect_port",
    "grant",
];
const SANDBOX: [&str; 7] =
    ["read", "write", "network", "unix_sockets", "limits", "isolation", "allow_missing"];
const SANDBOX_LIMITS: [&str; 6] = ["memory", "cpu", "processes", "open_files", "file_size", "disk"];
const HINTS: [&str; 8] = [
    "read_only",
    "destructive",
    "idempotent",
    "open_world",
    "readOnlyHint",
    "destructiveHint",
    "idempotentHint",
    "openWorldHint",
];

/// Keys that were renamed, with their present names. The settings still read the old ones.
const RENAMED: [(&str, &str); 3] =
    [("at_once", "max_concurrent"), ("way", "mode"), ("mend_arguments", "coerce_arguments")];

/// The unknown and the renamed keys in the text.
pub(super) fn unknown_keys(file: &Path, text: &str) -> Vec<LocalizedText> {
    let Ok(document) = Document::parse(text) else { return Vec::new() };
    let mut checker = KeyChecker { file, text, notes: Vec::new() };
    let tables: Vec<&str> = TABLES.iter().map(|(name, _)| *name).chain(USER_NAMED_TABLES).collect();
    checker.check(document.as_table(), &tables);
    for (name, keys) in TABLES {
        match document.get(name) {
            Some(Item::ArrayOfTables(tables)) => tables.iter().for_each(|table| checker.table(table, keys)),
            Some(item) => {
                if let Some(table) = item.as_table_like() {
                    checker.table(table, keys);
                }
            }
            None => {}
        }
    }
    for (name, keys) in [("agents", &AGENT[..]), ("profiles", &PROFILE)] {
        let named = document.get(name).and_then(Item::as_table_like);
        for (_, one) in named.into_iter().flat_map(TableLike::iter) {
            if let Some(table) = one.as_table_like() {
                checker.check(table, keys);
            }
        }
    }
    let limits = document.get("serve").and_then(|serve| serve.get("limits")?.as_table_like());
    if let Some(limits) = limits {
        checker.check(limits, &SERVE_LIMITS);
    }
    let grants = document.get("skills").and_then(|skills| skills.get("grants")?.as_table_like());
    for (_, item) in grants.into_iter().flat_map(TableLike::iter) {
        if let Some(table) = item.as_table_like() {
            checker.check(table, &toolhub_skills::GRANT_KEYS);
        }
    }
    checker.notes
}

/// The keys of `[[servers]]` beside its `id`.
pub(super) fn server_keys() -> impl Iterator<Item = &'static str> + Clone {
    let keys = TABLES.into_iter().find(|(table, _)| *table == "servers").map_or(&[][..], |(_, keys)| keys);
    keys.iter().copied().filter(|key| *key != "id")
}

/// The only table that has a key.
fn table_of(key: &str) -> Option<&'static str> {
    let tables = TABLES.into_iter().chain([("serve.limits", &SERVE_LIMITS[..])]);
    let mut with = tables.filter(|(_, keys)| keys.contains(&key)).map(|(table, _)| table);
    with.next().filter(|_| with.next().is_none())
}

/// Finds tokens in a wrong table, where they would be ignored and the gateway would accept everyone.
pub(super) fn misplaced_tokens(text: &str) -> Option<(usize, LocalizedText)> {
    let document = Document::parse(text).ok()?;
    let table = document.as_table();
    let name = ["tokens", "token"].into_iter().find(|name| table.contains_key(name))?;
    let span = table.key(name).and_then(|key| key.span()).or_else(|| table.get(name)?.span());
    let what = LocalizedText::new(
        format!("`{name}` is not read here, so that no token would be required: write `[[auth.tokens]]`"),
        format!("`{name}` 写在这里不起作用，任何人都无需令牌：请写成 `[[auth.tokens]]`"),
    );
    Some((span.map_or(0, |span| span.start), what))
}

struct KeyChecker<'a> {
    file: &'a Path,
    text: &'a str,
    notes: Vec<LocalizedText>,
}

impl KeyChecker<'_> {
    fn table(&mut self, table: &dyn TableLike, keys: &[&str]) {
        self.check(table, keys);
        if let Some(oauth) = table.get("oauth").and_then(Item::as_table_like) {
            self.check(oauth, &OAUTH);
        }
        if let Some(sandbox) = table.get("sandbox").and_then(Item::as_table_like) {
            self.check(sandbox, &SANDBOX);
            if let Some(limits) = sandbox.get("limits").and_then(Item::as_table_like) {
                self.check(limits, &SANDBOX_LIMITS);
            }
        }
        let hints = table.get("hints").and_then(Item::as_table_like);
        for (_, item) in hints.into_iter().flat_map(TableLike::iter) {
            if let Some(hints) = item.as_table_like() {
                self.check(hints, &HINTS);
            }
        }
    }

    fn check(&mut self, table: &dyn TableLike, known_keys: &[&str]) {
        for (name, item) in table.iter() {
            if known_keys.contains(&name) {
                continue;
            }
            let span = table.key(name).and_then(|key| key.span()).or_else(|| item.span());
            let renamed = RENAMED.iter().find(|(old, new)| *old == name && known_keys.contains(new));
            if let Some((_, new)) = renamed {
                let what = LocalizedText::new(
                    format!("`{name}` is called `{new}` now; the old name still works"),
                    format!("`{name}` 已改名为 `{new}`；旧名称仍然有效"),
                );
                self.note(span, what);
                continue;
            }
            let suggestion = similar_names(name, known_keys.iter().copied(), 1).pop();
            let (en, zh) = match suggestion {
                Some(suggestion) => {
                    (format!("; did you mean `{suggestion}`?"), format!("；是否想用 `{suggestion}`？"))
                }
                None => match table_of(name) {
                    Some(table) => (format!("; it belongs to `[{table}]`"), format!("；它属于 `[{table}]`")),
                    None => (String::new(), String::new()),
                },
            };
            let what = LocalizedText::new(
                format!("unknown setting `{name}`{en}"),
                format!("未知的配置项 `{name}`{zh}"),
            );
            self.note(span, what);
        }
    }

    fn note(&mut self, span: Option<Range<usize>>, what: LocalizedText) {
        let error = ConfigError::at(self.file, self.text, span.map_or(0, |span| span.start), what);
        let localize = |lang| error.localize(lang);
        self.notes
            .push(LocalizedText::new(localize(toolhub_core::Lang::En), localize(toolhub_core::Lang::Zh)));
    }
}

#[cfg(test)]
mod tests {
    use toolhub_core::Lang;

    use super::*;

    fn notes(text: &str) -> Vec<String> {
        unknown_keys(Path::new("t.toml"), text).iter().map(|note| note.localize(Lang::En)).collect()
    }

    #[test]
    fn reports_unknown_oauth_keys_in_any_table_form() {
        let check = |text: &str, expect: &[&str]| assert_eq!(notes(text), expect, "{text}");
        check(
            "[[servers]]\nid = \"a\"\noauth = { clientid = \"x\", scopes = [], foo = 1 }\n",
            &[
                "`t.toml`, line 3, column 11: unknown setting `clientid`; did you mean `client_id`?",
                "`t.toml`, line 3, column 40: unknown setting `foo`",
            ],
        );
        check(
            "[[servers]]\nid = \"a\"\n[servers.oauth]\nredirect_prot = 1\ngrant = \"x\"\n",
            &["`t.toml`, line 4, column 1: unknown setting `redirect_prot`; did you mean `redirect_port`?"],
        );
        let all: String = OAUTH.iter().map(|key| format!("oauth.{key} = 1\n")).collect();
        check(&format!("[[servers]]\nid = \"a\"\n{all}"), &[]);
    }

    #[test]
    fn accepts_renamed_keys_with_a_note() {
        let text = "[serve]\nat_once = 3\n[agents.a]\nway = \"plan\"\n[profiles.p]\nmend_arguments = true\n";
        let found = notes(text);
        for (old, new) in RENAMED {
            let note = format!("`{old}` is called `{new}` now; the old name still works");
            assert!(found.iter().any(|found| found.ends_with(&note)), "{old}: {found:?}");
        }
        assert_eq!(found.len(), RENAMED.len());
        let read: crate::settings::Settings = toml_edit::de::from_str(text).unwrap();
        assert_eq!(read.serve.max_concurrent, Some(3));
        assert_eq!(read.agents["a"].mode, Some(crate::settings::ModeName::Plan));
        assert!(read.profiles["p"].coerce_arguments);
    }

    #[test]
    fn names_correct_table_of_misplaced_key() {
        assert_eq!(
            notes("[serve]\nsessions = 3\n"),
            ["`t.toml`, line 2, column 1: unknown setting `sessions`; it belongs to `[serve.limits]`"]
        );
        assert!(misplaced_tokens("[[tokens]]\nname = \"a\"\n").is_some());
        assert!(misplaced_tokens("[[auth.tokens]]\nname = \"a\"\n").is_none());
    }

    #[test]
    fn reports_position_of_unknown_keys() {
        let text = "lang = \"zh\"\n[limits]\ncal = \"30s\"\n[limit]\n[llm]\nmodel = 1\n[[servers]]\nid = \"a\"\nhints = { x = { readonly = true } }\n";
        assert_eq!(
            notes(text),
            [
                "`t.toml`, line 1, column 1: unknown setting `lang`",
                "`t.toml`, line 4, column 2: unknown setting `limit`; did you mean `limits`?",
                "`t.toml`, line 3, column 1: unknown setting `cal`; did you mean `call`?",
                "`t.toml`, line 9, column 17: unknown setting `readonly`; did you mean `read_only`?",
            ]
        );
    }

    fn keys_of(schema: &serde_json::Value) -> Vec<String> {
        let mut keys: Vec<String> = schema["properties"].as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    }

    /// The schema has the same keys as the check for unknown keys.
    #[test]
    fn schema_has_every_key_and_no_other() {
        let schema = super::super::schema::schema();
        let mut expected: Vec<(&str, &serde_json::Value, Vec<&str>)> = Vec::new();
        let root = TABLES.iter().map(|(name, _)| *name).chain(USER_NAMED_TABLES).collect();
        expected.push(("", &schema, root));
        let tables = &schema["properties"];
        for (name, keys) in TABLES {
            let table = if tables[name]["type"] == "array" { &tables[name]["items"] } else { &tables[name] };
            expected.push((name, table, keys.to_vec()));
        }
        let server = &tables["servers"]["items"]["properties"];
        let sandbox = &server["sandbox"]["anyOf"][1];
        expected.extend([
            ("agents", &tables["agents"]["additionalProperties"], AGENT.to_vec()),
            ("profiles", &tables["profiles"]["additionalProperties"], PROFILE.to_vec()),
            ("serve.limits", &tables["serve"]["properties"]["limits"], SERVE_LIMITS.to_vec()),
            ("oauth", &server["oauth"], OAUTH.to_vec()),
            ("hints", &server["hints"]["additionalProperties"], HINTS.to_vec()),
            ("sandbox", sandbox, SANDBOX.to_vec()),
            ("sandbox.limits", &sandbox["properties"]["limits"], SANDBOX_LIMITS.to_vec()),
            (
                "skills.grants",
                &tables["skills"]["properties"]["grants"]["additionalProperties"],
                toolhub_skills::GRANT_KEYS.to_vec(),
            ),
        ]);
        for (name, schema, mut keys) in expected {
            keys.sort_unstable();
            assert_eq!(keys_of(schema), keys, "{name}");
            assert_eq!(schema["additionalProperties"], false, "{name}");
        }
    }
}
