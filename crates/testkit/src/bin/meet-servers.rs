//! Connects to every server of a config concurrently, for the benchmark `servers`: prints the milliseconds until all
//! named `good…` were listed and had answered a call, while the others were called in a loop.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::future::{join_all, try_join_all};
use serde_json::json;
use toolhub::{Hub, ToolCall};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the benchmark that starts it reads the output")]
async fn main() -> Result<()> {
    let mut folders = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(config), Some(home), None) = (folders.next(), folders.next(), folders.next()) else {
        bail!("usage: meet-servers CONFIG HOME");
    };
    let hub = Hub::builder().config(config).home(home).build().await?;
    let ids: Vec<String> = hub.servers().iter().map(|server| server.spec.id.as_str().to_owned()).collect();
    let (good, bad): (Vec<_>, Vec<_>) = ids.iter().partition(|id| id.starts_with("good"));
    ensure!(!good.is_empty(), "no server is named `good…`");
    let took = tokio::select! {
        never = poll_until_listed(&hub, &bad) => match never {},
        took = connect_all(&hub, &good) => took,
    };
    hub.shutdown().await;
    println!("{:.3}", took?.as_secs_f64() * 1000.0);
    Ok(())
}

/// Returns the time until all are listed and have answered.
async fn connect_all(hub: &Hub, ids: &[&String]) -> Result<Duration> {
    let started = Instant::now();
    try_join_all(ids.iter().map(async |id| {
        let listed = hub.list_server(id).await.context("it is configured")?;
        let tool = listed?.tools.first().and_then(|tool| tool.value()["name"].as_str().map(str::to_owned));
        let call = ToolCall::new(tool.context("it has a tool")?, json!({"n": 1})).at(id.as_str());
        hub.call(call).await.result.map(drop).with_context(|| format!("the call at `{id}`"))
    }))
    .await?;
    Ok(started.elapsed())
}

/// Calls unusable servers in a loop, without end.
async fn poll_until_listed(hub: &Hub, ids: &[&String]) -> Infallible {
    join_all(ids.iter().map(async |id| {
        loop {
            hub.call(ToolCall::new("anything", json!({})).at(id.as_str())).await;
        }
    }))
    .await;
    std::future::pending().await
}
