//! Messages in the Harmony format of gpt-oss: a channel, an optional recipient, then the message. A message with a
//! recipient is a call; the channel `analysis` contains thoughts.

use super::expression::ParseContext;
use super::parsed_call::{Name, ParsedCall};
use super::tag::{Tag, find_tag};

/// The kind of a message.
#[derive(Debug)]
pub(super) enum MessageKind {
    Call(Box<ParsedCall>, usize),
    Thought(usize),
    /// The header of a message to the user.
    Header(usize),
}

/// Maximum length of a header, in bytes.
const MAX_HEADER_BYTES: usize = 200;

impl<'s, 't> ParseContext<'s, 't> {
    /// Parses the message whose header starts with `tag`: `<|channel|>` or `<|start|>`.
    pub(super) fn message(&self, tag: &Tag<'t>) -> Option<MessageKind> {
        if !tag.special || tag.closing || !matches!(tag.name.as_str(), "channel" | "start") {
            return None;
        }
        let body = find_tag(self.source, tag.end, |tag| tag.special && tag.name == "message")?;
        let header = self.source.slice(tag.start, body.start);
        if header.len() > MAX_HEADER_BYTES {
            return None;
        }
        if let Some((_, recipient)) = header.split_once("to=") {
            let end = recipient.find(|character: char| character.is_whitespace() || character == '<');
            let name = Name::read(recipient.get(..end.unwrap_or(recipient.len()))?, self.known)?;
            let start = self.source.skip_space(body.end);
            let stop = self.message_end(start);
            let repaired = self.json_at(start, stop.0).filter(|repaired| repaired.json.is_object())?;
            let mut call = ParsedCall::new(name, repaired.json);
            call.repairs.join(repaired.repairs);
            call.ending = repaired.ending;
            return Some(MessageKind::Call(Box::new(call), stop.1.max(repaired.end)));
        }
        if header.contains("analysis") {
            return Some(MessageKind::Thought(self.message_end(body.end).1));
        }
        Some(MessageKind::Header(body.end))
    }

    /// The end of a message: the offsets before and after its closing token.
    fn message_end(&self, at: usize) -> (usize, usize) {
        let ends = |tag: &Tag<'t>| {
            tag.special && matches!(tag.name.as_str(), "end" | "call" | "return" | "start" | "channel")
        };
        match find_tag(self.source, at, ends) {
            Some(tag) if matches!(tag.name.as_str(), "start" | "channel") => (tag.start, tag.start),
            Some(tag) => (tag.start, tag.end),
            None => (self.source.len(), self.source.len()),
        }
    }
}
