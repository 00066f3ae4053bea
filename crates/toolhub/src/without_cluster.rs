//! Replacement for clusters in builds without the feature `postgres`: every attempt to join one fails, with the next step.

use std::convert::Infallible;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use toolhub_core::EventSink;
use toolhub_core::lang::LocalizedText;
use toolhub_script::HostConfig as ScriptHost;

use crate::cluster_status::{ClusterError, ClusterStatus, WorkerOverrides};
use crate::features::missing_cluster;
use crate::settings::{Paths, Settings};

/// A worker. In builds without PostgreSQL this type has no values.
#[derive(Debug)]
pub struct ClusterWorker(Infallible);

impl ClusterWorker {
    /// Fails.
    #[expect(clippy::unused_async, reason = "as with PostgreSQL")]
    pub async fn join(
        _: Paths,
        _: Settings,
        _: WorkerOverrides,
        _: Vec<Arc<dyn EventSink>>,
        _: Option<ScriptHost>,
    ) -> Result<Self, ClusterError> {
        Err(ClusterError(missing_cluster()))
    }

    /// Its id in the cluster.
    pub fn id(&self) -> &str {
        match self.0 {}
    }

    /// What it offers.
    pub fn labels(&self) -> &[String] {
        match self.0 {}
    }

    /// How many instances of servers it runs at most.
    pub fn capacity(&self) -> usize {
        match self.0 {}
    }

    /// How many scripts it runs at most.
    pub fn scripts(&self) -> usize {
        match self.0 {}
    }

    /// How many scripts of skills it runs at most.
    pub fn skills(&self) -> usize {
        match self.0 {}
    }

    /// Warnings about the configuration.
    pub fn notes(&self) -> &[LocalizedText] {
        match self.0 {}
    }

    /// Works until `stop` is cancelled.
    pub async fn run(self, _: CancellationToken) {
        match self.0 {}
    }
}

/// Fails.
#[expect(clippy::unused_async, reason = "as with PostgreSQL")]
pub async fn cluster_status(_: &Settings, _: &Paths) -> Result<ClusterStatus, ClusterError> {
    Err(ClusterError(missing_cluster()))
}
