//! toolhub as the client under test of the official MCP conformance suite: a hub with one server, the one that a
//! scenario plays. What is called is in `plan`, how the server is configured in `setup`, what it is answered in
//! `answers`; how the suites themselves are run, also with a server, is in
//! `suite`, and how many of their checks have to pass in `table`.

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
use toolhub::{EventSink, Hub, Lang, LoginError, OAuthError, Outcome, Say as _, ToolCall, ToolError};

use self::answers::Answers;
use self::plan::calls;
use self::setup::{Scenario, Setup};
use crate::fake::Recorder;
use crate::oauth::browse;

/// What the scenario's server is called.
const SERVER: &str = "conformance";
/// How often one run logs in: a server that wants more for ever must not get it.
const MOST_LOGINS: u32 = 3;

/// Runs the scenario that the environment names against the server at the one argument.
pub fn run(mut args: impl Iterator<Item = String>) -> ExitCode {
    let ran = args.next().context("usage: conformance-client URL").and_then(|url| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(play(&Scenario::of_environment(url)?))
    });
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn play(scenario: &Scenario) -> Result<()> {
    let setup = Setup::write(scenario)?;
    let events = Arc::new(Recorder::default());
    let hub = Hub::builder()
        .places(setup.places())
        .handler(Arc::new(Answers))
        .listen(Arc::clone(&events) as Arc<dyn EventSink>)
        .build()
        .await?;
    let visitor = Visitor { hub: &hub, logins: 0 };
    let visited = visitor.visit(scenario).await;
    hub.shutdown().await;
    for event in events.texts() {
        writeln!(std::io::stderr(), "{event}")?;
    }
    visited
}

/// Somebody who uses the server, and logs in where that is wanted.
struct Visitor<'a> {
    hub: &'a Hub,
    logins: u32,
}

impl Visitor<'_> {
    async fn visit(mut self, scenario: &Scenario) -> Result<()> {
        match self.hub.list_server(SERVER).await.context("the server is not configured")? {
            Ok(_) => {}
            Err(ToolError::LoginNeeded { .. }) => self.login().await?,
            Err(error) => bail!("{}", error.say(Lang::En)),
        }
        if skills::concerns(scenario) {
            return skills::play(self.hub, scenario).await;
        }
        // All at once: what belongs to one call must not turn up in another.
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

    /// Logs in, once more where what that brought is refused at once, as the hub advises.
    async fn login(&mut self) -> Result<()> {
        // On a thread of its own: it is sent back to a port that this one listens on.
        let show = |address: &str| {
            let address = address.to_owned();
            std::thread::spawn(move || browse(&address));
        };
        let mut issuer = None;
        while self.logins < MOST_LOGINS {
            self.logins += 1;
            match self.hub.login_at(SERVER, issuer.as_deref(), &show).await {
                Ok(_) => return Ok(()),
                // The owner agrees to the authorization server that the error names (SEP-2352).
                Err(LoginError::Failed {
                    error: OAuthError::IssuerChanged { issuer: named, .. }, ..
                }) => {
                    issuer = Some(named);
                }
                Err(LoginError::NotServed(ToolError::LoginNeeded { .. })) => {}
                Err(error) => bail!("{error}"),
            }
        }
        bail!("{MOST_LOGINS} logins were not enough");
    }
}

/// The calls that only a login keeps from being served; any other failure is an error.
fn refused(calls: Vec<ToolCall>, outcomes: &[Outcome]) -> Result<Vec<ToolCall>> {
    let mut refused = Vec::new();
    for (call, outcome) in calls.into_iter().zip(outcomes) {
        match &outcome.result {
            Ok(_) => {}
            Err(ToolError::LoginNeeded { .. }) => refused.push(call),
            Err(error) => bail!("`{}`: {}", call.tool.as_str(), error.say(Lang::En)),
        }
    }
    Ok(refused)
}
