//! The scripted MCP server: the API for tests to start it ([`binary`], [`Script`], [`HttpServer`]) and to read the messages
//! that it received ([`Journal`]). The server itself is in `player`, and shares no code with the project's own MCP crates.
//!
//! # The script
//!
//! A JSON object; all fields are optional, unknown fields are errors.
//!
//! | field | meaning (default) |
//! |---|---|
//! | `era` | `"legacy"` (default), `"modern"` or `"both"` |
//! | `version` | the version in the response to a legacy `initialize` (`"2025-11-25"`); `"echo"` returns the requested one |
//! | `supported` | the supported modern versions (`["2026-07-28"]`) |
//! | `name`, `instructions` | server name and instructions (`"scripted"`, none) |
//! | `capabilities` | sent as written (`{"tools":{"listChanged":true}}`) |
//! | `tools` | tool definitions, sent as written |
//! | `page_size` | tools per page (all); `cursor_repeats: true` always returns the same cursor |
//! | `ttlMs`, `cacheScope` | on modern lists (`60000`, `"public"`) |
//! | `journal` | file with one JSON line per received message and event, see [`Journal`] |
//! | `banner`, `stderr` | lines printed at startup on stdout (stdio only) and stderr |
//! | `start_delay_ms` | delay before anything is served |
//! | `session` | HTTP, legacy: issue `Mcp-Session-Id` and require it (`true`) |
//! | `sse` | HTTP: respond with an event stream instead of JSON (`false`) |
//! | `resumable` | HTTP, legacy: event streams with ids, which outlive their connection and are resumed by `GET` with `Last-Event-ID` (`false`) |
//! | `shutdown` | `"clean"` (default: exits at EOF and on SIGTERM), `"ignore_eof"` (needs SIGTERM), `"ignore_term"` (ignores both, needs SIGKILL) |
//! | `on` | actions that replace the default response, see below |
//!
//! The keys of `on` are `tools/call:<tool>`, a method, or `"*"` for all others; over HTTP also `GET` and `DELETE` of
//! the endpoint, and `GET /other/path` (any verb) for other paths. The value is a list of actions, or a list
//! of such lists: the first request takes the first, the next the next, the last repeats. The checks of the protocol
//! (session, handshake, version, headers) precede a list, except one for `initialize`, `server/discover` or `"*"`.
//!
//! **A list without a response ends in the default response**: `[{"delay_ms": 500}]` delays the default response.
//! Actions that count as a response are marked ● below.
//!
//! | action | effect |
//! |---|---|
//! | `{"delay_ms": N}` | waits |
//! | `{"reply": RESULT}` ● | the result, verbatim |
//! | `{"error": {"code", "message", "data"?}}` ● | a JSON-RPC error |
//! | `{"text": "…"}` ● | a tool result with one text block |
//! | `{"tool_error": "…"}` ● | the same with `isError` |
//! | `{"env": ["NAME", …]}` ● | a text block with these environment variables as JSON |
//! | `{"answer": true}` ● | a text block with the client's response to the last `request`, as JSON |
//! | `{"default": true}` ● | the default response at this point (so that more actions can follow) |
//! | `{"raw": "…"}` ● | a line / part of the HTTP body, verbatim |
//! | `{"bytes_hex": "…"}` ● | bytes, verbatim, without newline |
//! | `{"endless": N}` ● | the first N bytes of a reply that never ends; then no output (over stdio, of the whole process) |
//! | `{"ignore": true}` ● | never responds; the list ends here |
//! | `{"exit": CODE}` ● | the process exits immediately |
//! | `{"close": true}` ● | HTTP: aborts the connection; before the head if no response has begun |
//! | `{"twice": true}` | the next reply is sent twice |
//! | `{"wrong_id": true}` | the next reply has another id (`987654321`, or the value given instead of `true`) |
//! | `{"stderr": "…"}`, `{"flood_stderr": BYTES}` | a line, or many, on stderr |
//! | `{"notify": {"method", "params"?}}` | a notification (over HTTP on this request's event stream) |
//! | `{"progress": {"progress"?, "total"?, "message"?}}` | progress for the request's token, nothing without one; increments automatically if `progress` is omitted |
//! | `{"acknowledge": true}` | acknowledges a `subscriptions/listen` (its default does so and stays open) |
//! | `{"request": {"method", "params"?}}` | sends a request to the client and waits for its response (`"wait": false` does not wait) |
//! | `{"status": CODE}` | HTTP status; above 299 it also counts as a response, with an empty body |
//! | `{"header": {"name": "value"}}`, `{"content_type": "…"}` | HTTP head; `text/event-stream` encodes the following output as events |
//! | `{"drop_sessions": true}` | HTTP: drops all sessions |
//! | `{"spawn_child": true}` | starts `sleep 1000` in the same process group and records its PID in the journal; with `"inherit"` it keeps stdout and stderr open |
//! | `{"stop_reading": true}` | stops reading stdin |
//! | `{"count": "PATH"}` | appends a line to the file: proof of execution |
//! | `{"shuffle": {"of": N, "seed": S}}` | waits until N requests wait here; then they continue one after another, each when the previous one is done, in an order determined by the seed |
//! | `{"repeat": {"times": N, "do": [actions]}}` | performs the actions N times |
//!
//! A list with `notify`, `progress`, `request` or `acknowledge` is sent as an event stream over HTTP.

mod http_server;
mod journal;
mod player;
mod script;

pub use self::{http_server::HttpServer, journal::Journal, player::play, script::Script};

/// The path of the program `scripted-mcp`.
#[must_use]
pub fn binary() -> std::path::PathBuf {
    crate::program("scripted-mcp")
}
