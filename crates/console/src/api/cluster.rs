//! `cluster`: the replicas and workers of several machines, and which worker runs which server.

use axum::body::Body;
use http::{Response, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use toolhub::ClusterStatus;
use toolhub_core::Localize as _;
use toolhub_core::cluster::{ClusterMember, MemberKind, Placement};

use super::millis;
use crate::problem::Problem;
use crate::request::ConsoleContext;
use crate::route::json_response;

/// The state of the cluster of this hub.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Cluster {
    /// Whether this hub belongs to a cluster. If not, the lists are empty.
    pub(crate) enabled: bool,
    pub(crate) replicas: Vec<Replica>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) placements: Vec<PlacedServer>,
    /// What does not work, for people.
    pub(crate) degraded: Vec<String>,
}

/// A process that serves clients.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Replica {
    pub(crate) id: String,
    /// The machine.
    pub(crate) address: String,
    pub(crate) version: String,
    /// The number of its requests that run on workers.
    pub(crate) calls: u32,
    /// The time since its last sign of life, in milliseconds.
    pub(crate) silent_ms: f64,
}

/// A process that runs servers for the replicas.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Worker {
    pub(crate) id: String,
    /// The machine.
    pub(crate) address: String,
    pub(crate) version: String,
    /// What it offers to servers that ask for labels.
    pub(crate) labels: Vec<String>,
    /// The number of servers that it runs.
    pub(crate) servers: u32,
    /// The number of servers that it runs at most.
    pub(crate) capacity: u32,
    /// Whether it is ending and takes no new servers.
    pub(crate) draining: bool,
    /// The time since its last sign of life, in milliseconds.
    pub(crate) silent_ms: f64,
}

/// A server that runs on a worker.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PlacedServer {
    pub(crate) server: String,
    /// The number of a shared instance, or the start of the digest of the caller whose instance it is.
    pub(crate) instance: String,
    /// The id of the worker.
    pub(crate) worker: String,
    /// The number that no other placement has.
    pub(crate) epoch: i64,
    /// How long the lease lasts without being extended, in milliseconds.
    pub(crate) lease_ms: f64,
}

impl From<&ClusterMember> for Replica {
    fn from(member: &ClusterMember) -> Self {
        Self {
            id: member.id.clone(),
            address: member.address.clone(),
            version: member.version.clone(),
            calls: member.load,
            silent_ms: millis(member.silent_for),
        }
    }
}

impl From<&ClusterMember> for Worker {
    fn from(member: &ClusterMember) -> Self {
        Self {
            id: member.id.clone(),
            address: member.address.clone(),
            version: member.version.clone(),
            labels: member.labels.clone(),
            servers: member.load,
            capacity: member.capacity,
            draining: member.draining,
            silent_ms: millis(member.silent_for),
        }
    }
}

impl From<&Placement> for PlacedServer {
    fn from(placement: &Placement) -> Self {
        Self {
            server: placement.key.server.clone(),
            instance: ClusterStatus::shown_instance(&placement.key.instance).to_owned(),
            worker: placement.worker.clone(),
            epoch: placement.epoch,
            lease_ms: millis(placement.remaining_lease),
        }
    }
}

pub(crate) async fn get(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    Ok(json_response(StatusCode::OK, &read(context).await?))
}

/// The state of the cluster, as the database and NATS know it now.
pub(crate) async fn read(context: &ConsoleContext<'_>) -> Result<Cluster, Problem> {
    let Some(status) = context.hub().cluster_status().await else {
        return Ok(Cluster {
            enabled: false,
            replicas: Vec::new(),
            workers: Vec::new(),
            placements: Vec::new(),
            degraded: Vec::new(),
        });
    };
    let status = status
        .map_err(|error| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "cluster-unavailable", error.0))?;
    Ok(Cluster {
        enabled: true,
        replicas: status.members_of(MemberKind::Replica).map(Replica::from).collect(),
        workers: status.members_of(MemberKind::Worker).map(Worker::from).collect(),
        placements: status.placements.iter().map(PlacedServer::from).collect(),
        degraded: status.degraded.iter().map(|text| text.localize(context.lang)).collect(),
    })
}
