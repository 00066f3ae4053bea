//! The messages between replicas and workers. Each is a head in JSON on one line, followed by a body that is forwarded unchanged.

use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toolhub_core::cluster::InstanceKey;
use toolhub_core::lang::LocalizedText;
use toolhub_core::script_host::ScriptHostEnd;
use toolhub_core::skill_jobs::{SkillExit, SkillRunError};
use toolhub_core::{BoxFuture, RawJson};

use crate::bus::{Bus, BusError, subject_token};

/// The version of these messages.
pub(crate) const PROTOCOL: u32 = 1;

/// Writes a message.
pub(crate) fn write(head: &impl Serialize, body: &[u8]) -> Bytes {
    let head = RawJson::of(head);
    let mut message = BytesMut::with_capacity(head.get().len() + 1 + body.len());
    message.put_slice(head.get().as_bytes());
    message.put_u8(b'\n');
    message.put_slice(body);
    message.freeze()
}

/// Reads a message.
pub(crate) fn read<H: DeserializeOwned>(message: &Bytes) -> Option<(H, Bytes)> {
    // JSON text on one line: a newline inside a string is escaped.
    let end = message.iter().position(|byte| *byte == b'\n')?;
    let head = serde_json::from_slice(message.get(..end)?).ok()?;
    Some((head, message.slice(end + 1..)))
}

/// The JSON of a body; `None` if it is empty or invalid.
pub(crate) fn body_json(body: &Bytes) -> Option<RawJson> {
    std::str::from_utf8(body).ok().and_then(|text| RawJson::parse(text.to_owned()).ok())
}

/// The subjects of a cluster.
pub(crate) struct Subjects<'a>(pub(crate) &'a Bus);

impl Subjects<'_> {
    /// Requests for a placement. The epoch is a part of it, so that a former holder that still subscribes does not receive what is
    /// meant for its successor.
    pub(crate) fn call(&self, key: &InstanceKey, epoch: i64) -> String {
        self.0.subject(&[
            "call",
            &subject_token(&key.server),
            &subject_token(&key.instance),
            &epoch.to_string(),
        ])
    }

    /// Messages to a worker.
    pub(crate) fn control(&self, worker: &str) -> String {
        self.0.subject(&["ctl", &subject_token(worker)])
    }

    /// Messages to a replica.
    pub(crate) fn replica(&self, replica: &str) -> String {
        self.0.subject(&["hub", &subject_token(replica)])
    }

    /// Scripts for a worker.
    pub(crate) fn scripts(&self, worker: &str) -> String {
        self.0.subject(&["script", &subject_token(worker)])
    }

    /// Scripts of skills for a worker.
    pub(crate) fn skills(&self, worker: &str) -> String {
        self.0.subject(&["skill", &subject_token(worker)])
    }

    /// Signs of life.
    pub(crate) fn beat(&self, member: &str) -> String {
        self.0.subject(&["beat", &subject_token(member)])
    }

    /// The signs of life of all members.
    pub(crate) fn beats(&self) -> String {
        self.0.subject(&["beat", "*"])
    }

    /// Events for all members.
    pub(crate) fn events(&self) -> String {
        self.0.subject(&["events"])
    }
}

/// The queue of the receivers at [`Subjects::call`].
pub(crate) const QUEUE: &str = "workers";

/// A request to a placement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CallHead {
    pub(crate) protocol: u32,
    /// Identifies the request. A worker processes none twice.
    pub(crate) id: String,
    /// The replica.
    pub(crate) from: String,
    pub(crate) epoch: i64,
    /// Whether the replica sends [`AwaitedRequests`] while it waits.
    #[serde(default)]
    pub(crate) renewed: bool,
    /// When the worker must have begun, by the clock of the database in milliseconds since 1970.
    pub(crate) begin_by: i64,
    pub(crate) action: PlacementAction,
    /// What the server's process needs beside the message. Not a part of `action`: serde reads raw JSON in no tagged enum.
    pub(crate) forwarding: Option<RawJson>,
}

/// What is requested of a placement.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum PlacementAction {
    /// To connect to the server.
    Open,
    /// To forward the body to the server.
    Request {
        /// The number of the connection, from the answer to `Open`.
        connection: u64,
        principal: Option<String>,
        client: Option<u64>,
    },
}

/// An answer to a [`CallHead`]; several in order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum CallReply {
    /// The request was not processed and never will be.
    Refused { why: WorkerRefusal },
    /// From here on the request may take effect.
    Accepted,
    /// The request still runs.
    Running,
    /// A notification of the server; the body is its params.
    Notification { method: String },
    /// A request of the server to the client; the body is its params. The answer is a [`WorkerMessage::Answer`].
    Question { number: u64, method: String },
    /// The server is connected; the body is its description.
    Opened { connection: u64 },
    /// The result; the body is its JSON.
    Result,
    /// The failure; the body is its JSON.
    Failed,
}

