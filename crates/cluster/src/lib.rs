//! Several machines: messages over NATS, the placement of servers on workers, the workers, and the side of the replicas that use
//! them. Placement is in the database behind the port `toolhub_core::cluster`.

pub mod bus;
mod calls;
mod clock;
mod cluster_protocol;
mod exchange;
mod liveness;
mod membership;
pub mod peer;
mod replica;
#[cfg(test)]
mod skill_tests;
#[cfg(test)]
mod test_store;
mod worker;

pub use replica::{JoinOptions, Replica};
pub use worker::{ScriptOffer, ServerSource, SkillOffer, Worker, WorkerOptions};
