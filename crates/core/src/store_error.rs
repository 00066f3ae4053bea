//! The error of a store.

use crate::lang::{Lang, Localize, LocalizedText};

/// The error of a store that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.localize(Lang::En))]
pub struct StoreError(pub LocalizedText);

impl Localize for StoreError {
    fn localize(&self, lang: Lang) -> String {
        let why = self.0.localize(lang);
        lang.choose(format!("the store failed: {why}"), format!("存储出错：{why}"))
    }
}
