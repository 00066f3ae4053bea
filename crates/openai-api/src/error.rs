//! Errors in the form of the API: `{"error": {"message", "type", "param", "code"}}`.

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};

/// An error of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    /// The parameter that is wrong.
    pub(crate) param: Option<String>,
    pub(crate) code: Option<&'static str>,
    /// Seconds after which the request may be repeated.
    pub(crate) retry_after: Option<u16>,
    /// Whether client libraries must not repeat the request by themselves.
    pub(crate) is_final: bool,
}

/// Client libraries of the API repeat a request with this status or not, as this header says.
const SHOULD_RETRY: &str = "x-should-retry";
/// Maximum length of a message and of the name of a parameter. They may repeat a text of the request.
const MAX_MESSAGE_BYTES: usize = 4_096;

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            message: shortened(message.into()),
            param: None,
            code: Some(code),
            retry_after: None,
            is_final: false,
        }
    }

    /// A parameter with a wrong value.
    pub(crate) fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        let error = Self::new(StatusCode::BAD_REQUEST, "invalid_value", message);
        Self { param: Some(shortened(param.into())), ..error }
    }

    /// A turn that failed after a call that may have changed something. Repeating the request would repeat the call, so the
    /// status is one that client libraries do not repeat by themselves.
    pub(crate) fn after_change(why: &str) -> Self {
        let message = format!(
            "{why}; tools had run before and may have changed something: check that before you send the request again \
             (失败前已运行过可能改动数据的工具，重新发送前请先确认)"
        );
        let error = Self::new(StatusCode::FAILED_DEPENDENCY, "failed_after_change", message);
        Self { is_final: true, ..error }
    }

    /// A request of the hub to itself.
    pub(crate) fn own_model() -> Self {
        let message = "the language model of this hub is the hub itself: set `url` in `[llm]`, or `OPENAI_BASE_URL` of the hub's \
                       environment, to the address of a model server (hub 的语言模型指向了 hub 自身：请将 `[llm]` 的 `url` 或 hub 环境中的 \
                       `OPENAI_BASE_URL` 设为模型服务器的地址)";
        let error = Self::new(StatusCode::LOOP_DETECTED, "own_model", message);
        Self { is_final: true, ..error }
    }

    /// A repetition of a request whose tools may have changed something.
    pub(crate) fn repetition() -> Self {
        let message = "not run again: this is an automatic repetition of a request that was cut off after tools had run that may have \
                       changed something; check that, then send it as a new request (未再次执行：这是自动重试，原请求中断前已运行过可能产生影响的\
                       工具，请确认后重新发送)";
        let error = Self::new(StatusCode::FAILED_DEPENDENCY, "repeated_after_change", message);
        Self { is_final: true, ..error }
    }

    /// A parameter that this endpoint does not support.
    pub(crate) fn unsupported(param: &str, why: &str) -> Self {
        let message = format!("`{param}` is not supported here: {why} (此处不支持 `{param}`)");
        Self { code: Some("unsupported_parameter"), ..Self::invalid(param, message) }
    }

    pub(crate) fn not_found(what: &str, id: &str) -> Self {
        let message = format!("there is no {what} `{id}`, or it has expired (没有 `{id}`，或已过期)");
        Self { code: Some("not_found"), ..Self::new(StatusCode::NOT_FOUND, "not_found", message) }
    }

    /// A failure of the hub itself.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message)
    }

    /// The value of `error`.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "message": self.message,
            "type": kind(self.status),
            "param": self.param,
            "code": self.code,
        })
    }

    pub(crate) fn into_response(self) -> Response<Body> {
        let mut response = json_response(self.status, &json!({ "error": self.to_json() }));
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.is_final {
            response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        response
    }
}

/// The beginning of a text that is too long.
fn shortened(mut text: String) -> String {
    if text.len() > MAX_MESSAGE_BYTES {
        text.truncate(text.floor_char_boundary(MAX_MESSAGE_BYTES));
        text.push('…');
    }
    text
}

/// The type of errors with a status.
fn kind(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    }
}

/// The body of an error of the server itself.
pub(crate) fn body(status: StatusCode, message: &str) -> String {
    let code = match status.as_u16() {
        401 => Some("invalid_api_key"),
        413 => Some("request_too_large"),
        415 => Some("unsupported_content_encoding"),
        429 => Some("rate_limit_exceeded"),
        _ => None,
    };
    json!({ "error": { "message": message, "type": kind(status), "param": null, "code": code } }).to_string()
}

pub(crate) fn json_response(status: StatusCode, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
