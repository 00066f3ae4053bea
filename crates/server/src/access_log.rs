//! The access log: an event sink that writes one line of JSON per request. A separate thread writes, so that requests
//! never wait for it; lines that it cannot keep up with are counted and reported.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;
use toolhub_core::lang::LocalizedText;
use toolhub_core::{AccessRecord, Event, EventKind, EventSink, RequestTransport};

/// Maximum number of queued lines; further ones are counted as lost.
const MAX_QUEUED_LINES: usize = 4_096;
/// Maximum number of lines per write.
const MAX_LINES_PER_WRITE: usize = 256;
/// How often the path is checked for log rotation: the file may have been moved or replaced.
const ROTATION_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time for writing the last lines on shutdown.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The destination of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogDestination {
    /// Standard error.
    Stderr,
    /// A file, to which lines are appended.
    File(PathBuf),
}

/// Reports a problem to the operator.
pub type ReportProblem = Arc<dyn Fn(LocalizedText) + Send + Sync>;

enum LogMessage {
    Line(SystemTime, Box<AccessRecord>),
    Last,
}

/// The access log.
#[derive(Debug)]
pub struct AccessLog {
    queue: SyncSender<LogMessage>,
    lost: Arc<AtomicU64>,
    done: Mutex<Receiver<()>>,
}

impl AccessLog {
    /// Starts the writer thread. `report_problem` is called when lines cannot be written.
    pub fn open(destination: LogDestination, report_problem: ReportProblem) -> std::io::Result<Self> {
        let out = match destination {
            LogDestination::Stderr => Destination::Stderr,
            LogDestination::File(path) => {
                Destination::File { file: open(&path)?, path, checked_at: Instant::now() }
            }
        };
        let (queue, waiting) = sync_channel(MAX_QUEUED_LINES);
        let (written, done) = sync_channel(1);
        let lost = Arc::<AtomicU64>::default();
        let mut writer = Writer { out, report_problem, lost: Arc::clone(&lost), reported: 0, failing: false };
        std::thread::Builder::new().name("access-log".to_owned()).spawn(move || {
            writer.run(&waiting);
            let _ = written.send(());
        })?;
        Ok(Self { queue, lost, done: Mutex::new(done) })
    }

    /// Returns the counter of lost lines.
    pub fn lost(&self) -> &Arc<AtomicU64> {
        &self.lost
    }

