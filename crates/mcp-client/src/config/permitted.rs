//! The consent check before a server's program is started or its URL contacted. Transports require a [`PermittedSpec`], and
//! only this file creates one.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use tokio::task::JoinError;
use toolhub_client_config::{HttpSpec, StdioSpec, expand_variables};
use toolhub_core::Consent;
use toolhub_core::consent::{PreparedFolder, StartRules, WorkFolder};
use toolhub_core::lang::LocalizedText;
use toolhub_mcp_wire::McpError;

/// A transport spec with expanded variables, to which the owner has consented.
#[derive(Debug, Clone)]
pub(crate) struct PermittedSpec<T> {
    spec: T,
    rules: StartRules,
}

impl PermittedSpec<StdioSpec> {
    /// The folder to start in; `None` for the current directory. A folder that this call creates exists as long as its result.
    pub(crate) fn start_folder(&self) -> std::io::Result<Option<PreparedFolder>> {
        match (&self.spec.cwd, &self.rules.folder) {
            (Some(folder), _) => Ok(Some(PreparedFolder::from(folder.clone()))),
            (None, Some(folder)) => folder.prepare().map(Some),
            (None, None) => Ok(None),
        }
    }

    /// What identifies the folder to start in: a new folder by the one that contains it.
    pub(crate) fn known_folder(&self) -> Option<&Path> {
        self.spec.cwd.as_deref().or_else(|| self.rules.folder.as_ref().map(WorkFolder::path))
    }

    /// The root of a project whose folders in `PATH` are not searched for programs.
    pub(super) fn excluded(&self) -> Option<&Path> {
        self.rules.excluded.as_deref()
    }
}

impl<T> Deref for PermittedSpec<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.spec
    }
}

/// A transport spec that needs consent before it is used.
pub(crate) trait NeedsConsent: Sized {
    /// Checks `consent`, then expands the variables. They are not read without consent.
    fn permitted(&self, consent: &Consent) -> Result<PermittedSpec<Self>, McpError>;
}

/// Like [`NeedsConsent::permitted`], on a thread for blocking work: the check may read every file of a project.
pub(crate) async fn permitted_stdio(
    spec: &StdioSpec,
    consent: &Consent,
) -> Result<PermittedSpec<StdioSpec>, McpError> {
    let (spec, consent) = (spec.clone(), consent.clone());
    finish_check(tokio::task::spawn_blocking(move || spec.permitted(&consent)).await)
}

/// The result of a check on a thread for blocking work.
pub(crate) fn finish_check<T>(checked: Result<Result<T, McpError>, JoinError>) -> Result<T, McpError> {
    checked.unwrap_or_else(|error| {
        Err(McpError::permanent(LocalizedText::new(
            format!("not started: its consent could not be checked: {error}"),
            format!("未启动：无法确认你是否同意启动它：{error}"),
        )))
    })
}

impl NeedsConsent for StdioSpec {
    fn permitted(&self, consent: &Consent) -> Result<PermittedSpec<Self>, McpError> {
        let permit = consent.permit().map_err(McpError::permanent)?;
        Ok(PermittedSpec { spec: expand_stdio(self)?, rules: permit.rules().clone() })
    }
}

impl NeedsConsent for HttpSpec {
    fn permitted(&self, consent: &Consent) -> Result<PermittedSpec<Self>, McpError> {
        let permit = consent.permit().map_err(McpError::permanent)?;
        let (url, headers) = (expand_text(&self.url)?, expand_pairs(&self.headers)?);
        Ok(PermittedSpec { spec: Self { url, headers }, rules: permit.rules().clone() })
    }
}

/// Expands the variables.
fn expand_stdio(spec: &StdioSpec) -> Result<StdioSpec, McpError> {
    let cwd = spec.cwd.as_ref().map(|folder| expand_text(&folder.to_string_lossy())).transpose()?;
    Ok(StdioSpec {
        command: expand_text(&spec.command)?,
        args: spec.args.iter().map(|arg| expand_text(arg)).collect::<Result<_, _>>()?,
        env: expand_pairs(&spec.env)?,
        cwd: cwd.map(PathBuf::from),
        env_pass: spec.env_pass.clone(),
        log_file: spec.log_file.clone(),
        process_sandbox: spec.process_sandbox.clone(),
    })
}

fn expand_text(text: &str) -> Result<String, McpError> {
    expand_variables(text, &|name| std::env::var(name).ok()).map_err(|name| {
        McpError::permanent(LocalizedText::new(
            format!("its config uses ${{{name}}}, which is not set: set it, or write ${{{name}:-default}}"),
            format!("它的配置用到了未设置的 ${{{name}}}：请设置它，或写成 ${{{name}:-默认值}}"),
        ))
    })
}

fn expand_pairs(pairs: &[(String, String)]) -> Result<Vec<(String, String)>, McpError> {
    pairs.iter().map(|(name, value)| Ok((name.clone(), expand_text(value)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_consent_before_reading_variables() {
        let spec = StdioSpec { command: "${TOOLHUB_TEST_UNSET}".to_owned(), ..StdioSpec::default() };
        let refused = spec.permitted(&Consent::default()).unwrap_err().to_string();
        assert!(refused.contains("toolhub trust"), "{refused}");
        let unset = spec.permitted(&Consent::of_owner()).unwrap_err().to_string();
        assert!(unset.contains("TOOLHUB_TEST_UNSET"), "{unset}");
        let spec = StdioSpec { command: "x".to_owned(), ..StdioSpec::default() };
        let elsewhere = Consent::of_owner_in(Path::new("/neutral").into());
        assert_eq!(spec.permitted(&elsewhere).unwrap().known_folder(), Some(Path::new("/neutral")));
        let own = StdioSpec { cwd: Some("/own".into()), ..spec };
        assert_eq!(own.permitted(&elsewhere).unwrap().known_folder(), Some(Path::new("/own")));
        let spec = HttpSpec { url: "http://127.0.0.1:1".to_owned(), headers: Vec::new() };
        assert!(spec.permitted(&Consent::default()).is_err());
        assert!(spec.permitted(&Consent::of_owner()).is_ok());
    }
}
