//! The specification of one configured server: its transport and the owner's settings.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sha2::{Digest, Sha256};
use toolhub_core::approval::Pin;
use toolhub_core::lang::Text;
use toolhub_core::{Consent, Hints, ServerId};

use super::expand::expand;
use super::oauth::OAuthSpec;
use super::program::with_ending;
use crate::era::Era;
use crate::error::McpError;
use crate::transport::ProcessSandbox;

/// Variables that a child inherits by default: those that programs need to run, without likely secrets.
const PASSED: [&str; 26] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "TZ",
    "TMPDIR",
    "LANG",
    "LANGUAGE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "SYSTEMROOT",
    "APPDATA",
    "LOCALAPPDATA",
    "USERPROFILE",
    "TEMP",
    "TMP",
    "PATHEXT",
];
/// The same, on Windows only.
const PASSED_ON_WINDOWS: [&str; 9] = [
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "USERNAME",
    "WINDIR",
];
/// The same, by prefix.
const PASSED_PREFIXES: [&str; 2] = ["LC_", "XDG_"];

/// A server in the configuration.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// The server id.
    pub id: ServerId,
    /// The transport.
    pub transport: TransportSpec,
    /// The protocol era to use; detected if this is `None`.
    pub era: Option<Era>,
    /// The connect timeout.
    pub connect_timeout: Duration,
    /// The call timeout, if it differs from the default.
    pub call_timeout: Option<Duration>,
    /// How long a child may be idle before it is stopped; `None` for never.
    pub idle_timeout: Option<Duration>,
    /// Whether all callers share one instance.
    pub instances: Instances,
    /// The roots to report, as URIs; those of its single client if this is `None`.
    pub roots: Option<Vec<String>>,
    /// Whether it is enabled.
    pub enabled: bool,
    /// The allowed tools; all if this is `None`.
    pub tools: Option<Vec<String>>,
    /// The owner's hints about the effects of tools, by name; `*` for all.
    pub hints: BTreeMap<String, Hints>,
    /// The owner's tags for tools, by name; `*` for all.
    pub tags: BTreeMap<String, Vec<String>>,
    /// The policy for tools that differ from the approved ones.
    pub pin: Pin,
    /// The OAuth settings.
    pub oauth: OAuthSpec,
    /// The file it was read from.
    pub origin: PathBuf,
    /// Whether it may be started or contacted.
    pub consent: Consent,
}

/// How processes or sessions of a server are shared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Instances {
    /// All callers share one.
    #[default]
    Shared,
    /// Each principal of the gateway has its own.
    Caller {
        /// Maximum number of instances.
        max: usize,
    },
}

impl Instances {
    /// The default maximum number of instances of one server.
    pub const DEFAULT_MAX: usize = 32;
}

/// The transport of a server.
#[derive(Debug, Clone)]
pub enum TransportSpec {
    /// A child process over stdio.
    Stdio(StdioSpec),
    /// Streamable HTTP.
    Http(HttpSpec),
    /// HTTP+SSE (2024-11-05).
    Sse(HttpSpec),
}

/// A child process.
#[derive(Clone, Default)]
pub struct StdioSpec {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment variables set for it.
    pub env: Vec<(String, String)>,
    /// The working directory.
    pub cwd: Option<PathBuf>,
    /// Environment variables that it inherits beside the default ones.
    pub env_pass: Vec<String>,
    /// The file that keeps the end of its stderr output.
    pub log_file: Option<PathBuf>,
    /// The sandbox.
    pub fence: Option<Arc<dyn ProcessSandbox>>,
}

/// An HTTP endpoint.
#[derive(Clone, Default)]
pub struct HttpSpec {
    /// The URL.
    pub url: String,
    /// Headers sent with every request.
    pub headers: Vec<(String, String)>,
}

/// The names without the values, which may be secrets.
fn names(pairs: &[(String, String)]) -> Vec<&str> {
    pairs.iter().map(|(name, _)| name.as_str()).collect()
}

impl fmt::Debug for StdioSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("StdioSpec");
        shown
            .field("command", &self.command)
            .field("args", &self.args)
            .field("env", &names(&self.env))
            .finish()
    }
}

impl fmt::Debug for HttpSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSpec").field("url", &self.url).field("headers", &names(&self.headers)).finish()
    }
}

impl ServerSpec {
    /// A server as the `mcpServers` format describes it, with defaults for all other settings.
    pub fn new(id: ServerId, transport: TransportSpec, origin: PathBuf) -> Self {
        Self {
            id,
            transport,
            era: None,
            connect_timeout: Duration::from_secs(30),
            call_timeout: None,
            idle_timeout: Some(Duration::from_secs(600)),
            instances: Instances::default(),
            roots: None,
            enabled: true,
            tools: None,
            hints: BTreeMap::new(),
            tags: BTreeMap::new(),
            pin: Pin::default(),
            oauth: OAuthSpec::default(),
            origin,
            consent: Consent::default(),
        }
    }

