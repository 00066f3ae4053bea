//! `toolhub work`: runs servers for the replicas of a cluster until it is stopped.

use std::num::NonZeroUsize;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use toolhub::{ClusterWorker, EventSink, Localize as _, ScriptHost, WorkerOverrides};
use toolhub_core::{RawJson, RawObject};

use super::user_settings;
use crate::app::{App, StopSignal};
use crate::args::cluster::WorkArgs;
use crate::exit::{Exit, UsageError};
use crate::render::screen::{BOLD, DIM, NAME};
use crate::render::trace::TracePrinter;

pub(crate) async fn run(app: &App, args: WorkArgs) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let (paths, settings) = user_settings(app)?;
    let mut listeners: Vec<Arc<dyn EventSink>> = Vec::new();
    if app.global.trace || app.global.verbose > 0 {
        listeners.push(Arc::new(TracePrinter::new(Arc::clone(&app.screen), app.global.trace)));
    }
    let overrides = WorkerOverrides {
        labels: args.labels,
        capacity: args.capacity.map(NonZeroUsize::get),
        scripts: args.scripts,
        skills: args.skills,
    };
    // Before servers are started: until then, a signal kills this process but not its servers.
    let mut stopped = StopSignal::register();
    let script_host = ScriptHost::of_current_program().ok();
    let worker = ClusterWorker::join(paths, settings, overrides, listeners, script_host).await;
    let worker = worker.map_err(|error| UsageError(error.localize(lang)))?;
    for note in worker.notes() {
        app.screen.warn(&note.localize(lang));
    }
    announce(app, &worker);
    let stop = CancellationToken::new();
    let working = worker.run(stop.clone());
    tokio::pin!(working);
    tokio::select! {
        () = &mut working => return Ok(Exit::Done),
        () = stopped.recv() => {}
    }
    app.screen.note(lang.choose(
        "finishing requests in progress and giving the servers to other workers; Ctrl-C again ends it at once",
        "正在完成未结束的请求，并把服务器交给其他工作进程；再按一次 Ctrl-C 立即结束",
    ));
    stop.cancel();
    tokio::select! {
        () = working => {}
        // The servers are killed when the future is dropped.
        () = stopped.recv() => {}
    }
    Ok(Exit::Done)
}

/// Prints what the worker offers.
fn announce(app: &App, worker: &ClusterWorker) {
    let (id, labels, capacity) = (worker.id(), worker.labels(), worker.capacity());
    let (scripts, skills) = (worker.scripts(), worker.skills());
    if app.screen.json {
        let json = RawObject::default()
            .with("worker", id)
            .with("labels", RawJson::of(&labels))
            .with("capacity", RawJson::of(&capacity))
            .with("scripts", RawJson::of(&scripts))
            .with("skills", RawJson::of(&skills));
        app.screen.json(&json.into_raw());
        return;
    }
    let (labels, lang) = (labels.join(", "), app.lang());
    let offer = match labels.is_empty() {
        true => lang.choose(
            format!(
                "runs up to {capacity} servers, {scripts} scripts and {skills} scripts of skills for the cluster"
            ),
            format!("最多为集群运行 {capacity} 个服务器、{scripts} 个脚本和 {skills} 个技能脚本"),
        ),
        false => lang.choose(
            format!(
                "runs up to {capacity} servers for the cluster, also those that ask for {labels}, {scripts} scripts and {skills} scripts of skills"
            ),
            format!(
                "最多为集群运行 {capacity} 个服务器（包括要求 {labels} 的服务器）、{scripts} 个脚本和 {skills} 个技能脚本"
            ),
        ),
    };
    app.screen.to_stderr(&format!("{BOLD}toolhub{BOLD:#} {NAME}{id}{NAME:#} {offer}"));
    let hint = lang.choose(
        "`toolhub cluster status` shows the cluster; Ctrl-C ends this worker",
        "`toolhub cluster status` 显示集群状态；按 Ctrl-C 结束此工作进程",
    );
    app.screen.to_stderr(&format!("{DIM}{hint}{DIM:#}"));
}
