//! The contents of `toolhub.toml`. Unknown keys are ignored here; `known_keys` reports them.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};
use toolhub_client_config::ConfigError;
use toolhub_core::Localize as _;
use toolhub_core::approval::Pin;
use toolhub_core::lang::LocalizedText;
use toolhub_core::source::SourceKind;
use toolhub_core::{Hints, OAuthSpec, ServerId};
use toolhub_engine::{OutputLimits, RoutingPolicy, Strategy};
use toolhub_mcp_client::config::{Credentials, Instances};
use toolhub_mcp_wire::Era;
use toolhub_native::WebSearch;

use super::agents::AgentSettings;
use super::audit::AuditSettings;
use super::auth::AuthSettings;
use super::cluster::{ClusterSettings, WorkerSettings};
use super::known_keys::{misplaced_tokens, unknown_keys};
use super::llm::LlmSettings;
use super::openai::OpenAiSettings;
use super::paths::Paths;
use super::profiles::ProfileSettings;
use super::restart_sections::RestartSections;
use super::sandbox::SandboxSetting;
use super::script::ScriptSettings;
use super::search::SearchSettings;
use super::serve::ServeSettings;
use super::skills::SkillSettings;
use super::span::DurationSetting;
use super::store::StoreSettings;
use super::telemetry::TelemetrySettings;
use super::web_search::WebSearchSettings;

/// The settings.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Agents by name.
    pub agents: BTreeMap<String, AgentSettings>,
    /// Profiles of the gateway by name.
    pub profiles: BTreeMap<String, ProfileSettings>,
    /// The address and limits of the gateway.
    pub serve: ServeSettings,
    /// The accepted tokens.
    pub auth: AuthSettings,
    /// The audit log.
    pub audit: AuditSettings,
    /// The trace exporter.
    pub telemetry: TelemetrySettings,
    /// The language model.
    pub llm: Option<LlmSettings>,
    /// The order of sources.
    pub routing: RoutingSettings,
    /// Timeouts and size limits.
    pub limits: LimitSettings,
    /// The native tools.
    pub native: NativeSettings,
    /// The search for tools.
    pub search: SearchSettings,
    /// The store.
    pub store: StoreSettings,
    /// Words for capabilities, besides the built-in ones.
    pub tags: BTreeMap<String, Vec<String>>,
    /// The effect of approvals.
    pub approvals: ApprovalSettings,
    /// The folders and permissions of skills.
    pub skills: SkillSettings,
    /// `[openai]`: the OpenAI-compatible endpoint.
    pub openai: OpenAiSettings,
    /// The limits of scripts.
    pub script: ScriptSettings,
    /// Several machines.
    pub cluster: ClusterSettings,
    /// What a worker on this machine offers.
    pub worker: WorkerSettings,
    /// The search service of `search_web`.
    pub web_search: Option<WebSearchSettings>,
    /// Settings of servers that `mcp.json` cannot express.
    pub servers: Vec<ServerExtras>,
    /// Warnings about the file.
    #[serde(skip)]
    pub notes: Vec<LocalizedText>,
    /// Digests of the sections that are read when a hub is built, for detecting changes that require a restart.
    #[serde(skip)]
    pub restart_sections: RestartSections,
}

/// `[routing]`
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub struct RoutingSettings {
    /// The kinds of sources in routing order; omitted ones are not used.
    pub order: Vec<SourceKind>,
    /// The number of candidates that run concurrently at first.
    pub batch: usize,
    /// The strategies of capabilities, if they differ from the default.
    pub strategies: BTreeMap<String, StrategyName>,
    /// Groups of sources whose tools with the same name are equivalent, so that any of them may serve a call.
    pub equivalent: Vec<Vec<String>>,
}

/// How several candidates are run, as named in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StrategyName {
    /// One after another.
    First,
    /// Concurrently; the first success is returned.
    Race,
    /// Concurrently; the results are merged.
    Merge,
}

impl From<StrategyName> for Strategy {
    fn from(name: StrategyName) -> Self {
        match name {
            StrategyName::First => Self::First,
            StrategyName::Race => Self::Race,
            StrategyName::Merge => Self::Merge,
        }
    }
}

