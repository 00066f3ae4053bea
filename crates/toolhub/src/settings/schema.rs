//! The JSON Schema of `toolhub.toml`, for editors: every key with its type and description. A test keeps it in step with the keys
//! in `known_keys`, the schema in `docs/reference` and the settings.

mod auth;
mod cluster;
mod openai;
mod script;

use serde_json::{Map, Value, json};
use toolhub_sandbox::Protection;

/// The schema. It rejects unknown keys, so that an editor marks typing errors.
pub fn schema() -> Value {
    let mut schema = table(
        "Settings of toolhub. Every table and key is optional.",
        [
            ("routing", routing()),
            ("limits", limits()),
            (
                "tags",
                map(
                    "Words in a tool's name or description that assign a capability to it",
                    texts("Words; `*` stands for any characters"),
                ),
            ),
            (
                "search",
                table(
                    "How tools are found",
                    [("model", text("Folder with a sentence encoder; without it, search works on words"))],
                ),
            ),
            ("native", native()),
            ("web_search", web_search()),
            ("llm", llm()),
            ("agents", map("Agents by name; `default` is used without `--agent`", agent())),
            ("openai", openai::openai()),
            ("script", script::script()),
            ("cluster", cluster::cluster()),
            ("skills", skills()),
            (
                "approvals",
                table(
                    "What approvals of tools are good for",
                    [(
                        "pin",
                        pin(
                            "A tool whose definition changed after its approval: `warn` calls it with a warning, `block` refuses it (default: warn)",
                        ),
                    )],
                ),
            ),
            ("store", store()),
            ("serve", serve()),
            (
                "profiles",
                map(
                    "What clients of the gateway see, by the names of profiles; `default` is the one of `/mcp`",
                    profile(),
                ),
            ),
            ("audit", auth::audit()),
            ("auth", auth::auth()),
            ("telemetry", telemetry()),
            ("servers", list("Settings of servers for which `mcp.json` has no place", server())),
        ],
    );
    schema["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    schema["title"] = "toolhub.toml".into();
    schema["definitions"] = json!({
        "duration": {
            "description": "A duration such as \"500ms\", \"30s\", \"2m\", \"1h\" or \"7d\", or a number of seconds",
            "anyOf": [
                {"type": "string", "pattern": "^\\s*[0-9]+(\\.[0-9]+)?\\s*(ms|s|m|min|h|d|秒|分|分钟|小时|天)?\\s*$"},
                {"type": "number", "exclusiveMinimum": 0},
            ],
        },
        "size": {
            "description": "A size such as \"500MB\" or \"4GiB\", or a number of bytes",
            "anyOf": [
                {"type": "string", "pattern": "^\\s*[0-9]+\\s*([KkMmGgTt][Ii]?)?[Bb]?\\s*$"},
                {"type": "integer", "minimum": 1},
            ],
        },
    });
    schema
}

fn described(kind: Value, description: &str) -> Value {
    let mut schema = kind;
    schema["description"] = description.into();
    schema
}

fn text(description: &str) -> Value {
    described(json!({"type": "string"}), description)
}

fn texts(description: &str) -> Value {
    described(json!({"type": "array", "items": {"type": "string"}}), description)
}

fn flag(description: &str) -> Value {
    described(json!({"type": "boolean"}), description)
}

/// An integer of at least `minimum`.
fn count(minimum: u64, description: &str) -> Value {
    described(json!({"type": "integer", "minimum": minimum}), description)
}

fn one_of(names: &[&str], description: &str) -> Value {
    described(json!({"type": "string", "enum": names}), description)
}

/// This draft ignores keywords next to `$ref`, so the reference is inside `allOf`.
fn duration(description: &str) -> Value {
    described(json!({"allOf": [{"$ref": "#/definitions/duration"}]}), description)
}

fn size(description: &str) -> Value {
    described(json!({"allOf": [{"$ref": "#/definitions/size"}]}), description)
}

fn pin(description: &str) -> Value {
    one_of(&["warn", "block"], description)
}

fn table<const N: usize>(description: &str, keys: [(&str, Value); N]) -> Value {
    let properties: Map<String, Value> =
        keys.into_iter().map(|(key, schema)| (key.to_owned(), schema)).collect();
    json!({"type": "object", "description": description, "additionalProperties": false, "properties": properties})
}

/// A table with user-defined names.
fn map(description: &str, value: Value) -> Value {
    let mut schema = json!({"type": "object", "description": description});
    schema["additionalProperties"] = value;
    schema
}

fn list(description: &str, item: Value) -> Value {
    let mut schema = json!({"type": "array", "description": description});
    schema["items"] = item;
    schema
}

fn requiring(mut table: Value, keys: &[&str]) -> Value {
    table["required"] = json!(keys);
    table
}

fn protections(description: &str) -> Value {
    let names: Vec<&str> = Protection::ALL.iter().map(|protection| protection.name()).collect();
    list(description, json!({"type": "string", "enum": names}))
}

fn routing() -> Value {
    let kinds = json!({"type": "string", "enum": ["mcp", "skill", "native"]});
    let mut order = list(
        "Kinds of sources in the order in which they are tried; a kind that is left out is not used (default: mcp, skill, native)",
        kinds,
    );
    order["minItems"] = 1.into();
    let groups = json!({"type": "array", "items": {"type": "string"}});
    table(
        "Which source serves a call",
        [
            ("order", order),
            ("batch", count(0, "How many candidates start concurrently (default: 3)")),
            (
                "strategies",
                map(
                    "How the tools of a capability are run",
                    one_of(
                        &["first", "race", "merge"],
                        "`first`: one after another; `race`: the first success counts; `merge`: results are put together",
                    ),
                ),
            ),
            ("equivalent", list("Groups of servers whose tools of one name are interchangeable", groups)),
        ],
    )
}

fn limits() -> Value {
    let result = table(
        "How much of a result a model is shown, in characters",
        [
            ("calculate", count(0, "Calculations (default: 100)")),
            ("time", count(0, "Times (default: 200)")),
            ("search", count(0, "Search results (default: 500)")),
            ("hits", count(0, "Number of hits of a search (default: 3)")),
            ("history", count(0, "Conversation history (default: 1000)")),
            ("skills", count(0, "Instructions of a skill (default: 24000)")),
            ("other", count(0, "Everything else (default: 500)")),
        ],
    );
    table(
        "How long things may take, and how much is shown",
        [
            ("call", duration("Timeout of a call (default: 30s)")),
            (
                "call_cap",
                duration("The longest that progress notifications can extend a call to (default: 5m)"),
            ),
            ("connect", duration("Timeout for connecting to a server (default: 30s)")),
            (
                "starts",
                count(
                    1,
                    "How many servers are started at a time to list their tools (default: number of cores)",
                ),
            ),
            ("result", result),
        ],
    )
}

fn native() -> Value {
    table(
        "The built-in tools",
        [
            (
                "folders",
                texts("Folders that `read_file` and `list_files` may read (default: the current folder)"),
            ),
            ("enabled", flag("Whether the built-in tools exist (default: true)")),
            ("disabled", texts("Built-in tools that are left out")),
        ],
    )
}

fn web_search() -> Value {
    let keys = [
        ("provider", one_of(&["searxng", "brave", "tavily"], "The search service; required")),
        (
            "url",
            text("Address of SearXNG; for the others, replaces their own address; `${VAR}` is filled in"),
        ),
        ("api_key", text("Key of the service, bearer token for SearXNG; `${VAR}` is filled in")),
    ];
    requiring(table("The service behind `search_web`", keys), &["provider"])
}

fn llm() -> Value {
    table(
        "The language model for `toolhub ask` and `toolhub chat`",
        [
            ("enabled", flag("`false`: never use a model (default: true)")),
            ("url", text("Endpoint; `${VAR}` is filled in")),
            ("model", text("Name of the model at the endpoint; `${VAR}` is filled in")),
            ("api", one_of(&["openai", "anthropic"], "Wire format (default: by the address)")),
            ("key", text("API key; `${VAR}` is filled in")),
            (
                "tool_calls",
                one_of(
                    &["native", "text"],
                    "`text` for models without tool calls of their own (default: native)",
                ),
            ),
            ("timeout", duration("Time for one response (default: 2m)")),
            ("max_tokens", count(0, "Longest response, in tokens")),
            ("temperature", described(json!({"type": "number"}), "Sampling temperature")),
        ],
    )
}

fn agent() -> Value {
    table(
        "An agent",
        [
            ("model", text("Another model at the same endpoint")),
            ("instructions", text("The beginning of the prompt")),
            ("tools", texts("Patterns of tools that the agent may use (default: all)")),
            (
                "mode",
                one_of(
                    &["talk", "plan", "code"],
                    "`talk`: the model calls tools as it goes; `plan`: it makes a plan first; `code`: it writes scripts that call tools (default: talk)",
                ),
            ),
            ("rounds", count(0, "How often the model is asked for one request (default: 10)")),
            ("time", duration("Time for one request (default: 5m)")),
            ("tokens", count(0, "Tokens read and written for one request (default: 200000)")),
            ("prompt_tokens", count(0, "Tokens of the prompt that describe tools (default: 3000)")),
        ],
    )
}

fn skills() -> Value {
    let grants = table(
        "What the scripts of a skill may do",
        [
            ("read", texts("Files and folders; `.` is the folder where toolhub runs")),
            ("write", texts("Files and folders")),
            ("network", flag("Whether the network may be used (default: false)")),
            ("environment", texts("Names of environment variables")),
            ("tools", flag("Whether its scripts may call the tools of their caller (default: false)")),
        ],
    );
    table(
        "Where skills are looked for, and what they may do",
        [
            ("enabled", flag("`false`: no skills (default: true)")),
            ("folders", texts("Folders of skills beside the usual ones")),
            ("grants", map("Permissions per skill", grants)),
            ("allow_missing", protections("Protections that may be missing on this system")),
            ("python", text("Interpreter of Python scripts: a command or a path (default: python3)")),
        ],
    )
}

fn store() -> Value {
    table(
        "Where calls, results and lists are kept",
        [
            (
                "url",
                text("PostgreSQL database instead of `toolhub.db` in the data folder; `${VAR}` is filled in"),
            ),
            (
                "durability",
                one_of(
                    &["program", "power"],
                    "What a stored call survives: the end of the process, or also a power failure (default: program)",
                ),
            ),
            (
                "required",
                flag(
                    "`false`: calls that may change something run even if they cannot be recorded (default: true)",
                ),
            ),
            ("keep_calls", duration("How long calls are kept (default: 90d)")),
            ("keep_results", duration("How long results are kept (default: 30d)")),
            ("result_bytes", count(0, "Bytes of full results (default: 1073741824)")),
            ("max_size", size("Size of the database; the oldest results are deleted first (default: 4GiB)")),
            (
                "detail",
                one_of(&["all", "sample"], "Which calls are stored with their details (default: all)"),
            ),
        ],
    )
}

fn serve() -> Value {
    let limits = table(
        "What one caller may hold",
        [
            ("sessions", count(1, "Sessions of one profile (default: 1000)")),
            ("streams", count(1, "Event streams that belong to no request (default: 256)")),
            ("pending_input", count(1, "Requests that wait for client input (default: 128)")),
            ("subscriptions", count(1, "Subscribed resources (default: 10000)")),
            (
                "upload_bytes",
                count(1, "Messages over 64 KiB that are received or handled (default: 33554432)"),
            ),
            ("unread_bytes", count(1, "Responses over 64 KiB that are not yet written (default: 134217728)")),
            ("replay_bytes", count(1, "Events kept for resumable streams (default: 67108864)")),
            (
                "unproven_connections",
                count(1, "Connections of one address without an answered request (default: 512)"),
            ),
            ("write_timeout", duration("Time without progress until a connection is closed (default: 30s)")),
        ],
    );
    table(
        "Where the gateway listens, and how much callers may ask",
        [
            ("bind", text("Address and port, or a port (default: 127.0.0.1:7460)")),
            ("hosts", texts("Accepted `Host` names beside those of this machine")),
            ("origins", list("Accepted origins of web pages", json!({"type": "string", "pattern": "://"}))),
            ("body_bytes", count(1, "Longest message (default: 4194304)")),
            ("max_concurrent", count(1, "Concurrent requests of one caller (default: 1024)")),
            ("per_second", count(1, "Messages of one caller per second (default: unlimited)")),
            (
                "fast_path",
                flag("`false`: every request is read by hyper, which takes more CPU (default: true)"),
            ),
            ("header_timeout", duration("Time for a complete request head (default: 30s)")),
            ("drain", duration("Time for running requests after SIGTERM (default: 10s)")),
            ("limits", limits),
            ("access_log", text("`off`, `stderr` or a file; one line of JSON per request (default: off)")),
        ],
    )
}

fn profile() -> Value {
    let changes = table(
        "Changes of a tool",
        [
            ("name", text("Another name")),
            ("title", text("Another title")),
            ("description", text("Another description")),
            (
                "arguments",
                json!({"type": "object", "description": "Arguments that are always passed and that clients do not see"}),
            ),
        ],
    );
    table(
        "What clients see",
        [
            ("servers", texts("Ids of servers, `native` and `skill` (default: all)")),
            ("tools", texts("Patterns of tools (default: all)")),
            ("allow", texts("More of them")),
            ("deny", texts("Patterns that are excluded in any case")),
            ("tags", texts("Only tools with one of these capabilities (default: all)")),
            (
                "expose",
                one_of(
                    &["all", "search", "code", "auto"],
                    "`all` lists all tools, `search` lists a search and the pinned ones, `code` a search and `run_script`, `auto` searches with more than 100 tools (default: auto)",
                ),
            ),
            ("pinned", texts("Tools that are listed in any case")),
            ("coerce_arguments", flag("Correct arguments that almost match the schema (default: false)")),
            (
                "lossless",
                flag(
                    "Offer definitions unchanged, even if some clients reject the whole list because of them (default: false)",
                ),
            ),
            ("overrides", map("Changes per tool", changes)),
        ],
    )
}

fn telemetry() -> Value {
    let share = described(
        json!({"type": "number", "minimum": 0, "maximum": 1}),
        "Share of the traces that start here, 0 to 1 (default: 1.0)",
    );
    table(
        "Where traces go",
        [
            ("enabled", flag("Export traces (default: true if `otlp` is set)")),
            ("otlp", text("Collector, OTLP over HTTP (default: http://127.0.0.1:4318)")),
            ("service", text("Service name (default: toolhub)")),
            ("sampling", share),
        ],
    )
}

fn server() -> Value {
    let hint = |description: &str| flag(description);
    let hints = table(
        "Effects of a tool, in place of the server's own annotations",
        [
            ("read_only", hint("Changes nothing")),
            ("destructive", hint("May delete or overwrite")),
            ("idempotent", hint("A second identical call has no further effect")),
            ("open_world", hint("Reaches external systems")),
            ("readOnlyHint", hint("As `read_only`")),
            ("destructiveHint", hint("As `destructive`")),
            ("idempotentHint", hint("As `idempotent`")),
            ("openWorldHint", hint("As `open_world`")),
        ],
    );
    let port = described(
        json!({"type": "integer", "minimum": 0, "maximum": 65535}),
        "Local port for the redirect; a free one without it",
    );
    let oauth = table(
        "How to log in",
        [
            ("client_id", text("A registered client; `${VAR}` is filled in")),
            ("client_secret", text("Its secret; `${VAR}` is filled in")),
            ("client_metadata_url", text("URL of a published client metadata document, used as client id")),
            ("issuer", text("The only authorization server to be used")),
            ("private_network", flag("Allow addresses in private networks (default: false)")),
            ("scopes", texts("Requested scopes, instead of those the server lists")),
            ("redirect_port", port),
            (
                "grant",
                one_of(
                    &["authorization_code", "client_credentials"],
                    "Whether a user logs in with a browser, or the client itself (default: authorization_code)",
                ),
            ),
        ],
    );
    let keys = [
        ("id", text("Name in `mcp.json`; required")),
        ("enabled", flag("Whether it is used (default: true)")),
        (
            "era",
            one_of(
                &["legacy", "modern"],
                "The only generation of MCP to be tried, for a server whose own answer is wrong",
            ),
        ),
        ("connect_timeout", duration("Timeout for connecting (default: that of `[limits]`)")),
        ("call_timeout", duration("Timeout of a call (default: that of `[limits]`)")),
        ("idle_timeout", duration("An unused program is stopped after this time (default: 10m)")),
        (
            "instances",
            one_of(
                &["shared", "caller"],
                "`caller`: a process or session for each caller of the gateway (default: shared)",
            ),
        ),
        (
            "credentials",
            one_of(
                &["shared", "caller", "exchange"],
                "`caller`: each caller of the gateway logs in itself; `exchange`: its token is exchanged for one of the server (default: shared)",
            ),
        ),
        ("max_instances", count(1, "With `instances` or `credentials` per caller (default: 32)")),
        ("roots", texts("Folders or URIs that the server is given as roots")),
        ("tools", texts("The only tools to be used (default: all)")),
        ("disabled_tools", texts("Tools that are switched off")),
        ("env_pass", texts("Environment variables that the program gets beside the usual ones")),
        ("hints", map("Effects per tool, `*` for all", hints)),
        ("tags", map("Capabilities per tool, `*` for all", texts("Capabilities"))),
        (
            "pin",
            pin(
                "What happens to its tools when they changed after their approval (default: that of `[approvals]`)",
            ),
        ),
        ("oauth", oauth),
        ("sandbox", sandbox()),
    ];
    requiring(table("Settings of one server of `mcp.json`", keys), &["id"])
}

fn sandbox() -> Value {
    let limits = table(
        "Resource limits",
        [
            ("memory", size("Memory (default: 1GiB)")),
            ("cpu", duration("Processor time (default: unlimited for servers)")),
            ("processes", count(0, "Number of processes (default: 128)")),
            ("open_files", count(0, "Number of open files (default: 1024)")),
            ("file_size", size("Size of one file (default: 256MiB)")),
            ("disk", size("Size of the private folder (default: 512MiB)")),
        ],
    );
    let table = table(
        "What its program may do",
        [
            ("read", texts("Files and folders")),
            ("write", texts("Files and folders")),
            ("network", flag("Whether the network may be used (default: false)")),
            ("unix_sockets", flag("Whether Unix sockets may be used (default: false)")),
            ("limits", limits),
            ("isolation", one_of(&["auto", "builtin", "bubblewrap"], "Which implementation (default: auto)")),
            ("allow_missing", protections("Protections that may be missing on this system")),
        ],
    );
    json!({
        "description": "What its program may do: `true` for the usual limits, or a table; Linux (default: false)",
        "anyOf": [{"type": "boolean"}, table],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_describes_every_key() {
        fn check(schema: &Value, path: &str) {
            let members = schema["properties"].as_object().into_iter().flatten();
            for (key, value) in members {
                let path = format!("{path}.{key}");
                assert!(value["description"].as_str().is_some_and(|text| !text.is_empty()), "{path}");
                check(value, &path);
            }
            for inner in [&schema["items"], &schema["additionalProperties"], &schema["anyOf"][1]] {
                if inner.is_object() {
                    check(inner, path);
                }
            }
        }
        check(&schema(), "");
    }
}
