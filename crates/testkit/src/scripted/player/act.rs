//! Performs the actions of a script.

use std::{
    collections::BTreeMap,
    env,
    future::pending,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Map, Value, json, value::RawValue};
use tokio::io::AsyncWriteExt;

use super::{
    action::{Action, Call, Child},
    lock::locked,
    message::{self, Fault},
    perform::ActionRunner,
    record,
};

impl ActionRunner {
    pub(super) async fn act(&mut self, action: &Action) {
        match action {
            Action::DelayMs(milliseconds) => tokio::time::sleep(Duration::from_millis(*milliseconds)).await,
            Action::Reply(result) => self.result(result.get()).await,
            Action::Error(body) => {
                let data = body.data.as_deref().map(|raw| message::one_line(raw.get()));
                let message = body.message.clone();
                self.fault(&Fault { status: 200, code: body.code, message, data }).await;
            }
            Action::Text(text) => self.text(text, false).await,
            Action::ToolError(text) => self.text(text, true).await,
            Action::Env(names) => self.text(&environment(names), false).await,
            Action::Answer(_) => {
                let answer = self.run_state.answer.clone().unwrap_or_else(|| "null".to_owned());
                self.text(&answer, false).await;
            }
            Action::Default(_) => self.default_answer().await,
            Action::Raw(_) | Action::BytesHex(_) | Action::Endless(_) => self.write(action).await,
            Action::Ignore(_) => pending().await,
            Action::Exit(code) => {
                _ = self.player_state.exits.send(*code).await;
                pending::<()>().await;
            }
            Action::Twice(_) => self.run_state.twice = true,
            Action::WrongId(id) => self.run_state.wrong_id = Some(foreign(id)),
            Action::Stderr(line) => stderr(format!("{line}\n").into_bytes()).await,
            Action::FloodStderr(bytes) => flood(*bytes).await,
            Action::Notify(call) => {
                let params = self.notification_params(call.params.as_deref());
                self.response_writer.message(&message::notification(&call.method, params.as_deref())).await;
            }
            Action::Progress(members) => self.progress(members).await,
            Action::Acknowledge(_) => self.acknowledge().await,
            Action::Request(call) => self.ask(call).await,
            Action::Close(_) | Action::Status(_) | Action::Header(_) | Action::ContentType(_) => {
                self.shape(action).await;
            }
            Action::DropSessions(_) => self.player_state.sessions.drop_all(),
            Action::SpawnChild(child) => self.spawn_child(*child),
            Action::StopReading(_) => self.player_state.stop_reading.cancel(),
            // A failure is detected by the test that reads the file.
            Action::Count(path) => _ = record::count(path, self.message.id()),
            Action::Shuffle(shuffle) => {
                let id = self.message.id().unwrap_or_default();
                self.run_state.turn =
                    self.player_state.shuffled.turn(id, *shuffle, &self.player_state.tasks).await;
            }
            Action::Repeat(repeat) => {
                for _ in 0..repeat.times {
                    self.all(&repeat.actions).await;
                }
            }
        }
    }

    /// Writes output that ignores the protocol.
    async fn write(&mut self, action: &Action) {
        self.run_state.answered = true;
        match action {
            Action::Raw(text) => self.response_writer.raw(text).await,
            Action::BytesHex(bytes) => self.response_writer.bytes(bytes.0.clone()).await,
            Action::Endless(length) => {
                let start =
                    message::result(self.message.id().unwrap_or("null"), &message::text_result("", false));
                let mut bytes = start.into_bytes();
                // Removes everything from the closing quote of the text on, so that the text never ends.
                let closing = br#""}],"isError":false}}"#.len();
                bytes.truncate(bytes.len() - closing);
                bytes.resize(*length, b'a');
                self.response_writer.endless(bytes).await;
                pending::<()>().await;
            }
            _ => {}
        }
    }

    /// Changes the HTTP response, not its messages; no effect over stdio.
    async fn shape(&mut self, action: &Action) {
        let Some(http) = self.response_writer.http() else { return };
        match action {
            Action::Close(_) => {
                http.cut().await;
                self.run_state.answered = true;
            }
            Action::Status(code) => {
                http.set_status(*code);
                self.run_state.answered |= *code > 299;
            }
            Action::Header(headers) => headers.iter().for_each(|(name, value)| http.header(name, value)),
            Action::ContentType(kind) => http.content_type(kind),
            _ => {}
        }
    }

    async fn progress(&mut self, members: &Map<String, Value>) {
        let Some(token) = self.params.meta.progress_token.as_deref() else { return };
        self.run_state.progress += 1;
        let mut params = BTreeMap::from([("progress", json!(self.run_state.progress).to_string())]);
        params.extend(members.iter().map(|(key, value)| (key.as_str(), value.to_string())));
        params.insert("progressToken", token.get().to_owned());
        let params: Vec<String> =
            params.iter().map(|(key, value)| format!("{}:{value}", message::quote(key))).collect();
        let params = format!("{{{}}}", params.join(","));
        self.response_writer.message(&message::notification("notifications/progress", Some(&params))).await;
    }

    async fn ask(&mut self, call: &Call) {
        let (id, answer) = self.player_state.pending_requests.next();
        let params = call.params.as_deref().map(|raw: &RawValue| message::one_line(raw.get()));
        self.response_writer.message(&message::request(id, &call.method, params.as_deref())).await;
        if call.wait {
            self.run_state.answer = answer.await.ok();
        }
    }

    /// In the process group of the server, like a child of any program.
    fn spawn_child(&self, child: Child) {
        let output = || if child.inherits { Stdio::inherit() } else { Stdio::null() };
        let mut command = Command::new("sleep");
        command.arg("1000").stdin(Stdio::null()).stdout(output()).stderr(output());
        match command.spawn() {
            Ok(child) => {
                self.player_state.journal.event("child", &json!({"child": child.id()}));
                locked(&self.player_state.children).push(child);
            }
            Err(error) => self.player_state.journal.event("child", &json!({"error": error.to_string()})),
        }
    }
}

fn environment(names: &[String]) -> String {
    let read = |name: &String| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let variables: Map<String, Value> = names.iter().map(|name| (name.clone(), json!(read(name)))).collect();
    Value::Object(variables).to_string()
}

fn foreign(id: &Value) -> String {
    if *id == true { "987654321".to_owned() } else { id.to_string() }
}

/// As fast as the client reads.
async fn flood(bytes: usize) {
    let line = [b"flood ".repeat(13), b"\n".to_vec()].concat();
    stderr(line.iter().copied().cycle().take(bytes).collect()).await;
}

pub(super) async fn stderr(bytes: Vec<u8>) {
    let mut stderr = tokio::io::stderr();
    // Fails if the client has closed it.
    _ = stderr.write_all(&bytes).await;
    _ = stderr.flush().await;
}
