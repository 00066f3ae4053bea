//! The language model: found and created on first use, and used by the engine for merging results.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;
use toolhub_core::lang::LocalizedText;
use toolhub_core::model::{LanguageModel, ModelError};
use toolhub_core::ports::{BoxFuture, MergeRequest, Synthesizer};
use toolhub_core::{Localize as _, ToolError};
use toolhub_llm::discover::{ModelChoice, NoModel, discover_model};
use toolhub_llm::text_model::TextModel;
use toolhub_llm::{ModelClient, ToolCalls, merge_results};

use crate::settings::LlmSettings;

/// The model in use, and the reason for the choice.
#[derive(Debug, Clone)]
pub struct ChosenModel {
    /// The model.
    pub model: Arc<dyn LanguageModel>,
    /// The reason for the choice.
    pub why: LocalizedText,
    /// The client, if the hub created the model.
    client: Option<Arc<ModelClient>>,
}

impl ChosenModel {
    /// A model that was passed to the builder.
    pub(crate) fn provided(model: Arc<dyn LanguageModel>) -> Self {
        let why = LocalizedText::new("given by the program that uses toolhub", "由使用 toolhub 的程序提供");
        Self { model, why, client: None }
    }

    /// The models that its endpoint lists; `None` for a model of the builder.
    pub async fn listed(&self, timeout: Duration) -> Option<Result<Vec<String>, ModelError>> {
        Some(self.client.as_ref()?.models(timeout).await)
    }

    /// Its name at the endpoint, if available.
    pub fn wire_name(&self) -> Option<&str> {
        Some(&self.client.as_ref()?.endpoint().model)
    }
}

/// Finds and caches the hub's model.
#[derive(Debug)]
pub(crate) struct Models {
    settings: Option<LlmSettings>,
    /// The model, once found. A failure is not cached: a local model may be started at any time.
    chosen: OnceCell<ChosenModel>,
    /// Other models of the endpoint, by name: those of agents. A client of its own for each request would open connections
    /// anew.
    named: Mutex<HashMap<String, ChosenModel>>,
}

/// Maximum number of cached models.
const MAX_NAMED_MODELS: usize = 64;

impl Models {
    pub(crate) fn new(settings: Option<LlmSettings>, provided: Option<ChosenModel>) -> Arc<Self> {
        Arc::new(Self { settings, chosen: OnceCell::new_with(provided), named: Mutex::default() })
    }

    /// Whether the owner configured a model, which enables merging of results. A key in the environment is not enough, since
    /// results of tools would be sent to the provider of the key.
    pub(crate) fn is_wanted(&self) -> bool {
        self.chosen.initialized() || self.settings.as_ref().is_some_and(LlmSettings::is_enabled)
    }

    pub(crate) async fn chosen(&self) -> Result<&ChosenModel, NoModel> {
        self.chosen.get_or_try_init(|| self.find()).await
    }

    async fn find(&self) -> Result<ChosenModel, NoModel> {
        self.find_named(None).await
    }

    /// The model with that name, found once.
    pub(crate) async fn named(&self, name: &str) -> Result<ChosenModel, NoModel> {
        let named = || self.named.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = named().get(name).cloned();
        if let Some(cached) = cached {
            return Ok(cached);
        }
        let chosen_model = self.find_named(Some(name)).await?;
        let mut named = named();
        if named.len() < MAX_NAMED_MODELS {
            named.insert(name.to_owned(), chosen_model.clone());
        }
        Ok(chosen_model)
    }

    /// The model with that name, at the configured endpoint.
    pub(crate) async fn find_named(&self, name: Option<&str>) -> Result<ChosenModel, NoModel> {
        if self.settings.as_ref().is_some_and(|settings| !settings.is_enabled()) {
            let why = LocalizedText::new(
                "`[llm] enabled = false` in the config",
                "配置中的 `[llm] enabled = false`",
            );
            return Err(NoModel::NotSetUp { why });
        }
        let lookup = |name: &str| std::env::var(name).ok();
        let mut choice = match &self.settings {
            Some(settings) => settings.choice(&lookup).map_err(|why| NoModel::Wrong { why })?,
            None => ModelChoice::default(),
        };
        choice.model = name.map(str::to_owned).or(choice.model);
        let discovered_model = discover_model(&choice, &lookup).await?;
        let client = Arc::new(ModelClient::new(discovered_model.endpoint));
        Ok(ChosenModel {
            model: into_dyn(Arc::clone(&client)),
            why: discovered_model.why,
            client: Some(client),
        })
    }
}

/// Wraps a client according to its configuration: for a model without native tool calls, they are written as text.
fn into_dyn(client: Arc<ModelClient>) -> Arc<dyn LanguageModel> {
    match client.endpoint().tool_calls {
        ToolCalls::Native => Arc::new(TextModel::occasional(client)),
        ToolCalls::Text => Arc::new(TextModel::new(client)),
    }
}

/// Merges results with the hub's model.
pub(crate) struct ModelMerger(pub(crate) Arc<Models>);

impl Synthesizer for ModelMerger {
    fn merge(&self, request: MergeRequest) -> BoxFuture<'_, Result<String, ToolError>> {
        Box::pin(async move {
            let failed = |message: LocalizedText| ToolError::Failed { message, output: None };
            let chosen = self.0.chosen().await.map_err(|none| failed(none.why().clone()))?;
            let merged = merge_results(chosen.model.as_ref(), &request).await;
            merged.map_err(|error| {
                failed(LocalizedText::new(
                    error.localize(toolhub_core::Lang::En),
                    error.localize(toolhub_core::Lang::Zh),
                ))
            })
        })
    }
}
