//! The cost of keys, the audit log and signed tokens: CPU time per call beside a gateway without access control.
use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{Measurement, Programs, RunningServer, SECONDS, SESSION, median, processor_time, turn};
use crate::{
    run::{self, program},
    table::Table,
};

const ROUNDS: usize = 15;
const CALLERS: [usize; 2] = [1, 32];
/// A key, and its SHA-256.
const KEY: &str = "thk_load";
const KEY_SHA256: &str = "5d318adda1674d02db173b69239b938b2e38eb65e5a88545e598b6ebbd5e985e";
/// The public URL of the gateway, which the signed token is for.
const RESOURCE: &str = "https://hub.example";
const WITHOUT_AUDIT: &str = "[audit]\nenabled = false\n";

/// The kinds of access control that are measured.
pub(super) struct AccessCases {
    issuer: String,
    token: String,
    _server: RunningServer,
}

pub(super) struct AccessCase {
    pub(super) title: &'static str,
    pub(super) settings: String,
    /// What a client sends; may be empty.
    pub(super) token: String,
}

impl AccessCases {
    /// Starts the issuer of the signed tokens.
    pub(super) fn start(programs: &Programs) -> Result<Self> {
        let mut command = program(&programs.load);
        let audience = format!("{RESOURCE}/mcp");
        let server = RunningServer::start(command.args(["issuer", &audience]), |line| Some(line.to_owned()))?;
        let started: Value = serde_json::from_str(&server.url)?;
        let text =
            |name: &str| started[name].as_str().map(str::to_owned).context("the issuer does not start");
        Ok(Self { issuer: text("issuer")?, token: text("token")?, _server: server })
    }

    pub(super) fn cases(&self) -> [AccessCase; 3] {
        let key = format!("[[auth.tokens]]\nname = \"load\"\nsha256 = \"{KEY_SHA256}\"\n");
        let issuers = format!(
            "[auth]\nresource = \"{RESOURCE}\"\n[[auth.issuers]]\nurl = \"{}\"\nroles = {{ caller = \"*\" }}\n",
            self.issuer
        );
        let case = |title, settings, token: &str| AccessCase { title, settings, token: token.to_owned() };
        [
            case("toolhub, in a session, with a key", format!("{key}{WITHOUT_AUDIT}"), KEY),
            case("toolhub, in a session, with a key and the audit log", key, KEY),
            case(
                "toolhub, in a session, with a signed token",
                format!("{issuers}{WITHOUT_AUDIT}"),
                &self.token,
            ),
        ]
    }
}

/// Prints the CPU time per call, which includes that of the kernel. The processor computes SHA-256 with its own instructions, which
/// callgrind does not know.
pub(super) fn show(programs: &Programs) -> Result<()> {
    let upstream = programs.upstream(1)?;
    let server = json!({"type": "http", "url": upstream.url});
    let access = AccessCases::start(programs)?;
    let open = AccessCase {
        title: "toolhub, in a session",
        settings: WITHOUT_AUDIT.to_owned(),
        token: String::new(),
    };
    let cases: Vec<AccessCase> = [open].into_iter().chain(access.cases()).collect();
    let mut gateways = Vec::with_capacity(cases.len());
    for (index, case) in cases.iter().enumerate() {
        gateways.push(programs.gateway_with(&format!("access-{index}"), &server, &case.settings)?);
    }
    let mut table = Table::default();
    table.row(["server over http", "callers", "CPU a call", "of the first"].map(str::to_owned));
    for callers in CALLERS {
        let mut turns: Vec<Vec<Measurement>> = cases.iter().map(|_| Vec::new()).collect();
        for round in 0..=ROUNDS {
            for ((gateway, case), turns) in gateways.iter().zip(&cases).zip(&mut turns) {
                let before = processor_time(gateway.child.id())?;
                let mut load = program(&programs.load);
                load.args(["load", &gateway.url, &callers.to_string(), &SECONDS.to_string()]).args(SESSION);
                if !case.token.is_empty() {
                    load.env("LOAD_TOKEN", &case.token);
                }
                let measured = turn(&run::read(&mut load)?, processor_time(gateway.child.id())? - before)?;
                // The first round connects to the server.
                if round > 0 {
                    turns.push(measured);
                }
            }
        }
        let processor: Vec<f64> = turns.iter().map(|turns| median(turns, |turn| turn.processor)).collect();
        for (case, time) in cases.iter().zip(&processor) {
            let ratio = time / processor[0];
            table.row([
                case.title.to_owned(),
                callers.to_string(),
                format!("{time:.1} µs"),
                format!("{ratio:.3}"),
            ]);
        }
    }
    println!("CPU time of the gateway per call, median of {ROUNDS} rounds of {SECONDS} s\n{table}");
    Ok(())
}
