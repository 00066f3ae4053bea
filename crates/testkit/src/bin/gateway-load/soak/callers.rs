//! The callers of a soak test: each calls the servers in turn and checks every response.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::servers::{Servers, Target};
use crate::load::Caller;
use crate::wire::META;

/// Maximum time until a restarted server responds: its circuit breaker may be open at first.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum number of faults reported per caller.
const MAX_REPORTED_FAULTS: usize = 10;
/// Pause after a refused call; otherwise immediate refusals would dominate.
const RETRY_PAUSE: Duration = Duration::from_millis(5);

/// The result of a call.
enum CallResult {
    Right,
    /// The tool failed, with the reason.
    Refused(String),
    Wrong(String),
}

/// Calls until `until`. Returns the faults.
pub(super) async fn run(
    url: Arc<str>,
    servers: Arc<Servers>,
    mut random: fastrand::Rng,
    until: Instant,
) -> Vec<String> {
    let mut faults = Vec::new();
    let mut caller = None;
    for turn in 0_u64.. {
        if Instant::now() >= until || faults.len() >= MAX_REPORTED_FAULTS {
            break;
        }
        let Some(target) = random.choice(&servers.all) else { break };
        let nonce = random.u64(..);
        let run_started = Instant::now();
        let connected = match caller.take() {
            Some(caller) => Ok(caller),
            None => Caller::new(&url).await,
        };
        let outcome = match connected {
            Ok(mut connected) => {
                let outcome = call(&mut connected, target, turn, nonce).await;
                caller = outcome.is_ok().then_some(connected);
                outcome
            }
            Err(error) => Err(error),
        };
        match outcome {
            Ok(CallResult::Right) => target.answered(run_started),
            Ok(CallResult::Refused(why)) => {
                if !target.refused(run_started) {
                    faults.push(format!("{} was up, and yet: {why}", target.name));
                }
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            Ok(CallResult::Wrong(what)) => faults.push(format!("{}: wrong answer: {what}", target.name)),
            // The gateway must respond regardless of the state of its servers.
            Err(error) => faults.push(format!("the gateway did not answer: {error:#}")),
        }
    }
    faults
}

async fn call(caller: &mut Caller, target: &Target, turn: u64, nonce: u64) -> Result<CallResult> {
    let name = &target.name;
    let (tool, arguments, expected) = match nonce % 2 {
        0 => {
            let arguments = format!(r#"{{"server":"{name}","nonce":{nonce},"turn":{turn}}}"#);
            (format!("look_{name}"), arguments.clone(), arguments)
        }
        _ => (format!("who_{name}"), "{}".to_owned(), format!("I am {name}")),
    };
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{turn},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},{META}}}}}"#
    );
    let answer = caller.ask("tools/call", Some(&tool), &body).await?;
    let answer: Value = serde_json::from_slice(answer).context("the answer is no JSON")?;
    if answer["id"] != json!(turn) {
        return Ok(CallResult::Wrong(format!("asked {turn}, answered {answer}")));
    }
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    Ok(match result["isError"] == true || !answer["error"].is_null() {
        true => {
            CallResult::Refused(if text.is_empty() { answer["error"].to_string() } else { text.to_owned() })
        }
        false if text == expected => CallResult::Right,
        false => CallResult::Wrong(format!("expected {expected}, got {answer}")),
    })
}

/// Calls each server once, so that all are connected.
pub(super) async fn connect_all(url: &str, servers: &Servers) -> Result<()> {
    let mut caller = Caller::new(url).await?;
    for target in &servers.all {
        match call(&mut caller, target, 0, 0).await? {
            CallResult::Right => {}
            CallResult::Refused(why) | CallResult::Wrong(why) => {
                anyhow::bail!("{} is not there: {why}", target.name)
            }
        }
    }
    Ok(())
}

/// Waits until each server responds again. Returns those that do not.
pub(super) async fn all_recover(url: &str, servers: &Servers) -> Vec<String> {
    let (since, mut faults) = (Instant::now(), Vec::new());
    for (number, target) in servers.all.iter().enumerate() {
        loop {
            let outcome = match Caller::new(url).await {
                Ok(mut caller) => call(&mut caller, target, number as u64, 0).await,
                Err(error) => Err(error),
            };
            if matches!(outcome, Ok(CallResult::Right)) {
                break;
            }
            if since.elapsed() >= RECOVERY_TIMEOUT {
                faults.push(format!("{} does not come back", target.name));
                break;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
    faults
}
