//! The language model of a hub.

use std::sync::Arc;

use toolhub_core::model::LanguageModel;
use toolhub_llm::discover::NoModel;

use crate::hub::Hub;
use crate::models::ChosenModel;

impl Hub {
    /// The language model, if there is one. The first call searches for it, which may take a moment. It is normal that there is
    /// none.
    pub async fn model(&self) -> Option<Arc<dyn LanguageModel>> {
        self.chosen_model().await.ok().map(|chosen| Arc::clone(&chosen.model))
    }

    /// The model with that name at the configured endpoint, or why there is none.
    pub async fn model_named(&self, name: &str) -> Result<Arc<dyn LanguageModel>, NoModel> {
        self.models.named(name).await.map(|chosen| chosen.model)
    }

    /// The model in use with the reason for its choice, or why there is none.
    pub async fn chosen_model(&self) -> Result<&ChosenModel, NoModel> {
        self.models.chosen().await
    }
}
