//! Writes the journal: one line per message or event, each in a single write to a file opened for appending, so that
//! several processes can share it.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, value::RawValue};

use super::message::{one_line, quote};

/// The journal of this process; without a file it discards everything.
#[derive(Debug)]
pub(super) struct Recorder {
    file: Option<File>,
}

impl Recorder {
    pub(super) fn open(path: Option<&Path>) -> Result<Self, String> {
        let file = path.map(append).transpose();
        Ok(Self { file: file.map_err(|error| format!("cannot open the journal: {error}"))? })
    }

    /// Records a received message; `headers` over HTTP. Input that is not JSON is recorded as text.
    pub(super) fn message(&self, text: &str, headers: Option<&Value>) {
        let headers = headers.map(|headers| format!(r#","headers":{headers}"#)).unwrap_or_default();
        match serde_json::from_str::<&RawValue>(text) {
            Ok(raw) => self.line(&format!(r#""message":{}{headers}"#, one_line(raw.get()))),
            Err(_) => self.line(&format!(r#""invalid":{}{headers}"#, quote(text))),
        }
    }

    /// Records an event, with its details as an object.
    pub(super) fn event(&self, name: &str, details: &Value) {
        let details: String = match details {
            Value::Object(members) => {
                members.iter().map(|(key, value)| format!(",{}:{value}", quote(key))).collect()
            }
            _ => String::new(),
        };
        self.line(&format!(r#""event":{}{details}"#, quote(name)));
    }

    fn line(&self, members: &str) {
        let Some(mut file) = self.file.as_ref() else { return };
        let line = format!("{{{},{members}}}\n", stamp());
        // A failure is detected by the test that reads the journal.
        _ = file.write_all(line.as_bytes());
    }
}

/// Appends a line to a file given in the script: proof that a call was executed.
pub(super) fn count(path: &Path, id: Option<&str>) -> io::Result<()> {
    let line = format!("{{{},\"id\":{}}}\n", stamp(), id.unwrap_or("null"));
    append(path)?.write_all(line.as_bytes())
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn stamp() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    format!(r#""t_ms":{now},"pid":{}"#, std::process::id())
}