/// Why a worker did not process a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub(crate) enum WorkerRefusal {
    /// It does not hold the placement any more.
    NotHeld,
    /// The request came too late, or a second time.
    Late,
    /// It cannot take the server.
    CannotTake { why: LocalizedText },
}

/// A message to a worker at its own subject. Each is answered by a [`ControlReply`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum WorkerMessage {
    /// To take an instance. `entry` is a digest of its configuration.
    Place { key: WireKey, entry: String, begin_by: i64 },
    /// The caller does not wait any more.
    Cancel { id: String },
    /// See [`AwaitedRequests`].
    Waiting { ids: Vec<String> },
    /// Messages to a script; the body is lines. The next ones follow after the answer.
    ScriptInput { id: String },
    /// What the replica has taken of the lines of a script altogether, as the sum of [`window_cost`].
    ScriptTaken { id: String, cost: u64 },
    /// The answer of a client to [`CallReply::Question`]; the body is JSON: a result, or an [`AnswerError`].
    Answer { id: String, number: u64, is_error: bool },
}

/// The sender still waits for these requests. It says so every [`WAITING_INTERVAL`], so that a request ends although its cancellation
/// was lost. The answer is [`EndedRequests`]. A variant of this name and form is in the messages to workers and in those to replicas.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum AwaitedRequests<'a> {
    Waiting { ids: &'a [&'a str] },
}

/// The answer to [`AwaitedRequests`].
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct EndedRequests {
    /// Those of the requests that have ended. All messages about them were sent before this one, in the same order of delivery:
    /// what has not arrived with it was lost.
    #[serde(default)]
    pub(crate) ended: Vec<String>,
}

/// How much of an answer in parts, or of the lines of a script, is sent before its receiver has taken it: the sum of
/// [`window_cost`].
pub(crate) const WINDOW_BYTES: u64 = 1 << 20;
/// After this part of a window, the receiver reports what it has taken.
pub(crate) const REPORT_BYTES: u64 = WINDOW_BYTES / 4;
/// Maximum number of messages in a window. The receiver queues a bounded number of frames, however short they are.
const WINDOW_MESSAGES: u64 = 256;

/// What a message takes of a window.
pub(crate) fn window_cost(body: &[u8]) -> u64 {
    (WINDOW_BYTES / WINDOW_MESSAGES).saturating_add(body.len() as u64)
}

/// Interval of [`AwaitedRequests`].
pub(crate) const WAITING_INTERVAL: Duration = Duration::from_millis(if cfg!(test) { 200 } else { 5_000 });
/// A request ends if nothing says for this time that its sender waits.
pub(crate) const WAITING_TIMEOUT: Duration = WAITING_INTERVAL.saturating_mul(4);

/// A script for a worker; the body is the first message to its host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ScriptHead {
    pub(crate) protocol: u32,
    /// The version of the messages between hub and host.
    pub(crate) version: u32,
    /// Identifies the run. A worker begins none twice.
    pub(crate) id: String,
    /// The replica.
    pub(crate) from: String,
    /// When the worker must have begun, by the clock of the database in milliseconds since 1970.
    pub(crate) begin_by: i64,
}

/// An answer to a [`ScriptHead`]; several in order. Numbers of bytes and CPU times are those since the start.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum ScriptReply {
    /// The script does not run here.
    Refused {
        why: LocalizedText,
        /// Whether it could run there later.
        #[serde(default)]
        full: bool,
    },
    /// The worker looks for a host.
    Accepted,
    /// A host has the script.
    Started,
    /// A line of the host; the body is the line.
    Line { cpu_ms: Option<u64> },
    /// The host has taken this number of bytes of [`WorkerMessage::ScriptInput`].
    Written { bytes: u64 },
    /// The script still runs.
    Running { cpu_ms: Option<u64> },
    /// The host has ended.
    Ended { end: ScriptHostEnd, cpu_ms: Option<u64> },
}

/// A script of a skill for a worker; the body is the arguments as JSON. The worker runs its own tool of that name, and nothing of the
/// message but the arguments reaches the script.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SkillJobHead {
    pub(crate) protocol: u32,
    /// Identifies the job. A worker begins none twice.
    pub(crate) id: String,
    /// The replica.
    pub(crate) from: String,
    /// When the worker must have received it, by the clock of the database in milliseconds since 1970.
    pub(crate) begin_by: i64,
    pub(crate) skill: String,
    /// The name of the tool in the catalog.
    pub(crate) tool: String,
    /// See [`toolhub_core::skill_jobs::SkillJob::identity`].
    pub(crate) identity: String,
}

/// An answer to a [`SkillJobHead`]; several in order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum SkillReply {
    /// The script was not started here and never will be.
    Refused {
        why: LocalizedText,
        /// Whether it could run there later.
        #[serde(default)]
        full: bool,
    },
    /// The worker compares its own skill with the job. Nothing was started.
    Checking,
    /// From here on the script may take effect.
    Accepted,
    /// The script runs.
    Started,
    /// The script still runs.
    Running,
    /// The script has exited; the body is its standard output.
    Ended { exit: SkillExit },
    /// The script has no result.
    Failed { error: SkillRunError },
    /// The worker has killed the script.
    Stopped { why: LocalizedText },
}

