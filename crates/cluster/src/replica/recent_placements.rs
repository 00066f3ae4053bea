//! The placements that this replica has requested lately. The load of a worker in the database is as old as its last sign of life
//! there, so that a replica that places many servers at once would choose the same worker for all of them.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use toolhub_core::cluster::ClusterMember;

/// Placements that are older are part of the load of every living worker.
const MAX_AGE: Duration = Duration::from_secs(10);

/// When each worker was chosen last.
#[derive(Debug, Default)]
pub(super) struct RecentPlacements(Mutex<Vec<(String, Instant)>>);

impl RecentPlacements {
    /// Adds a placement that is about to be requested. A refused one counts too: the next sign of life corrects it.
    pub(super) fn add(&self, worker: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, at)| at.elapsed() < MAX_AGE);
        all.push((worker.to_owned(), Instant::now()));
    }

    /// Moves the workers with the smallest part of their capacity in use to the front. Of those with equal parts, each order is
    /// as likely.
    pub(super) fn sort(&self, workers: &mut [ClusterMember]) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let load = |worker: &ClusterMember| {
            let newer = |(id, at): &&(String, Instant)| *id == worker.id && at.elapsed() < worker.silent_for;
            u64::from(worker.load) + u64::try_from(all.iter().filter(newer).count()).unwrap_or(u64::MAX)
        };
        fastrand::shuffle(workers);
        workers.sort_by_cached_key(|worker| {
            load(worker).saturating_mul(1000) / u64::from(worker.capacity.max(1))
        });
    }
}

#[cfg(test)]
mod tests {
    use toolhub_core::cluster::MemberKind;

    use super::*;

    fn worker(id: &str, load: u32, silent_for: Duration) -> ClusterMember {
        ClusterMember {
            id: id.to_owned(),
            kind: MemberKind::Worker,
            address: String::new(),
            labels: Vec::new(),
            capacity: 1000,
            load,
            version: String::new(),
            draining: false,
            silent_for,
        }
    }

    /// Places 100 servers between two signs of life, and returns how many each worker took.
    fn place_100(loads: [u32; 4], silent_for: Duration) -> [usize; 4] {
        let recent = RecentPlacements::default();
        let mut taken = [0; 4];
        for _ in 0..100 {
            let mut workers: Vec<ClusterMember> = (0..4)
                .zip(loads)
                .map(|(number, load)| worker(&number.to_string(), load, silent_for))
                .collect();
            recent.sort(&mut workers);
            recent.add(&workers[0].id);
            taken[workers[0].id.parse::<usize>().unwrap()] += 1;
        }
        taken
    }

    #[test]
    fn spreads_placements_between_two_signs_of_life_evenly() {
        assert_eq!(place_100([0; 4], Duration::from_secs(5)), [25; 4]);
        assert_eq!(place_100([40, 0, 40, 40], Duration::from_secs(5)), [15, 55, 15, 15]);
    }

    #[test]
    fn ignores_placements_that_the_load_contains() {
        let taken = place_100([7, 0, 7, 7], Duration::ZERO);
        assert_eq!(taken, [0, 100, 0, 0]);
    }
}
