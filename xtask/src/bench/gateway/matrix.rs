//! The gateway beside the baseline (bare pass-through) in every common case: address of the server, read-only or changing tool,
//! stand-alone requests or sessions. The baseline connects to the server at the same address. The table also shows the share of
//! calls that are stored afterwards.
use std::{
    fs,
    net::{IpAddr, UdpSocket},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{Measurement, Programs, RunningServer, history, median, processor_time, turn};
use crate::{
    run::{self, program},
    table::Table,
};

/// Number of rounds; the median is shown.
const ROUNDS: usize = 3;
const SECONDS: &str = "2";
const CALLERS: [usize; 2] = [1, 32];

/// The kind of address of the server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Address {
    Loopback,
    Other,
    Tls,
}

impl Address {
    const ALL: [Self; 3] = [Self::Loopback, Self::Other, Self::Tls];

    fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Other => "other address",
            Self::Tls => "TLS",
        }
    }
}

/// A self-signed certificate for this machine.
struct Certificate {
    certificate: PathBuf,
    key: PathBuf,
}

impl Certificate {
    fn create(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
        let mut openssl = program("openssl");
        openssl
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
            .args(["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(&certificate);
        run::read(&mut openssl).context("`openssl` makes the certificate of the TLS rows")?;
        Ok(Self { certificate, key })
    }
}

/// A non-loopback address of this machine. Connecting a UDP socket sends no packet.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

pub(super) fn show(programs: &Programs) -> Result<()> {
    println!(
        "median of {ROUNDS} rounds of {SECONDS} s; the baseline reaches the server at the same address\n"
    );
    let certificate = Certificate::create(&programs.folder.join("tls"))?;
    let mut table = Table::default();
    let head =
        "server at|tool|client|1: baseline|toolhub|of baseline|32: baseline|toolhub|of baseline|calls/s|kept";
    table.row(head.split('|').map(str::to_owned));
    for address in Address::ALL {
        let Some(pair) = Pair::start(programs, address, &certificate)? else {
            println!("this machine has no address but loopback ones: {} is left out", address.name());
            continue;
        };
        for (tool, kind) in [("echo_0", "read-only"), ("change_0", "may change")] {
            for (call_args, client) in
                [(vec!["alone", tool], "stand-alone"), (vec!["session", "2025-11-25", tool], "session")]
            {
                let cell = pair.measure(programs, &call_args)?;
                let mut row = vec![address.name().to_owned(), kind.to_owned(), client.to_owned()];
                for turns in &cell.turns {
                    let [baseline, hub] = turns.each_ref().map(|turns| median(turns, |turn| turn.processor));
                    row.extend([
                        format!("{baseline:.0} µs"),
                        format!("{hub:.0} µs"),
                        format!("{:.2}", hub / baseline),
                    ]);
                }
                row.push(format!("{:.0}", median(&cell.turns[1][1], |turn| turn.rate)));
                row.push(format!("{:.1} %", cell.retained * 100.0));
                table.row(row);
            }
        }
    }
    println!("{table}");
    beside_peers(programs)?;
    recording(programs)
}

/// The loopback rows with 32 callers beside other gateways, which support clients in sessions only.
fn beside_peers(programs: &Programs) -> Result<()> {
    if programs.peers.is_empty() {
        return Ok(());
    }
    let upstream = programs.upstream(1)?;
    let server = json!({"type": "http", "url": upstream.url});
    let session = |tool: &str| ["session", "2025-11-25", tool].map(str::to_owned).to_vec();
    let mut subjects = vec![
        ("baseline", programs.baseline(&upstream)?, None),
        ("toolhub", programs.gateway("matrix-beside-peers", &server)?, None),
    ];
    for peer in &programs.peers {
        let folder = programs.folder.join(peer.name()).join("matrix");
        subjects.push((peer.name(), peer.serve(&folder, &server)?, Some(peer)));
    }
    let mut table = Table::default();
    table.row(
        ["loopback, session, 32 callers", "tool", "CPU/call", "of baseline", "calls/s"].map(str::to_owned),
    );
    for (tool, kind) in [("echo_0", "read-only"), ("change_0", "may change")] {
        let mut turns: Vec<Vec<Measurement>> = subjects.iter().map(|_| Vec::new()).collect();
        for round in 0..=ROUNDS {
            for ((_, running_server, peer), turns) in subjects.iter().zip(&mut turns) {
                let call_args = peer.map_or_else(|| session(tool), |peer| peer.call_args_for(tool));
                let before = processor_time(running_server.child.id())?;
                let mut loading = program(&programs.load);
                loading.args(["load", &running_server.url, "32", SECONDS]).args(call_args);
                let report = run::read(&mut loading)?;
                // The first round connects to the server.
                if round > 0 {
                    turns.push(turn(&report, processor_time(running_server.child.id())? - before)?);
                }
            }
        }
        let baseline = median(&turns[0], |turn| turn.processor);
        for ((name, ..), turns) in subjects.iter().zip(&turns) {
            let processor = median(turns, |turn| turn.processor);
            table.row([
                (*name).to_owned(),
                kind.to_owned(),
                format!("{processor:.0} µs"),
                format!("{:.2}", processor / baseline),
                format!("{:.0}", median(turns, |turn| turn.rate)),
            ]);
        }
    }
    println!("{table}");
    Ok(())
}

/// The cost of storing every call with its details, compared with storing a sample.
fn recording(programs: &Programs) -> Result<()> {
    let upstream = programs.upstream(1)?;
    let server = json!({"type": "http", "url": upstream.url});
    let hubs = [
        programs.gateway_with("all", &server, "[store]\ndetail = \"all\"\n")?,
        programs.gateway_with("sample", &server, "[store]\ndetail = \"sample\"\n")?,
    ];
    let mut turns = [Vec::new(), Vec::new()];
    for round in 0..=2 * ROUNDS {
        for (hub, turns) in hubs.iter().zip(&mut turns) {
            let before = processor_time(hub.child.id())?;
            let mut loading = program(&programs.load);
            loading.args(["load", &hub.url, "32", SECONDS]);
            let report = run::read(&mut loading)?;
            // The first round connects to the server.
            if round > 0 {
                turns.push(turn(&report, processor_time(hub.child.id())? - before)?);
            }
        }
    }
    let [all, sample] = turns.each_ref().map(|turns| median(turns, |turn| turn.processor));
    println!("32 callers, loopback, stand-alone, read-only:");
    println!("detail = \"all\" takes {all:.1} µs of CPU a call, \"sample\" {sample:.1}: {:.2}", all / sample);
    Ok(())
}

/// The baseline and the gateway in front of the same server.
struct Pair {
    _upstream: RunningServer,
    baseline: RunningServer,
    hub: RunningServer,
    home: PathBuf,
}

/// The results of one row: for 1 and for 32 callers, the runs of the baseline and of the gateway.
struct Cell {
    turns: [[Vec<Measurement>; 2]; 2],
    /// Share of the calls that are stored.
    retained: f64,
}

impl Pair {
    fn start(programs: &Programs, address: Address, certificate: &Certificate) -> Result<Option<Self>> {
        let mut upstream = program(&programs.load);
        let mut baseline = program(&programs.load);
        match address {
            Address::Loopback => upstream.args(["upstream-http", "1"]),
            Address::Other => match own_address() {
                None => return Ok(None),
                Some(own) => upstream.args(["upstream-http", "1", &own.to_string()]),
            },
            Address::Tls => upstream
                .args(["upstream-https", "1", "127.0.0.1"])
                .args([&certificate.certificate, &certificate.key]),
        };
        let whole = |line: &str| Some(line.to_owned());
        let upstream = RunningServer::start(&mut upstream, whole)?;
        baseline.args(["baseline", &upstream.url]);
        if address == Address::Tls {
            baseline.arg(&certificate.certificate);
        }
        let name = format!("matrix-{}", address.name().replace(' ', "-"));
        let server = json!({"type": "http", "url": upstream.url});
        let trust = |mut command: std::process::Command| {
            command.env("SSL_CERT_FILE", &certificate.certificate);
            command
        };
        let hub = programs.gateway_under(&name, &server, &trust)?;
        let home = programs.folder.join(name).join("home");
        Ok(Some(Self {
            _upstream: upstream,
            baseline: RunningServer::start(&mut baseline, whole)?,
            hub,
            home,
        }))
    }

    fn measure(&self, programs: &Programs, call_args: &[&str]) -> Result<Cell> {
        let subjects = [&self.baseline, &self.hub];
        let load = |subject: &RunningServer, callers: usize| -> Result<(Measurement, u64)> {
            let before = processor_time(subject.child.id())?;
            let mut loading = program(&programs.load);
            loading.args(["load", &subject.url, &callers.to_string(), SECONDS]).args(call_args);
            let report = run::read(&mut loading)?;
            let calls =
                serde_json::from_str::<Value>(report.trim())?["calls"].as_u64().context("no calls")?;
            Ok((turn(&report, processor_time(subject.child.id())? - before)?, calls))
        };
        let kept_before = history::wait_until_stored(&self.home)?;
        let mut turns = [[Vec::new(), Vec::new()], [Vec::new(), Vec::new()]];
        let mut made = 0;
        for subject in subjects {
            // The first calls connect to the server.
            let (_, calls) = load(subject, 1)?;
            made += if std::ptr::eq(subject, &raw const self.hub) { calls } else { 0 };
        }
        for _ in 0..ROUNDS {
            for (callers, turns) in CALLERS.iter().zip(&mut turns) {
                for (subject, turns) in subjects.iter().zip(turns) {
                    let (turn, calls) = load(subject, *callers)?;
                    turns.push(turn);
                    made += if std::ptr::eq(*subject, &raw const self.hub) { calls } else { 0 };
                }
            }
        }
        let retained = (history::wait_until_stored(&self.home)? - kept_before) as f64 / made as f64;
        Ok(Cell { turns, retained })
    }
}
