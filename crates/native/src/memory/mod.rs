//! Tools for earlier conversations and full results of earlier calls. The store keeps them.

mod conversation;
mod result;

pub use conversation::{HistoryKind, get_conversation_history};
pub use result::read_result;

use std::sync::Arc;

use toolhub_core::ToolError;
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::{HubStore, StoreError};

/// The store, if any.
#[derive(Clone, Default)]
pub struct Memory(Option<Arc<dyn HubStore>>);

impl Memory {
    /// Creates it from a store.
    pub fn of(store: Option<Arc<dyn HubStore>>) -> Self {
        Self(store)
    }

    fn store(&self) -> Result<&dyn HubStore, ToolError> {
        self.0.as_deref().ok_or_else(|| {
            ToolError::failed(LocalizedText::new(
                "nothing is remembered, since there is no store; see `toolhub doctor`",
                "没有可用的存储，因此没有任何记录；见 `toolhub doctor`",
            ))
        })
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Memory").field(&self.0.is_some()).finish()
    }
}

fn store_error(error: &StoreError) -> ToolError {
    ToolError::failed(LocalizedText::new(error.to_string(), format!("存储无法读取：{error}")))
}
