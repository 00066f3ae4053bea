//! A message as it arrives: one piece is taken as it is, several are put together, and no more than may be.

use std::future::poll_fn;
use std::pin::Pin;

use axum::body::{Body, HttpBody as _};
use bytes::{Bytes, BytesMut};

/// It is longer than may be, or broke off.
#[derive(Debug)]
pub(crate) struct Unfit;

/// All of a body, of at most so many bytes.
pub(crate) async fn whole(mut body: Body, most: usize) -> Result<Bytes, Unfit> {
    let (mut first, mut all) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let Ok(data) = frame.map_err(|_| Unfit)?.into_data() else { continue };
        if first.len() + all.len() + data.len() > most {
            return Err(Unfit);
        }
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            if all.is_empty() {
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&data);
        }
        if body.is_end_stream() {
            break;
        }
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;

    use super::*;

    async fn read(pieces: &[&'static str], most: usize) -> Option<Bytes> {
        let pieces: Vec<_> =
            pieces.iter().map(|piece| Ok::<_, Infallible>(Bytes::from_static(piece.as_bytes()))).collect();
        whole(Body::from_stream(stream::iter(pieces)), most).await.ok()
    }

    #[tokio::test]
    async fn pieces_are_put_together_up_to_a_limit() {
        assert_eq!(read(&[], 5).await.unwrap(), "");
        assert_eq!(read(&["hello"], 5).await.unwrap(), "hello");
        assert_eq!(read(&["he", "l", "", "lo"], 5).await.unwrap(), "hello");
        assert!(read(&["hello", "!"], 5).await.is_none());
        assert!(read(&["hello!"], 5).await.is_none());
        assert_eq!(whole(Body::from("hello"), 5).await.unwrap(), "hello");
    }
}
