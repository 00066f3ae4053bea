//! A span: one unit of work within a trace.

use std::sync::Arc;
use std::time::SystemTime;

use toolhub_core::trace::TraceContext;

/// The span kind, with the numbers of OpenTelemetry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

/// The value of an attribute.
#[derive(Debug, Clone)]
pub(super) enum AttributeValue {
    Text(String),
    Number(i64),
    List(Vec<String>),
    Flag(bool),
}

/// A span.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) trace: u128,
    pub(super) number: u64,
    pub(super) parent: Option<u64>,
    pub(super) state: Option<Arc<str>>,
    pub(super) name: String,
    pub(super) kind: SpanKind,
    pub(super) began: SystemTime,
    pub(super) ended: SystemTime,
    pub(super) attributes: Vec<(&'static str, AttributeValue)>,
    /// The error message, if the work failed.
    pub(super) error: Option<String>,
}

impl Span {
    /// Creates a span that starts at `began` and has not ended.
    pub(super) fn at(context: &TraceContext, parent: Option<u64>, began: SystemTime) -> Self {
        Self {
            trace: context.trace(),
            number: context.span(),
            parent,
            state: context.state().map(Arc::from),
            name: String::new(),
            kind: SpanKind::Internal,
            began,
            ended: began,
            attributes: Vec::new(),
            error: None,
        }
    }

    pub(super) fn set_attribute(&mut self, key: &'static str, attribute: impl Into<AttributeValue>) {
        self.attributes.push((key, attribute.into()));
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<i64> for AttributeValue {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for AttributeValue {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<Vec<String>> for AttributeValue {
    fn from(list: Vec<String>) -> Self {
        Self::List(list)
    }
}
