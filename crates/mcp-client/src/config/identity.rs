//! The launch identity of a server: digests that two processes of the same owner compare to decide whether they can share a
//! connection.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolhub_client_config::TransportSpec;
use toolhub_core::hex;
use toolhub_core::lang::LocalizedText;
use toolhub_mcp_wire::McpError;

use super::login::expand_login;
use super::permitted::{NeedsConsent as _, finish_check};
use super::spec::ServerSpec;

/// Variables that describe the terminal session and do not affect a program's behaviour.
const SESSION_VARIABLES: [&str; 5] = ["TERM", "SHELL", "XDG_RUNTIME_DIR", "XDG_SEAT", "XDG_VTNR"];
/// The prefix of further such variables.
const SESSION_PREFIX: &str = "XDG_SESSION_";
/// Variables that affect how an HTTP request is sent.
const NETWORK_VARIABLES: [&str; 10] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];
/// The file system and network namespaces of a process (Linux, namespaces(7)).
const NAMESPACES: [&str; 2] = ["/proc/self/ns/mnt", "/proc/self/ns/net"];

/// A server as this process would connect to it now. Processes with equal identities start the same program with the same
/// arguments, variables, folder and sandbox, or contact the same URL with the same credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LaunchIdentity {
    /// The configured entry and the consent to it.
    entry: String,
    /// The working directory of its program.
    folder: String,
    /// Variables, expanded arguments and namespaces.
    environment: String,
}

impl LaunchIdentity {
    /// Describes the difference; `None` if there is none.
    pub(crate) fn difference(&self, other: &Self) -> Option<LocalizedText> {
        if self.entry != other.entry {
            return Some(LocalizedText::new("its configuration differs there", "该进程中的配置不同"));
        }
        if self.folder != other.folder {
            return Some(LocalizedText::new(
                "it would start in another folder there: set `cwd` for it to use it from every folder",
                "在该进程中它的工作目录不同：如需在任意目录使用，请为它设置 `cwd`",
            ));
        }
        (self.environment != other.environment)
            .then(|| LocalizedText::new("its environment variables differ there", "该进程中的环境变量不同"))
    }
}

impl ServerSpec {
    /// The identity of this server in this process. Fails if it may not be started or contacted now.
    pub(crate) fn launch_identity(&self) -> Result<LaunchIdentity, McpError> {
        let (transport_json, variables, folder) = match &self.transport {
            TransportSpec::Stdio(spec) => {
                let spec = spec.permitted(&self.consent)?;
                let variables: Vec<(String, Vec<u8>)> = spec
                    .environment()
                    .into_iter()
                    .filter(|(name, _)| !is_session_variable(name))
                    .map(|(name, value)| (name, value.into_encoded_bytes()))
                    .collect();
                let transport_json = json!([spec.command, spec.args, format!("{:?}", spec.process_sandbox)]);
                // A sandboxed program without `cwd` starts in an empty folder.
                let configured_folder = spec.known_folder().map(Path::to_path_buf);
                let inherits = configured_folder.is_none() && spec.process_sandbox.is_none();
                let folder = configured_folder.or_else(|| inherits.then(|| PathBuf::from(".")));
                (transport_json, variables, folder)
            }
            TransportSpec::Http(spec) | TransportSpec::Sse(spec) => {
                let spec = spec.permitted(&self.consent)?;
                let value =
                    |name: &&str| Some(((*name).to_owned(), std::env::var_os(name)?.into_encoded_bytes()));
                let variables = NETWORK_VARIABLES.iter().filter_map(value).collect();
                (json!([spec.url, spec.headers]), variables, None)
            }
        };
        let login = expand_login(&self.oauth).map_err(|name| {
            McpError::permanent(LocalizedText::new(
                format!("${{{name}}} is not set"),
                format!("未设置 ${{{name}}}"),
            ))
        })?;
        let secret = login.client_secret.as_ref().map(|secret| secret.expose().to_owned());
        let namespaces = NAMESPACES.map(|link| std::fs::read_link(link).ok().map(|target| bytes(&target)));
        Ok(LaunchIdentity {
            entry: self.entry_digest(),
            folder: folder.map(|folder| digest(&bytes(&canonical(&folder)))).unwrap_or_default(),
            environment: digest(&json!([transport_json, variables, [login.client_id, secret], namespaces])),
        })
    }

    /// Like [`Self::launch_identity`], on a thread for blocking work: the check of the consent may read every file of a project.
    pub(crate) async fn checked_launch_identity(self) -> Result<LaunchIdentity, McpError> {
        finish_check(tokio::task::spawn_blocking(move || self.launch_identity()).await)
    }

    /// A digest of what processes on different machines must agree on before one runs the server for the other: the entry,
    /// without its file and the consent to it, which each machine checks itself.
    pub fn cluster_digest(&self) -> String {
        digest(&json!([
            [env!("CARGO_PKG_VERSION"), self.id.as_str(), self.transport.name()],
            [self.era.map(|era| era.name()), self.roots],
            [format!("{:?}", (self.instances, self.copies, &self.labels)), self.connect_timeout],
            [self.transport_json()],
        ]))
    }

