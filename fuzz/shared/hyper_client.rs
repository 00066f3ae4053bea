//! hyper's client as the reference implementation of HTTP/1.1 for differential fuzzing of responses.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use http::Request;
use hyper::body::Body as _;

use super::hyper_peer::{Empty, Message, Polling, Script};

/// The result of hyper's client for the response to one `POST`.
#[derive(Debug, Default)]
pub(crate) struct ReadResponse {
    /// `None` if no head was parsed.
    pub(crate) message: Option<Message>,
    /// Whether the head or the body was rejected.
    pub(crate) failed: bool,
    /// Whether another request may be sent over the connection.
    pub(crate) reusable: bool,
}

/// Parses the response to one `POST` with hyper's client.
pub(crate) fn answer(input: &[&[u8]], closes: bool) -> ReadResponse {
    let mut script = Script::new(input);
    (script.closes, script.is_answer) = (closes, true);
    let mut answer = ReadResponse::default();
    let mut polling = Polling::default();
    let mut handshake = pin!(hyper::client::conn::http1::handshake(script));
    let mut made = None;
    polling.run(|context| match handshake.as_mut().poll(context) {
        Poll::Ready(done) => {
            made = done.ok();
            true
        }
        Poll::Pending => false,
    });
    let Some((mut sender, connection)) = made else { return answer };
    let mut connection = pin!(connection);
    let mut over = false;
    let request = Request::post("/mcp").header("host", "localhost").body(Empty).unwrap_or_default();
    let mut response = pin!(sender.send_request(request));
    let mut body = None;
    polling.run(|context| {
        over = over || connection.as_mut().poll(context).is_ready();
        match response.as_mut().poll(context) {
            Poll::Pending => false,
            Poll::Ready(Err(_)) => {
                answer.failed = true;
                true
            }
            Poll::Ready(Ok(response)) => {
                let (head, incoming) = response.into_parts();
                let start = head.status.as_u16().to_string();
                answer.message = Some(Message { start, headers: head.headers, ..Message::default() });
                body = Some(incoming);
                true
            }
        }
    });
    let (Some(mut body), Some(message)) = (body, &mut answer.message) else { return answer };
    polling.run(|context| {
        over = over || connection.as_mut().poll(context).is_ready();
        loop {
            match Pin::new(&mut body).poll_frame(context) {
                Poll::Pending => return false,
                Poll::Ready(None) => {
                    message.complete = true;
                    return true;
                }
                Poll::Ready(Some(Err(_))) => {
                    answer.failed = true;
                    return true;
                }
                Poll::Ready(Some(Ok(frame))) => {
                    message.body.extend_from_slice(&frame.into_data().unwrap_or_default());
                }
            }
        }
    });
    if message.complete {
        polling.run(|context| {
            over = over || connection.as_mut().poll(context).is_ready();
            over
        });
        let context = &mut Context::from_waker(Waker::noop());
        answer.reusable = !over && matches!(sender.poll_ready(context), Poll::Ready(Ok(())));
    }
    answer
}
