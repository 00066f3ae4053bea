//! The hub as a replica of a cluster: the type of `toolhub-cluster`, or one without values in builds without PostgreSQL.

#[cfg(feature = "postgres")]
pub(crate) use toolhub_cluster::Replica;

#[cfg(not(feature = "postgres"))]
pub(crate) use crate::features::Replica;