    /// A digest of what an approval of a call is bound to: the program or address of the server. Equal at all replicas, whose files
    /// lie in different folders.
    pub fn approval_digest(&self) -> String {
        let era = self.era.map(|era| era.name());
        digest(&json!([self.id.as_str(), self.transport.name(), era, self.transport_json()]))
    }

    /// A digest of the configured entry, its file and the consent to it.
    pub(crate) fn entry_digest(&self) -> String {
        let limits = json!([self.connect_timeout, self.call_timeout, self.idle_timeout]);
        digest(&json!([
            [env!("CARGO_PKG_VERSION"), self.id.as_str(), self.transport.name()],
            [bytes(&absolute(&self.origin))],
            [
                self.era.map(|era| era.name()),
                self.enabled,
                self.roots,
                self.tools,
                self.disabled_tools,
                self.tags
            ],
            [format!("{:?}", (self.instances, self.credentials, &self.hints, self.pin, &self.oauth)), limits],
            [format!("{:?}", self.consent), self.consent.digest(), self.transport_json()],
        ]))
    }
}

fn is_session_variable(name: &str) -> bool {
    SESSION_VARIABLES.contains(&name) || name.starts_with(SESSION_PREFIX)
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| absolute(path))
}

/// A path as JSON, also if it is not UTF-8.
fn bytes(path: &Path) -> Value {
    json!(path.as_os_str().as_encoded_bytes())
}

fn digest(value: &Value) -> String {
    hex::sha256(value.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolhub_client_config::{HttpSpec, StdioSpec};
    use toolhub_core::lang::{Lang, Localize as _};
    use toolhub_core::{Consent, ServerId};

    use super::super::spec::{Credentials, Instances};
    use super::*;

    fn stdio(change: impl FnOnce(&mut StdioSpec)) -> ServerSpec {
        let mut stdio = StdioSpec { command: "server".to_owned(), ..StdioSpec::default() };
        change(&mut stdio);
        let mut spec = ServerSpec::new(ServerId::new("s"), TransportSpec::Stdio(stdio), "mcp.json".into());
        spec.consent = Consent::of_owner();
        spec
    }

    #[test]
    fn every_launch_setting_changes_the_identity() {
        let own = stdio(|_| {}).launch_identity().unwrap();
        assert_eq!(own.difference(&stdio(|_| {}).launch_identity().unwrap()), None);
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = stdio(|spec| spec.cwd = Some(folder.path().to_owned())).launch_identity().unwrap();
        assert_ne!(own.folder, elsewhere.folder);
        let mut changed = vec![
            stdio(|spec| spec.command.push('2')),
            stdio(|spec| spec.args.push("--all".to_owned())),
            stdio(|spec| spec.env.push(("TOKEN".to_owned(), "x".to_owned()))),
            stdio(|spec| spec.env_pass.push("TOKEN".to_owned())),
        ];
        let changes: [fn(&mut ServerSpec); 10] = [
            |spec| spec.id = ServerId::new("other"),
            |spec| spec.origin = "elsewhere/mcp.json".into(),
            |spec| spec.instances = Instances::Caller { max: 3 },
            |spec| spec.credentials = Credentials::Caller,
            |spec| spec.roots = Some(vec!["file:///a".to_owned()]),
            |spec| spec.tools = Some(Vec::new()),
            |spec| spec.disabled_tools.push("a".to_owned()),
            |spec| spec.connect_timeout = Duration::from_secs(1),
            |spec| spec.oauth.client_id = Some("me".to_owned()),
            |spec| spec.transport = TransportSpec::Http(HttpSpec::default()),
        ];
        for change in changes {
            let mut spec = stdio(|_| {});
            change(&mut spec);
            changed.push(spec);
        }
        for spec in changed {
            let other = spec.launch_identity().unwrap();
            assert!(own.difference(&other).is_some(), "{spec:?}");
        }
    }

    #[test]
    fn identity_covers_expanded_values_and_working_folder() {
        // `HOME` is set in every test environment; the entries differ in their text, but not in the expanded value.
        let home = std::env::var("HOME").unwrap();
        let one = stdio(|spec| spec.args = vec!["${HOME}".to_owned()]).launch_identity().unwrap();
        let other = stdio(|spec| spec.args = vec![home]).launch_identity().unwrap();
        assert_eq!(one.environment, other.environment);
        assert_ne!(one.entry, other.entry);
        let mut steered = stdio(|_| {});
        let folder = tempfile::tempdir().unwrap();
        steered.consent = Consent::of_owner_in(folder.path().into());
        let steered = steered.launch_identity().unwrap();
        let why = stdio(|_| {}).launch_identity().unwrap().difference(&steered).unwrap();
        assert!(why.localize(Lang::En).contains("another folder"), "{why:?}");
        let mut untrusted = stdio(|_| {});
        untrusted.consent = Consent::default();
        assert!(untrusted.launch_identity().is_err());
    }
}
