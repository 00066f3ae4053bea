//! The output of a running turn: the turn feeds it with events, and the connection of the client reads its frames. Its size is
//! limited, and counts against the budget of its principal.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use toolhub_mcp_gateway::BudgetPermit;

use crate::chat::assembler::ChatAssembler;
use crate::error::ApiError;
use crate::responses::assembler::ResponseAssembler;
use crate::turn_event::{TurnEnd, TurnEvent};

/// Maximum size of the texts, arguments and results of one turn, in bytes.
const MAX_TURN_BYTES: usize = 16 << 20;

/// The object that is being built.
#[derive(Debug)]
pub(crate) enum Assembler {
    Response(ResponseAssembler),
    Chat(ChatAssembler),
}

impl Assembler {
    fn feed(&mut self, event: TurnEvent) {
        match self {
            Self::Response(response) => response.feed(event),
            Self::Chat(chat) => chat.feed(event),
        }
    }

    fn next_frame(&mut self) -> Option<String> {
        match self {
            Self::Response(response) => response.next_frame(),
            Self::Chat(chat) => chat.next_frame(),
        }
    }
}

/// The output of a turn.
#[derive(Debug)]
pub(crate) struct TurnLog {
    assembler: Mutex<Assembler>,
    changed: Notify,
    size: Mutex<LogSize>,
    /// Why the turn must end, once a limit is reached.
    excess: OnceLock<String>,
    is_full: CancellationToken,
}

#[derive(Debug)]
struct LogSize {
    bytes: usize,
    /// The share of the budget of the principal; `None` after a restart.
    permit: Option<BudgetPermit>,
}

impl TurnLog {
    /// An output that counts against the budget of the permit.
    pub(crate) fn new(assembler: Assembler, permit: Option<BudgetPermit>) -> Self {
        Self {
            assembler: Mutex::new(assembler),
            changed: Notify::new(),
            size: Mutex::new(LogSize { bytes: 0, permit }),
            excess: OnceLock::new(),
            is_full: CancellationToken::new(),
        }
    }

    /// Adds an event. Once a limit is reached, the turn ends and says so; what the model streams after that is left out.
    pub(crate) fn feed(&self, event: TurnEvent) {
        if self.reserve(event.bytes()).is_ok() || !event.is_streamed() {
            self.lock().feed(event);
            self.changed.notify_one();
        }
    }

    /// Counts further bytes. Fails if a limit is reached.
    pub(crate) fn reserve(&self, more: usize) -> Result<(), String> {
        let mut size = self.size.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(why) = self.excess.get() {
            return Err(why.clone());
        }
        let grown = match size.bytes.saturating_add(more) {
            bytes if bytes > MAX_TURN_BYTES => Err(format!(
                "the output has more than {MAX_TURN_BYTES} bytes, the maximum of one response (输出超过单个响应的上限)"
            )),
            bytes => match size.permit.as_mut().map_or(Ok(()), |permit| permit.grow(more)) {
                Ok(()) => Ok(bytes),
                Err(exceeded) => Err(exceeded.to_string()),
            },
        };
        match grown {
            Ok(bytes) => {
                size.bytes = bytes;
                Ok(())
            }
            Err(why) => {
                let why = self.excess.get_or_init(|| why).clone();
                self.is_full.cancel();
                Err(why)
            }
        }
    }

    /// Completes when a limit is reached, with the reason.
    pub(crate) async fn full(&self) -> String {
        self.is_full.cancelled().await;
        self.excess.get().cloned().unwrap_or_default()
    }

    /// The parts of the stream that were not read yet, as one text.
    pub(crate) fn frames(&self) -> Option<String> {
        let mut assembler = self.lock();
        let mut frames = assembler.next_frame()?;
        while let Some(next) = assembler.next_frame() {
            frames.push_str(&next);
        }
        Some(frames)
    }

    /// Waits until something was fed.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Ends the output, and returns the final object.
    pub(crate) fn finish(&self, end: &TurnEnd, now: u64) -> Result<Value, ApiError> {
        match &mut *self.lock() {
            Assembler::Response(response) => Ok(response.finish(end, now)),
            Assembler::Chat(chat) => chat.finish(end),
        }
    }

    /// Reads the response.
    pub(crate) fn with_response<T>(&self, read: impl FnOnce(&ResponseAssembler) -> T) -> Option<T> {
        match &*self.lock() {
            Assembler::Response(response) => Some(read(response)),
            Assembler::Chat(_) => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Assembler> {
        self.assembler.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use toolhub_core::Principal;
    use toolhub_mcp_gateway::{BudgetLimits, BudgetedResource, PrincipalHandle, PrincipalTable};

    use super::*;
    use crate::chat::assembler::ChatHead;
    use crate::turn_event::EndStatus;

    fn log(holder: Option<&PrincipalHandle>) -> TurnLog {
        let head = ChatHead {
            id: String::new(),
            created: 0,
            model: String::new(),
            fingerprint: String::new(),
            includes_usage: false,
            is_stream: false,
        };
        let permit = holder.map(|holder| holder.take(BudgetedResource::Unread, 0).unwrap());
        TurnLog::new(Assembler::Chat(ChatAssembler::new(head)), permit)
    }

    fn text_of(log: &TurnLog) -> usize {
        let status = EndStatus::Limit(String::new());
        let end = TurnEnd { client_calls: Vec::new(), status, usage: Default::default() };
        let body = log.finish(&end, 0).unwrap();
        body["choices"][0]["message"]["content"].as_str().unwrap().len()
    }

    #[tokio::test]
    async fn output_counts_against_the_budget_of_its_principal() {
        let table = PrincipalTable::new(BudgetLimits { unread_bytes: 100, ..BudgetLimits::default() });
        let ann = table.of(&Arc::new(Principal::of_key("ann")));
        let (one, other) = (log(Some(&ann)), log(Some(&ann)));
        one.feed(TurnEvent::Text("x".repeat(60)));
        other.feed(TurnEvent::Text("x".repeat(60)));
        assert!(other.full().await.contains("unread_bytes"));
        one.feed(TurnEvent::Text("x".repeat(40)));
        assert_eq!((text_of(&one), text_of(&other)), (100, 0));
        assert_eq!(ann.used(BudgetedResource::Unread), 100);
        drop((one, other));
        assert_eq!(ann.used(BudgetedResource::Unread), 0);
    }

    #[tokio::test]
    async fn output_is_limited_without_a_budget() {
        let log = log(None);
        for _ in 0..32 {
            log.feed(TurnEvent::Text("x".repeat(1 << 20)));
        }
        assert!(log.full().await.contains("maximum of one response"));
        assert_eq!(text_of(&log), MAX_TURN_BYTES);
    }
}
