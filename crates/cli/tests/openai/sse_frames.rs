//! Splits a captured body of server-sent events into frames, strictly: only what the OpenAI API uses is accepted.

use serde_json::Value;

/// One event of a stream. Comments are skipped.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    /// The field `event`, if there is one.
    pub(crate) event: Option<String>,
    /// The field `data`.
    pub(crate) data: String,
}

impl Frame {
    /// The data as JSON.
    pub(crate) fn json(&self) -> Result<Value, String> {
        serde_json::from_str(&self.data).map_err(|error| format!("{error} in `{}`", self.data))
    }
}

/// The frames of a body, which must end with the blank line of its last frame.
pub(crate) fn parse(body: &str) -> Result<Vec<Frame>, String> {
    let mut frames = Vec::new();
    let complete = body.strip_suffix("\n\n").ok_or("the stream does not end with a complete event")?;
    for block in complete.split("\n\n") {
        let (mut event, mut data) = (None, None);
        for line in block.lines().filter(|line| !line.starts_with(':')) {
            let (field, value) = line.split_once(": ").ok_or_else(|| format!("not a field: `{line}`"))?;
            let slot = match field {
                "event" => &mut event,
                "data" => &mut data,
                _ => return Err(format!("unexpected field: `{line}`")),
            };
            if slot.replace(value.to_owned()).is_some() {
                return Err(format!("repeated field: `{line}`"));
            }
        }
        match (event, data) {
            (event, Some(data)) => frames.push(Frame { event, data }),
            (None, None) => {}
            (Some(event), None) => return Err(format!("event `{event}` without data")),
        }
    }
    Ok(frames)
}