impl RoutingSettings {
    /// The routing policy.
    pub fn policy(&self, servers: Vec<ServerId>) -> RoutingPolicy {
        let mut policy = RoutingPolicy {
            order: self.order.clone(),
            servers,
            batch: self.batch.max(1),
            equivalent: self.equivalent.clone(),
            ..RoutingPolicy::default()
        };
        policy.strategies.extend(self.strategies.iter().map(|(tag, name)| (tag.clone(), (*name).into())));
        policy
    }
}

impl Default for RoutingSettings {
    fn default() -> Self {
        let defaults = RoutingPolicy::default();
        Self {
            order: defaults.order,
            batch: defaults.batch,
            strategies: BTreeMap::new(),
            equivalent: Vec::new(),
        }
    }
}

/// `[limits]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct LimitSettings {
    /// Timeout of a call.
    pub call: Option<DurationSetting>,
    /// The maximum timeout of a call that is extended by progress.
    pub call_cap: Option<DurationSetting>,
    /// Timeout for connecting to a server.
    pub connect: Option<DurationSetting>,
    /// The number of servers that are started concurrently for listings.
    pub starts: Option<NonZeroUsize>,
    /// The maximum length of a result for a model, in characters.
    pub result: ResultLimits,
}

impl LimitSettings {
    /// The number of servers that are started concurrently for listings; by default the number of cores.
    pub fn starts(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
        self.starts.map_or_else(cores, NonZeroUsize::get)
    }
}

/// `[limits.result]`
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct ResultLimits {
    /// Of a calculation.
    pub calculate: Option<usize>,
    /// Of a date or time.
    pub time: Option<usize>,
    /// Of search results.
    pub search: Option<usize>,
    /// The number of search hits.
    pub hits: Option<usize>,
    /// Of a conversation's history.
    pub history: Option<usize>,
    /// Of a skill's instructions.
    pub skills: Option<usize>,
    /// Of other tools.
    pub other: Option<usize>,
}

impl ResultLimits {
    /// The limits, with defaults for unset ones.
    pub fn output_limits(&self) -> OutputLimits {
        let defaults = OutputLimits::default();
        OutputLimits {
            calculate: self.calculate.unwrap_or(defaults.calculate),
            time: self.time.unwrap_or(defaults.time),
            search: self.search.unwrap_or(defaults.search),
            hits: self.hits.unwrap_or(defaults.hits),
            history: self.history.unwrap_or(defaults.history),
            skills: self.skills.unwrap_or(defaults.skills),
            other: self.other.unwrap_or(defaults.other),
        }
    }
}

/// `[approvals]`
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct ApprovalSettings {
    /// What happens to a tool that changed since its approval.
    pub pin: Pin,
}

/// `[native]`
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub struct NativeSettings {
    /// Folders that the file tools may read; relative to the folder of the config file.
    pub folders: Option<Vec<PathBuf>>,
    /// Whether native tools are enabled.
    pub enabled: bool,
    /// Native tools that are disabled.
    pub disabled: Vec<String>,
}

impl Default for NativeSettings {
    fn default() -> Self {
        Self { folders: None, enabled: true, disabled: Vec::new() }
    }
}

