//! The JSON body of a response. A result is serialized only when it is written: nearly every response is one, and is
//! appended directly to its HTTP head.

use bytes::Bytes;
use toolhub_core::RawJson;

use crate::budget::QuotaExceeded;
use crate::message::error_response;
use crate::rpc_error::{RpcError, RpcResult};

/// Results longer than this are sent without copying.
const MAX_COPIED_BYTES: usize = 16 << 10;
/// The constant parts around an id and a result.
const RESULT_PARTS: [&str; 3] = [r#"{"jsonrpc":"2.0","id":"#, r#","result":"#, "}"];

/// The body of a response.
#[derive(Debug, Default)]
pub enum ResponseBody {
    /// An empty body.
    #[default]
    None,
    /// A serialized JSON text.
    Text(String),
    /// The successful result of a request.
    Result {
        /// The request id.
        id: RawJson,
        /// The result.
        result: RawJson,
    },
}

impl ResponseBody {
    /// Creates the body for the result of a request.
    pub(super) fn of(id: RawJson, outcome: RpcResult) -> Self {
        match outcome {
            Ok(result) => Self::Result { id, result },
            Err(error) => Self::error_response(Some(&id), &error),
        }
    }

    pub(super) fn error_response(id: Option<&RawJson>, error: &RpcError) -> Self {
        Self::Text(error_response(id, error))
    }

    /// Returns the error that replaces this body if the principal's budget of unread bytes is exhausted.
    pub fn dropped(&self, exceeded: QuotaExceeded) -> Self {
        let id = if let Self::Result { id, .. } = self { Some(id) } else { None };
        let why = format!("the request was executed, but its answer was dropped: {exceeded}");
        Self::error_response(id, &RpcError { message: why, ..exceeded.into() })
    }

    /// Returns the parts of the text in order.
    pub fn parts(&self) -> [&str; 5] {
        match self {
            Self::None => [""; 5],
            Self::Text(text) => [text, "", "", "", ""],
            Self::Result { id, result } => {
                [RESULT_PARTS[0], id.get(), RESULT_PARTS[1], result.get(), RESULT_PARTS[2]]
            }
        }
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }

    /// Returns whether the body is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Converts the body into owned pieces. A long result is not copied.
    pub fn into_pieces(self) -> Vec<Bytes> {
        match self {
            Self::None => Vec::new(),
            Self::Result { id, result } if result.get().len() > MAX_COPIED_BYTES => {
                let [prefix, middle, suffix] = RESULT_PARTS.map(|text| Bytes::from_static(text.as_bytes()));
                vec![prefix, id.into_bytes(), middle, result.into_bytes(), suffix]
            }
            short => vec![Bytes::from(short.parts().concat())],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_parts_and_pieces_agree() {
        let check = |body: ResponseBody, expect: &str| {
            assert_eq!((body.parts().concat().as_str(), body.len()), (expect, expect.len()));
            assert_eq!(body.is_empty(), expect.is_empty());
            assert_eq!(String::from_utf8(body.into_pieces().concat()).unwrap(), expect);
        };
        let long = RawJson::from("x".repeat(MAX_COPIED_BYTES));
        let result = |id: &str, result: &RawJson| {
            let id = RawJson::from(id);
            (
                ResponseBody::of(id.clone(), Ok(result.clone())),
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
            )
        };
        for (body, expect) in [result("a\"b", &RawJson::empty_object()), result("l", &long)] {
            check(body, &expect);
        }
        assert_eq!(result("l", &long).0.into_pieces().len(), 5);
        let error = RpcError::new(-32000, "no");
        let refused = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"no"}}"#;
        check(ResponseBody::of(RawJson::from(7), Err(error)), refused);
        check(ResponseBody::None, "");
    }
}
