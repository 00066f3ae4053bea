//! JSON-RPC errors and their codes.

use toolhub_core::RawJson;
use toolhub_core::error::METHOD_NOT_FOUND;

/// A JSON-RPC error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    /// The error code.
    pub code: i64,
    /// The error message.
    pub message: String,
    /// Additional data, as JSON.
    pub data: Option<String>,
}

/// The params are invalid.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// The message is not a valid request.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// The message is not valid JSON.
pub(crate) const PARSE_ERROR: i64 = -32700;

/// The result of a request.
pub(crate) type RpcResult = Result<RawJson, RpcError>;

impl RpcError {
    /// Creates an error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Creates an error for invalid params.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// Creates an error for an unknown method.
    pub fn no_method(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("method not found: {method}"))
    }

    /// Adds data to the error.
    #[must_use]
    pub fn with_data(mut self, data: impl Into<RawJson>) -> Self {
        self.data = Some(data.into().get().to_owned());
        self
    }
}
