//! The page of a cluster: replicas, workers, where servers run, and what does not work.

use maud::{Markup, html};

use super::layout::{PageFrame, duration_text, state_label};
use super::table::{Column, cell_text, foreign_text, table};
use crate::api::cluster::{self, Cluster, PlacedServer, Replica, Worker};
use crate::problem::Problem;
use crate::request::ConsoleContext;

const REPLICA_COLUMNS: [Column; 5] = [
    Column::new("Replica", "副本"),
    Column::new("Machine", "机器"),
    Column::number("Requests on workers", "工作进程上的请求"),
    Column::new("Last sign of life", "最近响应"),
    Column::muted("Version", "版本"),
];

const WORKER_COLUMNS: [Column; 7] = [
    Column::new("Worker", "工作进程"),
    Column::new("Machine", "机器"),
    Column::new("Labels", "标签"),
    Column::number("Servers", "服务器"),
    Column::new("State", "状态"),
    Column::new("Last sign of life", "最近响应"),
    Column::muted("Version", "版本"),
];

const PLACEMENT_COLUMNS: [Column; 5] = [
    Column::new("Server", "服务器"),
    Column::new("Instance", "实例"),
    Column::new("Worker", "工作进程"),
    Column::number("Lease", "租约剩余"),
    Column::number("Epoch", "纪元"),
];

pub(crate) async fn page(
    context: &ConsoleContext<'_>,
    frame: &PageFrame<'_>,
) -> Result<(String, Markup), Problem> {
    let cluster = cluster::read(context).await?;
    let title = frame.text("Cluster", "集群");
    let content = html! {
        h1 { (title) }
        @if cluster.enabled {
            // Members come and go without an event of this hub.
            div data-refresh { (members(frame, &cluster)) }
        } @else {
            div.empty {
                p { (frame.text("This hub runs alone.", "此 hub 独立运行。")) }
                p.muted { (frame.text(
                    "Several machines share a PostgreSQL database and NATS: set `[store] url` and `[cluster] nats` in `toolhub.toml`, and start `toolhub work` on the machines that run servers.",
                    "多台机器通过 PostgreSQL 数据库和 NATS 协作：在 `toolhub.toml` 中设置 `[store] url` 和 `[cluster] nats`，并在运行服务器的机器上启动 `toolhub work`。",
                )) }
            }
        }
    };
    Ok((title.to_owned(), content))
}

fn members(frame: &PageFrame<'_>, cluster: &Cluster) -> Markup {
    html! {
        @if !cluster.degraded.is_empty() {
            section.card {
                h2 { (frame.text("Needs attention", "需要处理")) }
                ul.plain { @for problem in &cluster.degraded { li { (foreign_text(problem)) } } }
            }
        }
        section.card {
            h2 { (frame.text("Replicas", "副本")) }
            (table(
                frame,
                frame.text("Replicas", "副本"),
                &REPLICA_COLUMNS,
                cluster.replicas.iter().map(|replica| replica_row(frame, replica)),
            ))
        }
        section.card {
            h2 { (frame.text("Workers", "工作进程")) }
            @if cluster.workers.is_empty() {
                p.muted { (frame.text(
                    "No worker is running, so that no server that is a program can be reached. Start one:",
                    "没有正在运行的工作进程，因此无法使用以程序形式运行的服务器。请启动一个：",
                )) }
                pre.command { "toolhub work" }
            } @else {
                (table(
                    frame,
                    frame.text("Workers", "工作进程"),
                    &WORKER_COLUMNS,
                    cluster.workers.iter().map(|worker| worker_row(frame, worker)),
                ))
            }
        }
        section.card {
            h2 { (frame.text("Servers on workers", "工作进程上的服务器")) }
            @if cluster.placements.is_empty() {
                p.muted { (frame.text(
                    "None. A worker starts a server when a call needs it.",
                    "无。调用需要某个服务器时，工作进程会启动它。",
                )) }
            } @else {
                (table(
                    frame,
                    frame.text("Servers on workers", "工作进程上的服务器"),
                    &PLACEMENT_COLUMNS,
                    cluster.placements.iter().map(|placement| placement_row(frame, placement)),
                ))
            }
        }
    }
}

fn replica_row(frame: &PageFrame<'_>, replica: &Replica) -> Vec<Markup> {
    vec![
        foreign_text(&replica.id),
        foreign_text(&replica.address),
        cell_text(replica.calls.to_string()),
        ago(frame, replica.silent_ms),
        foreign_text(&replica.version),
    ]
}

fn worker_row(frame: &PageFrame<'_>, worker: &Worker) -> Vec<Markup> {
    let state = match worker {
        worker if worker.draining => state_label("waiting", frame.text("ending", "正在结束")),
        worker if worker.servers >= worker.capacity => state_label("failed", frame.text("full", "已满")),
        _ => state_label("ready", frame.text("ready", "就绪")),
    };
    vec![
        foreign_text(&worker.id),
        foreign_text(&worker.address),
        foreign_text(worker.labels.join(", ")),
        cell_text(format!("{} / {}", worker.servers, worker.capacity)),
        state,
        ago(frame, worker.silent_ms),
        foreign_text(&worker.version),
    ]
}

fn placement_row(frame: &PageFrame<'_>, placement: &PlacedServer) -> Vec<Markup> {
    vec![
        html! { a href=(frame.item("servers", &placement.server)) { (foreign_text(&placement.server)) } },
        foreign_text(&placement.instance),
        foreign_text(&placement.worker),
        cell_text(duration_text(placement.lease_ms)),
        cell_text(placement.epoch.to_string()),
    ]
}

/// A time that has passed.
fn ago(frame: &PageFrame<'_>, ms: f64) -> Markup {
    let span = duration_text(ms);
    cell_text(frame.lang().choose(format!("{span} ago"), format!("{span}前")))
}