/// `[[servers]]`
#[derive(Debug, Clone, Deserialize)]
pub struct ServerExtras {
    /// The id of the server in `mcp.json`.
    pub id: String,
    /// Whether it is used.
    #[serde(default)]
    pub enabled: Option<bool>,
    /// The only protocol era to use; by default it is negotiated.
    #[serde(default)]
    pub era: Option<Era>,
    /// Timeout for connecting.
    #[serde(default)]
    pub connect_timeout: Option<DurationSetting>,
    /// Timeout of a call.
    #[serde(default)]
    pub call_timeout: Option<DurationSetting>,
    /// How long its process may be idle before it is stopped.
    #[serde(default)]
    pub idle_timeout: Option<DurationSetting>,
    /// Whether all callers of the gateway share one instance, or each has its own.
    #[serde(default)]
    pub instances: InstancesName,
    /// What a worker of a cluster must offer to run it.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Whose credentials calls of the gateway's clients use.
    #[serde(default)]
    pub credentials: CredentialsName,
    /// The maximum number of instances, if each caller has its own.
    #[serde(default)]
    pub max_instances: Option<NonZeroUsize>,
    /// The folders or URIs that it receives as roots.
    #[serde(default)]
    pub roots: Option<Vec<String>>,
    /// The only tools to use.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// Tools that are switched off.
    #[serde(default)]
    pub disabled_tools: Vec<String>,
    /// Environment variables that are passed to it, besides the default ones.
    #[serde(default)]
    pub env_pass: Vec<String>,
    /// Hints of the owner about tools' effects, by name; `*` for all.
    #[serde(default)]
    pub hints: BTreeMap<String, Hints>,
    /// Capability tags of the owner, by tool name; `*` for all.
    #[serde(default)]
    pub tags: BTreeMap<String, Vec<String>>,
    /// What happens to its tools if they changed since their approval, if it differs from the default.
    #[serde(default)]
    pub pin: Option<Pin>,
    /// The OAuth settings.
    #[serde(default)]
    pub oauth: OAuthSpec,
    /// The sandbox of its process; without it the process has the user's permissions.
    #[serde(default)]
    pub sandbox: SandboxSetting,
}

/// How instances of a server are shared, as named in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InstancesName {
    /// By all callers.
    #[default]
    Shared,
    /// Not shared: each caller has its own.
    Caller,
    /// Several, each for a part of the callers, on different workers of a cluster.
    Copies(NonZeroUsize),
}

impl<'de> Deserialize<'de> for InstancesName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Value {
            Name(String),
            Number(i64),
        }
        let unknown = |variant: String| {
            let expected = "expected `shared`, `caller` or a number of copies from 1";
            serde::de::Error::custom(format!("unknown variant `{variant}`, {expected}"))
        };
        match Value::deserialize(deserializer)? {
            Value::Name(name) if name == "shared" => Ok(Self::Shared),
            Value::Name(name) if name == "caller" => Ok(Self::Caller),
            Value::Name(name) => Err(unknown(name)),
            Value::Number(count) => {
                let copies = usize::try_from(count).ok().and_then(NonZeroUsize::new);
                copies.map(Self::Copies).ok_or_else(|| unknown(count.to_string()))
            }
        }
    }
}

/// Whose credentials calls of the gateway's clients use, as named in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CredentialsName {
    /// Those of the hub.
    #[default]
    Shared,
    /// Those of the caller, which logs in itself.
    Caller,
    /// The caller's token, exchanged for one of the server.
    Exchange,
}

impl ServerExtras {
    /// Its roots as URIs; folders are resolved against that of the config.
    pub fn roots(&self, config: &Path) -> Option<Vec<String>> {
        let address = |root: &String| {
            if root.contains("://") {
                return Some(root.clone());
            }
            let home = || Some(std::env::home_dir()?.join(Path::new(root).strip_prefix("~").ok()?));
            let folder = home().unwrap_or_else(|| config.with_file_name("").join(root));
            let folder = std::path::absolute(&folder).unwrap_or(folder);
            url::Url::from_file_path(folder).ok().map(String::from)
        };
        self.roots.as_ref().map(|roots| roots.iter().filter_map(address).collect())
    }

    /// Whose credentials calls of the gateway's clients use.
    pub fn credentials(&self) -> Credentials {
        match self.credentials {
            CredentialsName::Shared => Credentials::Shared,
            CredentialsName::Caller => Credentials::Caller,
            CredentialsName::Exchange => Credentials::Exchange,
        }
    }

    /// How many workers of a cluster run it at the same time.
    pub fn copies(&self) -> usize {
        match self.instances {
            InstancesName::Copies(count) => count.get(),
            InstancesName::Shared | InstancesName::Caller => 1,
        }
    }

    /// How its instances are shared.
    pub fn instances(&self) -> Instances {
        match (self.instances, self.credentials) {
            (InstancesName::Shared | InstancesName::Copies(_), CredentialsName::Shared) => Instances::Shared,
            // Callers with different credentials cannot share a session.
            _ => Instances::Caller {
                max: self.max_instances.map_or(Instances::DEFAULT_MAX, NonZeroUsize::get),
            },
        }
    }
}

