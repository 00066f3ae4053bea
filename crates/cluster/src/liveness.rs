//! Signs of life: each member publishes one per second, and records the last one of each other member.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::bus::Bus;
use crate::cluster_protocol::{self, Heartbeat, Subjects};

/// Interval of the signs of life.
pub(crate) const BEAT_INTERVAL: Duration = Duration::from_secs(1);
/// A member counts as lost after this silence: three signs of life are missing.
pub(crate) const LOST_AFTER: Duration = Duration::from_millis(3500);
/// Members without a sign of life for this long are removed.
const FORGET_AFTER: Duration = Duration::from_secs(600);

/// The last sign of life of each member.
#[derive(Debug, Default)]
pub(crate) struct Liveness(Mutex<HashMap<String, LastHeartbeat>>);

/// The last sign of life of a member.
#[derive(Debug, Clone, Copy)]
struct LastHeartbeat {
    at: Instant,
    free: FreeSlots,
}

/// How much more a member takes beside servers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FreeSlots {
    /// How many more scripts it takes; `None` if it takes none.
    pub(crate) scripts: Option<u32>,
    /// The same of scripts of skills.
    pub(crate) skills: Option<u32>,
}

/// What a worker runs beside servers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SlotKind {
    Script,
    Skill,
}

/// A worker that has slots of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlotOwner {
    pub(crate) member: String,
    /// Whether its last sign of life reported no free slot.
    pub(crate) is_full: bool,
}

impl FreeSlots {
    fn of(self, kind: SlotKind) -> Option<u32> {
        match kind {
            SlotKind::Script => self.scripts,
            SlotKind::Skill => self.skills,
        }
    }
}

impl Liveness {
    /// Since when a member has been silent, but not before `since`.
    pub(crate) fn silent_since(&self, member: &str, since: Instant) -> Instant {
        let heard = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(member).copied();
        heard.map_or(since, |heard| heard.at.max(since))
    }

    /// The members that live and have slots of a kind, in random order; those that were full come last.
    pub(crate) fn workers(&self, kind: SlotKind) -> Vec<SlotOwner> {
        let mut workers: Vec<SlotOwner> = {
            let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let alive = all.iter().filter(|(_, sign)| sign.at.elapsed() <= LOST_AFTER);
            let owner = |(member, sign): (&String, &LastHeartbeat)| {
                Some(SlotOwner { is_full: sign.free.of(kind)? == 0, member: member.clone() })
            };
            alive.filter_map(owner).collect()
        };
        fastrand::shuffle(&mut workers);
        workers.sort_by_key(|worker| worker.is_full);
        workers
    }

    fn heard(&self, beat: Heartbeat) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let free = FreeSlots { scripts: beat.scripts, skills: beat.skills };
        all.insert(beat.member, LastHeartbeat { at: Instant::now(), free });
        if all.len() > 1024 {
            all.retain(|_, heard| heard.at.elapsed() < FORGET_AFTER);
        }
    }

    /// Publishes the signs of life of `own` with its free slots, and receives those of others. Runs until it is dropped.
    pub(crate) async fn run(self: Arc<Self>, bus: Bus, own: String, free: impl Fn() -> FreeSlots) {
        let subjects = Subjects(&bus);
        let subject = subjects.beat(&own);
        let beat = || {
            let FreeSlots { scripts, skills } = free();
            cluster_protocol::write(&Heartbeat { member: own.clone(), scripts, skills }, b"")
        };
        loop {
            let Ok(mut beats) = bus.subscribe(&subjects.beats()).await else {
                tokio::time::sleep(BEAT_INTERVAL).await;
                continue;
            };
            let mut ticks = tokio::time::interval(BEAT_INTERVAL);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    event = beats.next() => match event {
                        Some(event) => {
                            if let Some((beat, _)) = cluster_protocol::read(&event.payload) {
                                self.heard(beat);
                            }
                        }
                        None => break,
                    },
                    // Without a connection, nothing is published.
                    _ = ticks.tick() => drop(bus.publish(&subject, beat()).await),
                }
            }
        }
    }
}
