//! An MCP server over stdio (2025-11-25) that appends the ids of its calls to the file `JOURNAL`, one per line, so that tests see
//! which calls ran, and how often. Its calls run concurrently.
#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a test server that writes its protocol to stdout"
)]

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{BufRead as _, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// How long a client may take to answer a question.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// How often the list of tools was changed; each time it gets another tool.
static CHANGES: AtomicUsize = AtomicUsize::new(0);

/// The questions that wait for an answer, by id.
type Questions = Arc<Mutex<HashMap<String, Sender<Value>>>>;

fn main() {
    let questions = Questions::default();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let Some(method) = message["method"].as_str() else {
            let id = message["id"].as_str().unwrap_or_default();
            if let Some(waiting) = questions.lock().expect("no thread panics").remove(id) {
                let _ = waiting.send(message);
            }
            continue;
        };
        let id = message["id"].clone();
        match method {
            "initialize" => respond(
                &id,
                &json!({
                    "protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}},
                    "serverInfo": {"name": "journal", "version": "1"}
                }),
            ),
            "ping" => respond(&id, &json!({})),
            "tools/list" => respond(&id, &json!({"tools": tools()})),
            "tools/call" => {
                let questions = Arc::clone(&questions);
                thread::spawn(move || call(&id, &message["params"], &questions));
            }
            "tasks/get" => respond(&id, &task()),
            "tasks/result" => respond(
                &id,
                &json!({"content": [{"type": "text", "text": format!("task of {}", std::process::id())}]}),
            ),
            _ if id.is_null() => {}
            _ => send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}})),
        }
    }
}

fn tools() -> Value {
    let tool = |name: &str| {
        json!({
            "name": name, "description": format!("{name} for tests"),
            "inputSchema": {"type": "object", "properties": {
                "id": {"type": "string"}, "ms": {"type": "integer"}, "text": {"type": "string"}
            }}
        })
    };
    let changes = CHANGES.load(Ordering::Relaxed);
    let names = ["append", "ask", "progress", "change", "begin"].map(str::to_owned).into_iter();
    names.chain((1..=changes).map(|number| format!("extra-{number}"))).map(|name| tool(&name)).collect()
}

fn call(id: &Value, params: &Value, questions: &Questions) {
    let arguments = &params["arguments"];
    let text = match params["name"].as_str() {
        Some("append") => {
            append(arguments["id"].as_str().unwrap_or_default());
            thread::sleep(Duration::from_millis(arguments["ms"].as_u64().unwrap_or_default()));
            let size = arguments["text"].as_str().map_or(0, str::len);
            format!("{} {size} {}", std::process::id(), arguments["text"].as_str().unwrap_or_default())
        }
        Some("ask") => {
            let question = format!("question-{id}");
            let (sender, answer) = channel();
            questions.lock().expect("no thread panics").insert(question.clone(), sender);
            let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
            let params = json!({"message": arguments["id"], "requestedSchema": schema});
            send(
                &json!({"jsonrpc": "2.0", "id": question, "method": "elicitation/create", "params": params}),
            );
            answer
                .recv_timeout(ANSWER_TIMEOUT)
                .map_or_else(|_| "none".to_owned(), |answer| answer.to_string())
        }
        Some("progress") => {
            for step in 1..=3 {
                let params =
                    json!({"progressToken": params["_meta"]["progressToken"], "progress": step, "total": 3});
                send(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
            }
            "done".to_owned()
        }
        Some("begin") => return respond(id, &json!({"task": task()})),
        _ => {
            CHANGES.fetch_add(1, Ordering::Relaxed);
            send(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
            "changed".to_owned()
        }
    };
    respond(id, &json!({"content": [{"type": "text", "text": text}]}));
}

/// The task of this process.
fn task() -> Value {
    json!({"taskId": format!("task-{}", std::process::id()), "status": "working",
        "createdAt": "2025-11-25T00:00:00Z", "ttl": 60000})
}

/// Appends a line in one write.
fn append(id: &str) {
    let journal = std::env::var_os("JOURNAL").expect("`JOURNAL` is set");
    let mut file = OpenOptions::new().create(true).append(true).open(journal).expect("the journal opens");
    file.write_all(format!("{id}\n").as_bytes()).expect("the journal is written");
}

fn respond(id: &Value, result: &Value) {
    send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn send(message: &Value) {
    // The lock of standard output keeps lines whole.
    println!("{message}");
}
