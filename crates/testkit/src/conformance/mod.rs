//! toolhub as the client under test of the official MCP conformance suite: a hub with one server, that of the scenario.
//! `plan` selects the calls, `setup` writes the configuration, `answers` responds to the server; `suite` runs the
//! suites themselves, also against a server, and `table` has the expected number of passed checks.

mod answers;
mod plan;
mod setup;
mod skills;
pub mod suite;
pub mod table;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use futures_util::future::join_all;
use toolhub::{EventSink, Hub, Lang, Localize as _, LoginError, OAuthError, Outcome, ToolCall, ToolError};

use self::answers::Answers;
use self::plan::calls;
use self::setup::{Scenario, Setup};
use crate::fake::Recorder;
use crate::oauth::browse;

/// The id of the scenario's server.
const SERVER: &str = "conformance";
/// Maximum number of logins per run: a server may request them endlessly.
const MAX_LOGINS: u32 = 3;

/// Runs the scenario named in the environment against the server given as argument.
pub fn run(mut args: impl Iterator<Item = String>) -> ExitCode {
    let result = args.next().context("usage: conformance-client URL").and_then(|url| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(run_scenario(&Scenario::of_environment(url)?))
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run_scenario(scenario: &Scenario) -> Result<()> {
    let setup = Setup::write(scenario)?;
    let events = Arc::new(Recorder::default());
    let hub = Hub::builder()
        .paths(setup.paths())
        .handler(Arc::new(Answers))
        .listen(Arc::clone(&events) as Arc<dyn EventSink>)
        .build()
        .await?;
    let visitor = ConformanceClient { hub: &hub, logins: 0 };
    let visited = visitor.run_scenario(scenario).await;
    hub.shutdown().await;
    for event in events.texts() {
        writeln!(std::io::stderr(), "{event}")?;
    }
    visited
}

/// Calls the server, and logs in if required.
struct ConformanceClient<'a> {
    hub: &'a Hub,
    logins: u32,
}

impl ConformanceClient<'_> {
    async fn run_scenario(mut self, scenario: &Scenario) -> Result<()> {
        match self.hub.list_server(SERVER).await.context("the server is not configured")? {
            Ok(_) => {}
            Err(ToolError::LoginNeeded { .. }) => self.login().await?,
            Err(error) => bail!("{}", error.localize(Lang::En)),
        }
        if skills::concerns(scenario) {
            return skills::run_scenario(self.hub, scenario).await;
        }
        // Concurrently: data of one call must not leak into another.
        let mut pending = calls(scenario, &self.hub.catalog())?;
        while !pending.is_empty() {
            let outcomes = join_all(pending.iter().map(|call| self.hub.call(call.clone()))).await;
            pending = refused(pending, &outcomes)?;
            if !pending.is_empty() {
                self.login().await?;
            }
        }
        Ok(())
    }

    /// Logs in, and again if the new token is rejected immediately, as the hub recommends.
    async fn login(&mut self) -> Result<()> {
        // On a separate thread: the browser is redirected to a port that this thread serves.
        let show = |address: &str| {
            let address = address.to_owned();
            std::thread::spawn(move || browse(&address));
        };
        let mut issuer = None;
        while self.logins < MAX_LOGINS {
            self.logins += 1;
            match self.hub.login_at(SERVER, issuer.as_deref(), &show).await {
                Ok(_) => return Ok(()),
                // The user accepts the authorization server named in the error (SEP-2352).
                Err(LoginError::Failed {
                    error: OAuthError::IssuerChanged { issuer: named, .. }, ..
                }) => {
                    issuer = Some(named);
                }
                Err(LoginError::NotServed(ToolError::LoginNeeded { .. })) => {}
                Err(error) => bail!("{error}"),
            }
        }
        bail!("{MAX_LOGINS} logins were not enough");
    }
}

/// Returns the calls that require a login; any other failure is an error.
fn refused(calls: Vec<ToolCall>, outcomes: &[Outcome]) -> Result<Vec<ToolCall>> {
    let mut refused = Vec::new();
    for (call, outcome) in calls.into_iter().zip(outcomes) {
        match &outcome.result {
            Ok(_) => {}
            Err(ToolError::LoginNeeded { .. }) => refused.push(call),
            Err(error) => bail!("`{}`: {}", call.tool.as_str(), error.localize(Lang::En)),
        }
    }
    Ok(refused)
}
