//! The vocabulary of toolhub and the ports between its parts: pure data and traits, no I/O and no runtime.

pub mod approval;
pub mod call;
pub mod caller;
pub mod conversation;
pub mod error;
pub mod event;
pub mod event_stream;
pub mod fast_map;
pub mod finder;
pub mod function;
pub mod json;
pub mod lang;
pub mod memory;
pub mod model;
pub mod outcome;
pub mod ports;
pub mod served;
pub mod source;
pub mod statistics;
pub mod text;
pub mod tool;
pub mod trace;

pub use call::{CallBy, CallId, Mending, ToolCall};
pub use caller::{Caller, CallerLink};
pub use error::{Effect, ToolError};
pub use event::{Event, EventKind};
pub use fast_map::FastMap;
pub use function::{IntoOutput, NativeTool};
pub use json::{RawJson, RawObject};
pub use lang::{Lang, Say};
pub use outcome::{Outcome, ToolOutput};
pub use ports::{BoxFuture, CallContext, EventSink, ToolHost};
pub use served::{RequestWay, ServedRequest};
pub use source::{ServerId, Source};
pub use tool::{Hints, Tool, ToolDefinition, ToolName};
pub use trace::TraceContext;