    /// Writes the queued lines, within a time limit. Blocks.
    pub fn close(&self) {
        let until = Instant::now() + CLOSE_TIMEOUT;
        while let Err(TrySendError::Full(_)) = self.queue.try_send(LogMessage::Last) {
            if Instant::now() > until {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let _: Result<(), RecvTimeoutError> = done.recv_timeout(CLOSE_TIMEOUT);
    }
}

impl EventSink for AccessLog {
    fn emit(&self, event: Event) {
        if let EventKind::RequestServed(request) = event.kind
            && self.queue.try_send(LogMessage::Line(event.at, request)).is_err()
        {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

enum Destination {
    Stderr,
    File { path: PathBuf, file: File, checked_at: Instant },
}

struct Writer {
    out: Destination,
    report_problem: ReportProblem,
    lost: Arc<AtomicU64>,
    /// How many of the lost lines the log has already reported.
    reported: u64,
    failing: bool,
}

impl Writer {
    fn run(&mut self, waiting: &Receiver<LogMessage>) {
        let mut text = Vec::new();
        while let Ok(first) = waiting.recv() {
            text.clear();
            let more = std::iter::from_fn(|| waiting.try_recv().ok());
            let (mut lines, mut closing) = (0, false);
            for note in std::iter::once(first).chain(more.take(MAX_LINES_PER_WRITE - 1)) {
                match note {
                    LogMessage::Line(at, request) => {
                        line(&mut text, at, &request);
                        lines += 1;
                    }
                    LogMessage::Last => closing = true,
                }
            }
            self.write(&mut text, lines);
            if closing {
                return;
            }
        }
    }

    fn write(&mut self, text: &mut Vec<u8>, lines: u64) {
        let lost = self.lost.load(Ordering::Relaxed);
        if lost > self.reported {
            let missing = lost - self.reported;
            let _ = writeln!(text, r#"{{"time":"{}","lost":{missing}}}"#, stamp(SystemTime::now()));
        }
        let written = self.reopen_if_rotated().and_then(|()| match &mut self.out {
            Destination::Stderr => std::io::stderr().lock().write_all(text),
            Destination::File { file, .. } => file.write_all(text),
        });
        match written {
            Ok(()) => {
                if lost > self.reported && self.reported == 0 {
                    (self.report_problem)(LocalizedText::new(
                        "the access log cannot keep up: some requests are counted in it, and not written down",
                        "访问日志跟不上：部分请求只计数，未写入",
                    ));
                }
                (self.reported, self.failing) = (lost, false);
            }
            Err(error) => {
                self.lost.fetch_add(lines, Ordering::Relaxed);
                if !std::mem::replace(&mut self.failing, true) {
                    (self.report_problem)(LocalizedText::new(
                        format!("the access log cannot be written: {error}"),
                        format!("无法写入访问日志：{error}"),
                    ));
                }
            }
        }
    }

    /// Reopens the file if the path refers to another file or to none.
    fn reopen_if_rotated(&mut self) -> std::io::Result<()> {
        let Destination::File { path, file, checked_at } = &mut self.out else { return Ok(()) };
        if checked_at.elapsed() >= ROTATION_CHECK_INTERVAL || self.failing {
            *checked_at = Instant::now();
            if !refers_to(file, path) {
                *file = open(path)?;
            }
        }
        Ok(())
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    // Only the owner may read which principal called which tool.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Returns whether the path still refers to this file.
#[cfg(unix)]
fn refers_to(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let same = |one: &std::fs::Metadata, other: &std::fs::Metadata| {
        (one.dev(), one.ino()) == (other.dev(), other.ino())
    };
    matches!((file.metadata(), std::fs::metadata(path)), (Ok(one), Ok(other)) if same(&one, &other))
}

/// Windows does not allow moving an open file.
#[cfg(not(unix))]
fn refers_to(_: &File, path: &Path) -> bool {
    path.exists()
}

#[derive(Serialize)]
struct Line<'a> {
    time: String,
    principal: Option<&'a str>,
    client: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    verb: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<i64>,
    bytes: u64,
    ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
}

fn line(text: &mut Vec<u8>, at: SystemTime, request: &AccessRecord) {
    let (client, verb, path, status) = match &request.transport {
        RequestTransport::Http { client, verb, path, status } => {
            (client.to_string(), Some(verb.as_str()), Some(path.as_str()), Some(*status))
        }
        RequestTransport::Stdio => ("stdio".to_owned(), None, None, None),
    };
    let line = Line {
        time: stamp(at),
        principal: request.principal.as_deref(),
        client,
        verb,
        path,
        method: request.method.as_deref(),
        tool: request.tool.as_deref(),
        status,
        error: request.error,
        bytes: request.bytes,
        ms: request.took.as_micros() as f64 / 1e3,
        trace: request.trace.as_ref().map(|trace| format!("{:032x}", trace.own.trace())),
    };
    if serde_json::to_writer(&mut *text, &line).is_ok() {
        text.push(b'\n');
    }
}

/// Formats a time as RFC 3339 in UTC.
fn stamp(at: SystemTime) -> String {
    let micros = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros();
    let time = jiff::Timestamp::from_microsecond(i64::try_from(micros).unwrap_or(i64::MAX));
    time.map(|time| format!("{time:.6}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use toolhub_core::{Lang, Localize as _};

    use super::*;

    fn request_event(number: u64) -> Event {
        let request = AccessRecord {
            principal: Some("ann".into()),
            transport: RequestTransport::Http {
                client: ([127, 0, 0, 1], 4711).into(),
                verb: "POST".to_owned(),
                path: "/mcp".to_owned(),
                status: 200,
            },
            method: Some("tools/call".to_owned()),
            tool: Some("e\"c\nho".to_owned()),
            bytes: number,
            error: None,
            took: Duration::from_micros(1_500),
            trace: None,
        };
        Event { at: SystemTime::UNIX_EPOCH, call: None, kind: EventKind::RequestServed(Box::new(request)) }
    }

    fn ignore_problems() -> ReportProblem {
        Arc::new(|_| {})
    }

    #[test]
    fn writes_one_line_per_request() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let log = AccessLog::open(LogDestination::File(path.clone()), ignore_problems()).unwrap();
        log.emit(request_event(12));
        log.emit(Event::now(None, EventKind::Sending));
        log.close();
        let expected = r#"{"time":"1970-01-01T00:00:00.000000Z","principal":"ann","client":"127.0.0.1:4711","verb":"POST","path":"/mcp","method":"tools/call","tool":"e\"c\nho","status":200,"bytes":12,"ms":1.5}"#;
        assert_eq!(std::fs::read_to_string(path).unwrap(), format!("{expected}\n"));
    }

    #[test]
    fn full_disk_loses_lines_only() {
        let problems = Arc::new(Mutex::new(Vec::new()));
        let reported = Arc::clone(&problems);
        let report_problem: ReportProblem =
            Arc::new(move |text: LocalizedText| reported.lock().unwrap().push(text.localize(Lang::En)));
        let full = LogDestination::File("/dev/full".into());
        let log = AccessLog::open(full, report_problem).unwrap();
        for number in 0..10 {
            log.emit(request_event(number));
        }
        log.close();
        assert_eq!(log.lost().load(Ordering::Relaxed), 10);
        let problems = problems.lock().unwrap();
        assert_eq!(problems.len(), 1, "told once: {problems:?}");
    }
}