impl Settings {
    /// The search service: the configured one, otherwise one that the environment configures.
    pub fn search_service(&self) -> WebSearch {
        WebSearchSettings::search_service(self.web_search.as_ref())
    }

    /// Reads the settings; defaults if the file does not exist.
    pub fn read(paths: &Paths) -> Result<Self, ConfigError> {
        match paths.text(&paths.config)? {
            Some(text) => Self::parse(&paths.config, &text),
            None => Ok(Self::default()),
        }
    }

    /// Parses the text of a file.
    pub(crate) fn parse(file: &Path, text: &str) -> Result<Self, ConfigError> {
        let mut settings: Self = toml_edit::de::from_str(text).map_err(|error| {
            let what = error.message().to_owned();
            let byte = error.span().map_or(0, |span| span.start);
            ConfigError::at(file, text, byte, LocalizedText::new(what.clone(), what))
        })?;
        if settings.routing.order.is_empty() {
            let byte = text.find("order").unwrap_or(0);
            let what = LocalizedText::new(
                "`order` is empty, so no tool could be called: name `mcp`, `skill` or `native`",
                "`order` 为空，无法调用任何工具：请写入 `mcp`、`skill` 或 `native`",
            );
            return Err(ConfigError::at(file, text, byte, what));
        }
        if let Some(owner) = settings.without_model_name() {
            let section = text.find(&format!("[{owner}]")).unwrap_or(0);
            let byte = text[section..].find("model").map_or(section, |at| section + at);
            let what = LocalizedText::new(
                format!("`model` in `[{owner}]` is empty: name a model, or leave `model` out"),
                format!("`[{owner}]` 中的 `model` 为空：请写出模型名，或去掉 `model`"),
            );
            return Err(ConfigError::at(file, text, byte, what));
        }
        let problem = settings.serve.problem();
        let problem = problem.or_else(|| settings.auth.problem()).or_else(|| settings.telemetry.problem());
        let problem = problem.or_else(|| settings.cluster.problem());
        if let Some((word, what)) = problem {
            return Err(ConfigError::at(file, text, text.find(word).unwrap_or(0), what));
        }
        if let Some((byte, what)) = misplaced_tokens(text) {
            return Err(ConfigError::at(file, text, byte, what));
        }
        settings.notes = unknown_keys(file, text);
        let place =
            |index: usize| text.match_indices("[[auth.rules]]").nth(index).map_or(0, |(byte, _)| byte);
        let warnings = settings.auth.check_rules();
        let warnings = warnings.map_err(|(index, what)| ConfigError::at(file, text, place(index), what))?;
        settings.notes.extend(warnings.into_iter().map(|warning| {
            let at = ConfigError::at(file, text, place(warning.index), warning.text);
            LocalizedText::new(at.localize(toolhub_core::Lang::En), at.localize(toolhub_core::Lang::Zh))
        }));
        let unqualified = settings.openai.unqualified_tools().map(|name| {
            let what = LocalizedText::new(
                format!("`{name}` in `approved_tools` approves nothing: name the server too, as in `SERVER__{name}`"),
                format!("`approved_tools` 中的 `{name}` 不起作用：请同时写出服务器，例如 `SERVER__{name}`"),
            );
            let at = ConfigError::at(file, text, text.find("approved_tools").unwrap_or(0), what);
            LocalizedText::new(at.localize(toolhub_core::Lang::En), at.localize(toolhub_core::Lang::Zh))
        });
        let unqualified: Vec<LocalizedText> = unqualified.collect();
        settings.notes.extend(unqualified);
        settings.restart_sections = RestartSections::of(text);
        Ok(settings)
    }

    /// The table whose `model` is empty, if any.
    fn without_model_name(&self) -> Option<String> {
        let empty = |model: &Option<String>| model.as_deref().is_some_and(|name| name.trim().is_empty());
        let agent = || self.agents.iter().find(|(_, agent)| empty(&agent.model));
        match self.llm.as_ref().is_some_and(|llm| empty(&llm.model)) {
            true => Some("llm".to_owned()),
            false => agent().map(|(name, _)| format!("agents.{name}")),
        }
    }

