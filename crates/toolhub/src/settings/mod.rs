//! The configuration: the locations of its files, their contents, and how the files are merged.

mod agents;
mod audit;
mod auth;
mod bind;
mod cluster;
mod edit;
mod known_keys;
mod llm;
mod openai;
mod paths;
mod profiles;
mod restart_sections;
mod sandbox;
mod schema;
mod script;
mod search;
mod serve;
mod server_entry;
mod server_members;
mod servers;
mod size;
mod skills;
mod span;
mod store;
mod telemetry;
mod toml;
mod web_search;

pub use agents::{AgentSettings, DEFAULT_AGENT, ModeName};
pub use audit::AuditSettings;
pub use auth::{
    AuthSettings, IntrospectionSettings, IssuerSettings, OneOrMany, RevokedKey, TokenSettings, parse_time,
};
pub use bind::BindAddress;
pub use cluster::{ClusterSettings, RunLocation, WorkerSettings};
pub use edit::{MaskedConfig, check_config};
pub use llm::LlmSettings;
pub use openai::OpenAiSettings;
pub use paths::{Paths, PathsError};
pub use profiles::{DEFAULT_PROFILE, Expose, ProfileSettings, ToolOverride};
pub use restart_sections::RestartSections;
pub use sandbox::{ProtectionName, SandboxSetting};
pub use schema::schema;
pub use script::ScriptSettings;
pub use search::SearchSettings;
pub use serve::{DEFAULT_BIND, ServeSettings};
pub use server_entry::ServerEntryEditor;
pub use servers::{folder_note, load_servers};
pub use size::ByteSize;
pub use skills::SkillSettings;
pub use span::DurationSetting;
pub use store::{DetailName, DurabilityName, StoreSettings};
pub use telemetry::TelemetrySettings;
pub use toml::{
    ApprovalSettings, LimitSettings, NativeSettings, ResultLimits, RoutingSettings, ServerExtras, Settings,
    StrategyName,
};
pub use toolhub_client_config::ConfigError;
pub use web_search::WebSearchSettings;
