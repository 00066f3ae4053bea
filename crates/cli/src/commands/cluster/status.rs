//! `toolhub cluster status`: replicas, workers, placements, and what is degraded.

use toolhub::{ClusterStatus, Localize as _, cluster_status};
use toolhub_core::cluster::{ClusterMember, MemberKind};

use super::user_settings;
use crate::app::App;
use crate::exit::{Exit, UsageError};
use crate::render::screen::{BAD, BOLD, DIM, NAME, ODD};
use crate::render::table::{Cell, table_lines};

pub(crate) async fn run(app: &App) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let (paths, settings) = user_settings(app)?;
    let status = cluster_status(&settings, &paths).await;
    let status = status.map_err(|error| UsageError(error.localize(lang)))?;
    if app.screen.json {
        app.screen.json(&status.to_json(lang).into_raw());
        return Ok(Exit::Done);
    }
    section(
        app,
        lang.choose("replicas", "副本"),
        &status.members_of(MemberKind::Replica).map(|member| replica(app, member)).collect::<Vec<_>>(),
    );
    section(
        app,
        lang.choose("workers", "工作进程"),
        &status.members_of(MemberKind::Worker).map(|member| worker(app, member)).collect::<Vec<_>>(),
    );
    section(app, lang.choose("servers", "服务器"), &placements(app, &status));
    for why in &status.degraded {
        app.screen.warn(&why.localize(lang));
    }
    Ok(Exit::Done)
}

fn section(app: &App, title: &str, rows: &[Vec<Cell>]) {
    app.screen.line(&format!("{BOLD}{title}{BOLD:#}"));
    if rows.is_empty() {
        let none = app.lang().choose("none", "无");
        app.screen.line(&format!("  {DIM}{none}{DIM:#}"));
    }
    for line in table_lines(rows, "  ", app.screen.width()) {
        app.screen.line(&line);
    }
}

fn replica(app: &App, member: &ClusterMember) -> Vec<Cell> {
    let calls = member.load;
    vec![
        Cell::new(&member.id, NAME),
        Cell::new(&member.address, DIM),
        Cell::from(
            app.lang().choose(format!("{calls} requests on workers"), format!("{calls} 个请求在工作进程上")),
        ),
        Cell::new(&member.version, DIM),
    ]
}

fn worker(app: &App, member: &ClusterMember) -> Vec<Cell> {
    let (load, capacity, lang) = (member.load, member.capacity, app.lang());
    let state = match member.draining {
        true => Cell::new(lang.choose("ending", "正在结束"), ODD),
        false if load >= capacity => Cell::new(lang.choose("full", "已满"), BAD),
        false => Cell::from(member.labels.join(", ")),
    };
    vec![
        Cell::new(&member.id, NAME),
        Cell::new(&member.address, DIM),
        Cell::from(
            lang.choose(format!("{load} of {capacity} servers"), format!("{load}/{capacity} 个服务器")),
        ),
        state,
        Cell::new(&member.version, DIM),
    ]
}

fn placements(app: &App, status: &ClusterStatus) -> Vec<Vec<Cell>> {
    let row = |placement: &toolhub_core::cluster::Placement| {
        let seconds = placement.remaining_lease.as_secs();
        vec![
            Cell::new(&placement.key.server, NAME),
            Cell::new(ClusterStatus::shown_instance(&placement.key.instance), DIM),
            Cell::from(placement.worker.clone()),
            Cell::new(app.lang().choose(format!("for {seconds} s"), format!("剩余 {seconds} 秒")), DIM),
        ]
    };
    status.placements.iter().map(row).collect()
}
