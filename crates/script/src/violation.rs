//! Messages that a host may not send.

/// A message that a host may not send. Only a host that a script has taken over sends one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    Malformed,
    LineTooLong,
    Unexpected,
    CallNumber,
    TooManyCalls,
    UnknownTool,
    Arguments,
    ArgumentsTooLong,
    Sleep,
    LogTooLong,
    OutputTooLong,
}
