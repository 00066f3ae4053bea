//! The log of a hub whose store cannot be used: nothing can be written down, so what must be is refused.

use std::time::SystemTime;

use toolhub_core::BoxFuture;
use toolhub_core::lang::Text;
use toolhub_core::memory::{CallEnd, CallLog, CallStart};
use toolhub_core::outcome::AttemptRecord;
use toolhub_core::ports::StoreError;

/// Why nothing can be written down.
pub(crate) struct Unrecorded(pub(crate) Text);

impl CallLog for Unrecorded {
    fn begin(&self, _: CallStart) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Err(StoreError(self.0.clone()))))
    }

    fn finish(&self, _: CallEnd) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Err(StoreError(self.0.clone()))))
    }

    fn note(&self, _: CallStart, _: CallEnd) {}

    fn wants_details(&self) -> bool {
        false
    }

    fn count(&self, _: &[AttemptRecord], _: SystemTime) {}
}
