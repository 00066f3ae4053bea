//! Parser for server-sent events, independent of the transport; input may be split anywhere.

use std::time::Duration;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// The event type; empty for the default, `message`.
    pub kind: String,
    /// Its data lines, joined.
    pub data: String,
    /// Its id, if it has one.
    pub id: Option<String>,
    /// The reconnection time that the server requests.
    pub retry: Option<Duration>,
}

/// Incremental parser of events.
#[derive(Debug, Default)]
pub struct SseParser {
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    after_cr: bool,
    started: bool,
}

impl SseParser {
    /// Number of buffered bytes of an incomplete event.
    pub fn buffered_bytes(&self) -> usize {
        self.line.len() + self.event.data.len()
    }

    /// Consumes bytes and returns the events they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<SseEvent> {
        let mut events = Vec::new();
        for &byte in bytes {
            let after_cr = std::mem::take(&mut self.after_cr);
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => {
                    self.after_cr = byte == b'\r';
                    self.end_line(&mut events);
                }
                _ => self.line.push(byte),
            }
        }
        events
    }

    fn end_line(&mut self, events: &mut Vec<SseEvent>) {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let mut line: &str = &text;
        if !std::mem::replace(&mut self.started, true) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            // An event without data is not dispatched, but its `id` and `retry` still apply.
            if std::mem::take(&mut self.has_data) || event.id.is_some() || event.retry.is_some() {
                events.push(event);
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.kind),
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "retry" => self.event.retry = value.parse().ok().map(Duration::from_millis).or(self.event.retry),
            // Ignores comments and unknown fields.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STREAM: &str = "\u{feff}: hello\r\nevent: message\nid: 1\ndata: {\"a\":\ndata: \"中文\"}\n\ndata:x\r\rid: 9\n\ndata\n\n";

    fn expected_events() -> Vec<SseEvent> {
        SseParser::default().push(STREAM.as_bytes())
    }

    #[test]
    fn parses_events() {
        let event = |kind: &str, data: &str, id: Option<&str>| SseEvent {
            kind: kind.to_owned(),
            data: data.to_owned(),
            id: id.map(str::to_owned),
            retry: None,
        };
        assert_eq!(
            expected_events(),
            [
                event("message", "{\"a\":\n\"中文\"}", Some("1")),
                event("", "x", None),
                event("", "", Some("9")),
                event("", "", None),
            ]
        );
    }

    #[test]
    fn parses_equally_at_any_split() {
        for at in 0..=STREAM.len() {
            let mut parser = SseParser::default();
            let mut events = parser.push(&STREAM.as_bytes()[..at]);
            events.extend(parser.push(&STREAM.as_bytes()[at..]));
            assert_eq!(events, expected_events(), "split at {at}");
        }
    }

    proptest! {
        #[test]
        fn parses_arbitrary_bytes_equally_at_any_split(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0_usize..200) {
            let cut = cut.min(bytes.len());
            let mut parser = SseParser::default();
            let mut pieces = parser.push(&bytes[..cut]);
            pieces.extend(parser.push(&bytes[cut..]));
            prop_assert_eq!(pieces, SseParser::default().push(&bytes));
        }
    }
}