    /// The folders that the file tools may read: the configured ones, otherwise the current one.
    pub fn folders(&self, config: &Path) -> Vec<PathBuf> {
        match &self.native.folders {
            Some(folders) => {
                let base = config.parent().unwrap_or(Path::new(""));
                // `~` is expanded by the file tools, and not relative to the config.
                let rooted = |folder: &PathBuf| {
                    if folder.starts_with("~") { folder.clone() } else { base.join(folder) }
                };
                folders.iter().map(rooted).collect()
            }
            None => std::env::current_dir().into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use toolhub_core::GrantType;

    use super::*;

    fn read(text: &str) -> Result<Settings, String> {
        Settings::parse(Path::new("toolhub.toml"), text).map_err(|error| {
            let text = error.to_string();
            text.split_once("`, ").map_or(text.clone(), |(_, rest)| rest.to_owned())
        })
    }

    #[test]
    fn parses_settings_and_ignores_unknown_keys() {
        let settings = read(
            "future = 1\n[limits]\ncall = \"45s\"\nconnect = 5\n[routing]\norder = [\"native\", \"mcp\"]\n[[servers]]\nid = \"a\"\nhints = { \"*\" = { read_only = true } }\n",
        )
        .unwrap();
        assert_eq!(settings.limits.call.unwrap().0.as_secs(), 45);
        assert_eq!(settings.limits.connect.unwrap().0.as_secs(), 5);
        assert_eq!(settings.routing.order, [SourceKind::Native, SourceKind::Mcp]);
        assert_eq!(settings.servers[0].hints["*"].read_only, Some(true));
    }

    #[test]
    fn parses_oauth_settings_and_hides_secrets() {
        let settings = read(
            "[[servers]]\nid = \"a\"\noauth = { client_id = \"c\", client_secret = \"hunter2\", scopes = [\"x\"], redirect_port = 7461, grant = \"client_credentials\" }\n[[servers]]\nid = \"b\"\n",
        )
        .unwrap();
        let oauth = &settings.servers[0].oauth;
        assert_eq!((oauth.client_id.as_deref(), oauth.redirect_port), (Some("c"), Some(7461)));
        assert_eq!((oauth.grant, oauth.scopes.len()), (GrantType::ClientCredentials, 1));
        assert_eq!(settings.servers[1].oauth, OAuthSpec::default());
        assert!(!format!("{settings:?}").contains("hunter2"));
        let error = read("[[servers]]\nid = \"a\"\noauth = { client_secret = 76543 }\n").unwrap_err();
        assert!(error.starts_with("line 3") && !error.contains("76543"), "{error}");
    }

    #[test]
    fn errors_name_line_and_column() {
        let check = |text: &str, expect: &str| {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(expect), "{error}");
        };
        check("[limits]\ncall = \"soon\"\n", "line 2, column 8: `soon` is not a time");
        check("a = \n", "line 1, column 5: ");
        check("[routing]\norder = [\"web\"]\n", "line 2, column 10: unknown variant `web`");
        check("[routing]\norder = []\n", "line 2, column 1: `order` is empty");
        check("[llm]\nmodel = \"\"\n", "line 2, column 1: `model` in `[llm]` is empty");
        check("[agents.a]\nmodel = \" \"\n", "line 2, column 1: `model` in `[agents.a]` is empty");
        check("[[servers]]\ntools = []\n", "line 1, column 1: missing field `id`");
        check(
            "[[servers]]\nid = \"a\"\ninstances = \"each\"\n",
            "line 3, column 13: unknown variant `each`, expected `shared`, `caller` or a number of copies from 1",
        );
        check(
            "[[servers]]\nid = \"a\"\ncredentials = \"own\"\n",
            "line 3, column 15: unknown variant `own`, expected one of `shared`, `caller`, `exchange`",
        );
        check(
            "[[servers]]\nid = \"a\"\nera = \"old\"\n",
            "line 3, column 7: unknown variant `old`, expected `legacy` or `modern`",
        );
        let expected = "unknown variant `never`, expected `warn` or `block`";
        check("[approvals]\npin = \"never\"\n", &format!("line 2, column 7: {expected}"));
        check("[[servers]]\nid = \"a\"\npin = \"never\"\n", &format!("line 3, column 7: {expected}"));
    }
}
