//! toolhub as a library: one [`Hub`] in front of native tools, skills and MCP servers.
//!
//! ```no_run
//! use serde_json::json;
//! use toolhub::{Hub, ToolCall, ToolError, tool};
//!
//! /// Current weather for a city.
//! #[tool(read_only)]
//! async fn weather(#[doc = "City name"] city: String, days: Option<u8>) -> Result<String, ToolError> {
//!     Ok(format!("{city}: sunny for {} days", days.unwrap_or(1)))
//! }
//!
//! # async fn example() -> Result<(), toolhub::BuildError> {
//! let hub = Hub::builder().config("toolhub.toml").tool(weather).build().await?;
//! let outcome = hub.call(ToolCall::new("weather", json!({"city": "Kyoto"}))).await;
//! assert!(outcome.success());
//! hub.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod access_control;
mod agent_setup;
mod approvals;
mod approved;
mod audit_trail;
mod builder;
mod call_tree;
#[cfg(feature = "postgres")]
mod cluster;
#[cfg(feature = "postgres")]
mod cluster_reading;
mod cluster_status;
mod daily_budgets;
mod discovery;
mod disk_space;
mod failures;
pub mod features;
mod finder;
mod gateway;
pub mod held_calls;
mod hub;
mod key_changes;
pub mod keys;
mod list_refresh;
mod listeners;
mod login;
mod memory;
mod model;
mod models;
mod process_sandbox;
mod program_path;
mod progress;
mod reload;
mod replica;
mod resources;
mod rule_check;
#[cfg(unix)]
mod running_hub;
mod script;
mod server_hosts;
mod server_restart;
mod server_set;
mod server_view;
pub mod settings;
mod shared_changes;
mod skills;
mod tool_switch;
pub mod trust;
mod unavailable_call_log;
#[cfg(not(feature = "postgres"))]
mod without_cluster;
#[cfg(feature = "postgres")]
mod worker_skills;

pub use access_control::{AccessControl, KnownKey};
pub use agent_setup::{AskError, AskOptions, ModelSelection};
pub use builder::{BuildError, HubBuilder};
pub use call_tree::script_code;
#[cfg(feature = "postgres")]
pub use cluster::{ClusterWorker, cluster_status};
pub use cluster_status::{ClusterError, ClusterStatus, WorkerOverrides};
pub use disk_space::free_bytes;
pub use gateway::{
    AgentTurn, DirectAnswer, DirectCall, DirectClient, Gateways, NotificationBus, OfferedLookup, OfferedTool,
    ToolUse, TurnError,
};
pub use hub::Hub;
pub use listeners::Listeners;
pub use login::LoginError;
pub use models::ChosenModel;
pub use program_path::program_path;
pub use progress::ListingProgress;
pub use reload::ServerChanges;
#[cfg(unix)]
pub use running_hub::{HubSocket, LiveServers, live_servers, restart_at_hubs, running_hubs};
pub use script::{DryRun, DryRunCall, ResumeError, declaration_of, script_failure};
pub use server_view::ServerView;
pub use skills::SkillChange;
pub use tool_switch::switch_tool;
pub use toolhub_agent::{
    AgentMode, AllowAll, Answer, ArgumentSource, CallDecision, CallSupervisor, ChangeSummary, Confirmation,
    DenyAll, PermissionDecision, Plan, PlanStep, StepResult, SupervisedCall, TurnFailure, TurnRequest,
    TurnResult,
};
pub use toolhub_core::model::{LanguageModel, ReplyDelta};
pub use toolhub_core::{
    CallContext, CallId, Coercion, Event, EventKind, EventSink, IntoOutput, Lang, Localize, NativeTool,
    Outcome, RawJson, Source, ToolCall, ToolError, ToolOutput, function::Json,
};
pub use toolhub_engine::{Catalog, Route, RouteRequest};
pub use toolhub_llm::discover::NoModel;
pub use toolhub_macros::tool;
pub use toolhub_mcp_client::{ClientHandler, HandlerAnswer, RejectingHandler, ServerState};
pub use toolhub_mcp_wire::Offer;
pub use toolhub_oauth::OAuthError;
pub use toolhub_oauth::resource_server::{BegunLogin, LoginResponse, Person, TokenError};
pub use toolhub_script::HostConfig as ScriptHost;
#[cfg(not(feature = "postgres"))]
pub use without_cluster::{ClusterWorker, cluster_status};

/// Re-exports for the code that `#[tool]` generates. Not part of the public API.
#[doc(hidden)]
pub mod __private {
    pub use toolhub_core as core;
    pub use {schemars, serde, serde_json};
}
