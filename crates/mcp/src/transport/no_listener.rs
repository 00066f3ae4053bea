//! An inbox for tests that ignores all messages.

use toolhub_core::{BoxFuture, RawJson};

use super::Inbox;

pub(super) struct NoListener;

impl Inbox for NoListener {
    fn request(
        &self,
        _method: String,
        _params: Option<RawJson>,
        _via: Option<u64>,
    ) -> BoxFuture<'_, Result<RawJson, (i64, String)>> {
        Box::pin(std::future::ready(Ok(RawJson::empty_object())))
    }

    fn notification(&self, _method: &str, _params: Option<&RawJson>, _via: Option<u64>) {}

    fn oddity(&self, _detail: String) {}

    fn has_clients(&self) -> bool {
        false
    }
}