/// The answer to a [`WorkerMessage`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum ControlReply {
    Done,
    /// See [`EndedRequests`].
    Waiting(EndedRequests),
    Placed {
        epoch: i64,
    },
    Refused {
        why: LocalizedText,
    },
}

/// An instance.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WireKey {
    pub(crate) server: String,
    pub(crate) instance: String,
}

impl From<&InstanceKey> for WireKey {
    fn from(key: &InstanceKey) -> Self {
        Self { server: key.server.clone(), instance: key.instance.clone() }
    }
}

impl From<WireKey> for InstanceKey {
    fn from(key: WireKey) -> Self {
        Self { server: key.server, instance: key.instance }
    }
}

/// The error with which a client answered.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AnswerError {
    pub(crate) code: i64,
    pub(crate) message: String,
}

/// A sign of life.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Heartbeat {
    pub(crate) member: String,
    /// How many more scripts the member takes at present; `None` if it takes none.
    #[serde(default)]
    pub(crate) scripts: Option<u32>,
    /// How many more scripts of skills the member takes at present; `None` if it takes none, as of earlier versions.
    #[serde(default)]
    pub(crate) skills: Option<u32>,
}

/// An event for all members.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum ClusterEvent {
    /// A notification of a server that belongs to no request; the body is its params.
    Notification { key: WireKey, epoch: i64, method: String },
    /// Something that all replicas read from the database has changed.
    Changed { from: String, topic: String },
}

/// Sends a control message and waits for the answer.
pub(crate) fn control<'a>(
    bus: &'a Bus,
    worker: &'a str,
    message: Bytes,
    limit: Duration,
) -> BoxFuture<'a, Result<ControlReply, BusError>> {
    Box::pin(async move {
        let mut replies = bus.request(&Subjects(bus).control(worker), message).await?;
        let reply = replies.next(limit).await?.ok_or(BusError::Incomplete)?;
        read(&reply).map(|(reply, _)| reply).ok_or(BusError::Unreadable)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_and_bodies_survive() {
        let head = CallHead {
            protocol: PROTOCOL,
            id: "a\nb".to_owned(),
            from: "r".to_owned(),
            epoch: 7,
            renewed: true,
            begin_by: -1,
            action: PlacementAction::Request {
                connection: 1,
                principal: Some("key:ann".to_owned()),
                client: Some(u64::MAX),
            },
            forwarding: Some(RawJson::parse("{\"name\":null}").unwrap()),
        };
        for body in [&b""[..], b"{\"a\":1}", b"\n\n", "表格".as_bytes()] {
            let (read, rest) = read::<CallHead>(&write(&head, body)).unwrap();
            assert_eq!((format!("{read:?}"), &*rest), (format!("{head:?}"), body));
        }
        let waiting = write(&AwaitedRequests::Waiting { ids: &["a", "b"] }, b"");
        let Some((WorkerMessage::Waiting { ids }, _)) = read(&waiting) else { panic!("{waiting:?}") };
        assert_eq!(ids, ["a", "b"]);
        assert!(read::<CallHead>(&Bytes::from_static(b"{}\n")).is_none());
        assert!(read::<CallHead>(&Bytes::from_static(b"no end")).is_none());
    }

    /// A cluster is upgraded one process after the other.
    #[test]
    fn members_of_earlier_versions_take_no_skills() {
        let earlier = Bytes::from_static(b"{\"member\":\"worker-1\",\"scripts\":3}\n");
        let (beat, _) = read::<Heartbeat>(&earlier).unwrap();
        assert_eq!((beat.scripts, beat.skills), (Some(3), None));
    }

    #[test]
    fn results_of_skills_survive() {
        let exit = SkillExit {
            success: false,
            exit_reason: LocalizedText::new("it ended with exit code 3", "退出码为 3"),
            output: Vec::new(),
            stderr_text: "a\nb".to_owned(),
            stopped: Some(LocalizedText::new("stopped", "已停止")),
        };
        let message = write(&SkillReply::Ended { exit: exit.clone() }, b"out\nput");
        let (SkillReply::Ended { exit: read_exit }, body) = read(&message).unwrap() else {
            panic!("{message:?}")
        };
        assert_eq!((read_exit, &*body), (exit, &b"out\nput"[..]));
        for error in [SkillRunError::NotStarted, SkillRunError::OutputTooLarge, SkillRunError::Lost] {
            let error = error(LocalizedText::new("why", "为何"));
            let message = write(&SkillReply::Failed { error: error.clone() }, b"");
            let (SkillReply::Failed { error: read_error }, _) = read(&message).unwrap() else {
                panic!("{message:?}")
            };
            assert_eq!(read_error, error);
        }
    }
}
