//! The call log of a hub without a working store: calls that must be recorded are refused.

use std::time::SystemTime;

use toolhub_core::BoxFuture;
use toolhub_core::call_log::{CallEnd, CallLog, CallStart};
use toolhub_core::lang::LocalizedText;
use toolhub_core::outcome::AttemptRecord;
use toolhub_core::ports::StoreError;

/// Contains the reason why calls cannot be recorded.
pub(crate) struct UnavailableCallLog(pub(crate) LocalizedText);

impl CallLog for UnavailableCallLog {
    fn begin(&self, _: CallStart) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Err(StoreError(self.0.clone()))))
    }

    fn finish(&self, _: CallEnd) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Err(StoreError(self.0.clone()))))
    }

    fn record_finished(&self, _: CallStart, _: CallEnd) {}

    fn should_store_details(&self) -> bool {
        false
    }

    fn count(&self, _: &[AttemptRecord], _: SystemTime) {}
}