    /// A hash that changes when the server may be another one: over the JSON of its transport, in which different entries have
    /// different texts, and the digest of the folder and files that its consent is bound to.
    pub fn fingerprint(&self) -> String {
        // The tools may differ between eras, and a failure in one era does not apply to the other.
        let era = self.era.map(|era| era.name());
        let entry = json!([self.transport.name(), self.reached(), era, self.consent.digest()]);
        let digest = Sha256::digest(entry.to_string().as_bytes());
        digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether a connection made for the other entry can serve this one: all settings are equal. The files that consent is
    /// bound to are not compared, since they are checked before each start; nor is the sandbox, which does not expose its
    /// policy.
    pub fn is_same_entry(&self, other: &Self) -> bool {
        let settings = |spec: &Self| {
            (
                (spec.era, spec.connect_timeout, spec.call_timeout, spec.idle_timeout, spec.instances),
                (
                    spec.roots.clone(),
                    spec.enabled,
                    spec.tools.clone(),
                    spec.tags.clone(),
                    spec.origin.clone(),
                ),
                (spec.hints.clone(), spec.pin, spec.oauth.clone(), format!("{:?}", spec.consent)),
            )
        };
        self.id == other.id
            && self.transport.name() == other.transport.name()
            && self.reached() == other.reached()
            && settings(self) == settings(other)
    }

    /// The transport as JSON.
    pub(super) fn reached(&self) -> serde_json::Value {
        match &self.transport {
            TransportSpec::Stdio(spec) => json!({
                "command": spec.command,
                "args": spec.args,
                "env": spec.env,
                "cwd": spec.cwd,
                "env_pass": spec.env_pass,
            }),
            TransportSpec::Http(spec) | TransportSpec::Sse(spec) => {
                json!({"url": spec.url, "headers": spec.headers})
            }
        }
    }

    /// The owner's hints about the effects of a tool.
    pub fn hints_of(&self, tool: &str) -> Hints {
        let named = self.hints.get(tool).copied().unwrap_or_default();
        named.or(self.hints.get("*").copied().unwrap_or_default())
    }

    /// The owner's tags for a tool; may be empty.
    pub fn tags_of(&self, tool: &str) -> Vec<String> {
        self.tags.get(tool).or_else(|| self.tags.get("*")).cloned().unwrap_or_default()
    }

    /// Whether a tool is allowed.
    pub fn allows(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|allowed| allowed.iter().any(|name| name == tool))
    }
}

impl TransportSpec {
    /// The name in the configuration.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Http(_) => "http",
            Self::Sse(_) => "sse",
        }
    }
}

fn fill(text: &str) -> Result<String, McpError> {
    expand(text, &|name| std::env::var(name).ok()).map_err(|name| {
        McpError::hopeless(Text::new(
            format!("its config uses ${{{name}}}, which is not set: set it, or write ${{{name}:-default}}"),
            format!("它的配置用到了未设置的 ${{{name}}}：请设置它，或写成 ${{{name}:-默认值}}"),
        ))
    })
}

fn fill_pairs(pairs: &[(String, String)]) -> Result<Vec<(String, String)>, McpError> {
    pairs.iter().map(|(name, value)| Ok((name.clone(), fill(value)?))).collect()
}

impl StdioSpec {
    /// Expands the variables.
    pub(super) fn expanded(&self) -> Result<Self, McpError> {
        let cwd = self.cwd.as_ref().map(|folder| fill(&folder.to_string_lossy())).transpose()?;
        Ok(Self {
            command: fill(&self.command)?,
            args: self.args.iter().map(|arg| fill(arg)).collect::<Result<_, _>>()?,
            env: fill_pairs(&self.env)?,
            cwd: cwd.map(PathBuf::from),
            env_pass: self.env_pass.clone(),
            log_file: self.log_file.clone(),
            fence: self.fence.clone(),
        })
    }

    /// The complete environment of the child.
    pub(crate) fn environment(&self) -> BTreeMap<String, std::ffi::OsString> {
        let passed = |name: &str| {
            PASSED.contains(&name)
                || cfg!(windows) && is_passed_on_windows(name)
                || PASSED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
                || self.env_pass.iter().any(|wanted| wanted == name)
        };
        let inherited = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .filter(|(name, _)| passed(name));
        let own = self.env.iter().map(|(name, value)| (name.clone(), value.into()));
        inherited.chain(own).collect()
    }

    /// The program to start: on Windows, the file that the child's `PATH` resolves the command to.
    pub(crate) fn program(&self) -> std::ffi::OsString {
        let path = || {
            let variables = self.environment();
            variables.into_iter().find_map(|(name, value)| name.eq_ignore_ascii_case("PATH").then_some(value))
        };
        let file = cfg!(windows).then(|| with_ending(&self.command, &path().unwrap_or_default())).flatten();
        file.map_or_else(|| self.command.clone().into(), Into::into)
    }

    /// The error text for a program that could not be started.
    pub(crate) fn why_not_started(&self, error: &std::io::Error) -> Text {
        let command = &self.command;
        match (&self.cwd, error.kind()) {
            (Some(folder), std::io::ErrorKind::NotFound) if !folder.is_dir() => {
                let folder = folder.display();
                Text::new(
                    format!("its `cwd` `{folder}` does not exist"),
                    format!("它的 `cwd` `{folder}` 不存在"),
                )
            }
            (_, std::io::ErrorKind::NotFound) => Text::new(
                format!("program `{command}` was not found: install it, or give its full path"),
                format!("找不到程序 `{command}`：请安装它，或给出完整路径"),
            ),
            _ => Text::new(
                format!("program `{command}` could not be started: {error}"),
                format!("无法启动程序 `{command}`：{error}"),
            ),
        }
    }
}

/// Variable names on Windows are case-insensitive: `PATH` is mostly written `Path`.
fn is_passed_on_windows(name: &str) -> bool {
    PASSED.iter().chain(&PASSED_ON_WINDOWS).any(|known| known.eq_ignore_ascii_case(name))
}

impl HttpSpec {
    /// Expands the variables.
    pub(super) fn expanded(&self) -> Result<Self, McpError> {
        Ok(Self { url: fill(&self.url)?, headers: fill_pairs(&self.headers)? })
    }
}
