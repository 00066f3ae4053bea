//! The time of each page and list, and the size of what a browser loads first.
use std::{
    collections::BTreeSet,
    io::Write as _,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use flate2::{Compression, write::GzEncoder};
use serde_json::Value;

use super::http::{Browser, Connection, Response};
use crate::{
    bench::samples::{milliseconds, percentile},
    table::Table,
};

const WARM_UPS: usize = 3;
const REQUESTS: usize = 40;
/// Maximum 95th percentile of a page or list.
const GOAL: Duration = Duration::from_millis(100);
/// Maximum size of the first load after compression, in kB.
const FIRST_LOAD_GOAL_KB: f64 = 150.0;

/// Pages and lists; `{call}` is the id of an older call, and `{now}` the time of one of the newest. The filters of calls match often, seldom and
/// never: `echo_0` is the tool that was used most, `echo_9999` the one that was used least.
const PATHS: &[&str] = &[
    "/console/",
    "/console/tools",
    "/console/tools?cursor=echo_5000",
    "/console/tools?q=give+back+a+text",
    "/console/tools?q=查询天气",
    "/console/tools/echo_5000",
    "/console/servers",
    "/console/servers/up",
    "/console/calls",
    "/console/calls?cursor={call}",
    "/console/calls?tool=echo_0",
    "/console/calls?tool=echo_9999",
    "/console/calls?status=failed",
    "/console/calls?status=unknown",
    "/console/calls?status=running",
    "/console/calls?principal=key:ci",
    "/console/calls?source=up",
    "/console/calls?source=native",
    "/console/calls?text=order",
    "/console/calls?text=order+500000+of",
    "/console/calls?text=nowhere",
    "/console/calls?text=nowhere&tool=echo_0",
    "/console/calls/{call}",
    "/console/waiting",
    "/console/skills",
    "/console/profiles",
    "/console/clients",
    "/console/access",
    "/console/audit",
    "/console/settings",
    "/api/v1/stats",
    "/api/v1/servers",
    "/api/v1/tools",
    "/api/v1/tools?limit=1000",
    "/api/v1/calls",
    "/api/v1/calls?limit=500&details=true",
    "/api/v1/calls?since={now}",
    "/api/v1/calls?text=nowhere",
    "/api/v1/waiting",
    "/api/v1/skills",
    "/api/v1/profiles",
    "/api/v1/keys",
    "/api/v1/rules",
    "/api/v1/audit",
];

pub(super) fn measure(browser: &Browser) -> Result<Table> {
    let mut connection = browser.connect()?;
    let newest: Value =
        serde_json::from_slice(&load(&mut connection, "/api/v1/calls?tool=echo_0&limit=500")?.body)?;
    let items = newest["items"].as_array().context("no history")?;
    let text = |call: Option<&Value>, name: &str| {
        call.and_then(|call| call[name].as_str()).map(str::to_owned).context("a call without its facts")
    };
    let (call, now) = (text(items.last(), "id")?, text(items.first(), "started_at")?);
    let mut table = Table::default();
    table.row(["", "p50 ms", "p95 ms", "kB", ""].map(str::to_owned));
    for path in PATHS {
        let concrete = path.replace("{call}", &call).replace("{now}", &now);
        let concrete = concrete.replace("查询天气", "%E6%9F%A5%E8%AF%A2%E5%A4%A9%E6%B0%94");
        let mut bytes = 0;
        let mut samples = Vec::with_capacity(REQUESTS);
        for round in 0..WARM_UPS + REQUESTS {
            let started = Instant::now();
            let response = load(&mut connection, &concrete)?;
            if round >= WARM_UPS {
                samples.push(started.elapsed());
            }
            bytes = response.body.len();
        }
        samples.sort_unstable();
        let p95 = percentile(&samples, 95);
        let verdict = if p95 < GOAL { String::new() } else { format!("over {} ms", GOAL.as_millis()) };
        let size = format!("{:.1}", bytes as f64 / 1e3);
        table.row([
            (*path).to_owned(),
            milliseconds(percentile(&samples, 50)),
            milliseconds(p95),
            size,
            verdict,
        ]);
    }
    Ok(table)
}

fn load(connection: &mut Connection<'_>, path: &str) -> Result<Response> {
    let response = connection.get(path)?;
    ensure!(response.status == 200, "{path}: {} {}", response.status, response.text());
    Ok(response)
}

/// The home page with the scripts and styles that it loads, directly or from another script.
pub(super) fn first_load(browser: &Browser) -> Result<Table> {
    let mut connection = browser.connect()?;
    let mut table = Table::default();
    table.row(["first load", "kB", "kB with gzip", "sent as"].map(str::to_owned));
    let mut waiting = vec!["/console/".to_owned()];
    let mut seen: BTreeSet<String> = waiting.iter().cloned().collect();
    let (mut plain, mut compressed) = (0.0, 0.0);
    while let Some(path) = waiting.pop() {
        let response = load(&mut connection, &path)?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&response.body)?;
        let sizes = [response.body.len() as f64 / 1e3, encoder.finish()?.len() as f64 / 1e3];
        plain += sizes[0];
        compressed += sizes[1];
        let encoding = response.header("content-encoding").unwrap_or("plain text").to_owned();
        table.row([path, format!("{:.1}", sizes[0]), format!("{:.1}", sizes[1]), encoding]);
        for asset in assets_of(&response.text()) {
            if seen.insert(asset.clone()) {
                waiting.push(asset);
            }
        }
    }
    table.row([
        "sum".to_owned(),
        format!("{plain:.1}"),
        format!("{compressed:.1}"),
        format!("goal: {FIRST_LOAD_GOAL_KB} kB with gzip"),
    ]);
    Ok(table)
}

/// The assets that a page or a script always loads: all of them lie in one folder. Scripts load others on some pages.
fn assets_of(text: &str) -> BTreeSet<String> {
    let parts: Vec<&str> = text.split('"').collect();
    let is_loaded =
        |before: &str| ["href=", "src=", "from ", "import "].iter().any(|word| before.ends_with(word));
    parts
        .windows(2)
        .filter(|pair| is_loaded(pair[0]) && (pair[1].ends_with(".js") || pair[1].ends_with(".css")))
        .filter_map(|pair| pair[1].rsplit('/').next())
        .map(|name| format!("/console/assets/{name}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_assets_of_pages_and_scripts() {
        let page = r#"<link rel="stylesheet" href="assets/a.css"><script src="./assets/b.js"></script>"#;
        let script =
            r#"import { x } from "./c_d.js"; if (x) import("./e.js"); const text = "no asset: y.js";"#;
        assert_eq!(Vec::from_iter(assets_of(page)), ["/console/assets/a.css", "/console/assets/b.js"]);
        assert_eq!(Vec::from_iter(assets_of(script)), ["/console/assets/c_d.js"]);
    }
}
