//! Load shedding: selects the connections that are closed when there are too many or descriptors run out. The address
//! with the most idle connections loses some first, so that it cannot lock out the others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::connection::{ABORT, ConnectionState, Connections, FINISH, IDLE, READING_BODY, READING_HEAD};

/// A connection that was active this recently is closed only if no other can be.
const RECENT: Duration = Duration::from_millis(500);
/// One in this many connections is closed at a time.
const SHED_FRACTION: usize = 16;
/// An address with more connections than this loses some even if all were active recently.
const MANY_CONNECTIONS: usize = 8;

/// The decision on a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    Admitted,
    /// Its address has reached its maximum.
    Refused,
}

/// A connection that may be closed.
struct SheddingCandidate {
    state: Arc<ConnectionState>,
    phase: u64,
    /// How long it has been in its phase.
    age: Duration,
}

impl SheddingCandidate {
    fn of(state: &Arc<ConnectionState>) -> Option<Self> {
        let (phase, age) = state.since();
        let idle = matches!(phase, READING_HEAD | READING_BODY | IDLE) && !state.is_finishing();
        idle.then(|| Self { state: Arc::clone(state), phase, age })
    }

    /// The order of closing: first connections that never sent a complete request, then those with an incomplete request,
    /// then those that wait for their next request; among equals the oldest first.
    fn order(&self) -> (u8, std::cmp::Reverse<Duration>) {
        let rank = match self.phase {
            _ if self.state.is_unproven() => 0,
            READING_HEAD => 1,
            READING_BODY => 2,
            _ => 3,
        };
        (rank, std::cmp::Reverse(self.age))
    }

    fn close(&self) {
        self.state.set_command(if self.phase == IDLE { FINISH } else { ABORT });
    }
}

impl Connections {
    /// Decides on a new connection of an address, of which at most `max_unproven` may wait for their first request; at most
    /// `all` connections may be open in total. Closes others if necessary.
    pub(crate) fn admit(&self, address: IpAddr, max_unproven: usize, all: usize) -> Admission {
        if self.unproven_of(address) >= max_unproven {
            let slowest = self
                .open()
                .values()
                .filter(|one| one.address == address && one.is_unproven())
                .filter_map(SheddingCandidate::of)
                .filter(|one| one.age >= RECENT)
                .max_by_key(|one| one.age);
            match slowest {
                Some(slowest) => slowest.close(),
                None => return Admission::Refused,
            }
        }
        if self.len() < all || self.shed() > 0 {
            return Admission::Admitted;
        }
        // No connection is idle. An address with more than half of all connections does not get another.
        let open = self.open();
        let own = open.values().filter(|one| one.address == address).count();
        if own * 2 > open.len() { Admission::Refused } else { Admission::Admitted }
    }

    /// Closes some connections of the address with the most idle ones. Returns how many.
    pub(crate) fn shed(&self) -> usize {
        let mut by_address: HashMap<IpAddr, Vec<SheddingCandidate>> = HashMap::new();
        for candidate in self.open().values().filter_map(SheddingCandidate::of) {
            by_address.entry(candidate.state.address).or_default().push(candidate);
        }
        let mut addresses: Vec<_> = by_address.into_values().collect();
        addresses.sort_by_key(|candidates| std::cmp::Reverse(candidates.len()));
        let old = |candidates: &Vec<SheddingCandidate>| candidates.iter().any(|one| one.age >= RECENT);
        let index = addresses.iter().position(old).filter(|index| {
            // An address with few connections does not lose one because those of an address with many are all recent.
            addresses[*index].len() * 2 > addresses[0].len() || addresses[0].len() <= MANY_CONNECTIONS
        });
        let (index, recent) = match index {
            Some(index) => (index, false),
            None if addresses.first().is_some_and(|most| most.len() > MANY_CONNECTIONS) => (0, true),
            None => return 0,
        };
        let mut candidates = addresses.swap_remove(index);
        let most = candidates.len().div_ceil(SHED_FRACTION);
        // Among recent ones the oldest are closed first: the request of the newest may be in transit.
        match recent {
            true => candidates.sort_by_key(|one| std::cmp::Reverse(one.age)),
            false => candidates.sort_by_key(SheddingCandidate::order),
        }
        let closed = candidates.iter().filter(|one| recent || one.age >= RECENT).take(most);
        closed.map(SheddingCandidate::close).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{ConnectionGuard, Timeouts};

    fn connections() -> Arc<Connections> {
        let second = Duration::from_secs(1);
        Arc::new(Connections::new(Timeouts { header: second, write: second }))
    }

    fn register(connections: &Arc<Connections>, address: [u8; 4], count: usize) -> Vec<ConnectionGuard> {
        (0..count).map(|_| connections.register(address.into())).collect()
    }

    #[test]
    fn sheds_connections_of_the_busiest_address_first() {
        let connections = connections();
        let others = register(&connections, [127, 0, 0, 2], 3);
        let many = register(&connections, [127, 0, 0, 1], 160);
        assert_eq!(connections.shed(), 10, "all are recent, but one address has many");
        assert_eq!(many.iter().filter(|one| one.state.is_finishing()).count(), 10);
        assert!(!others.iter().any(|one| one.state.is_finishing()));
    }

    #[test]
    fn does_not_shed_connections_being_served() {
        let connections = connections();
        let many = register(&connections, [127, 0, 0, 1], 20);
        let _active_request: Vec<_> = many.iter().map(|one| one.state.active_request()).collect();
        assert_eq!(connections.shed(), 0);
        assert_eq!(connections.admit([127, 0, 0, 1].into(), 100, 20), Admission::Refused);
        assert_eq!(connections.admit([127, 0, 0, 2].into(), 100, 20), Admission::Admitted);
    }

    #[test]
    fn bounds_connections_without_a_request_per_address() {
        let connections = connections();
        let mut many = register(&connections, [127, 0, 0, 1], 5);
        let admit = |address: [u8; 4]| connections.admit(address.into(), 5, 1_000);
        assert_eq!(admit([127, 0, 0, 1]), Admission::Refused);
        assert_eq!(admit([127, 0, 0, 2]), Admission::Admitted);
        // Connections that are being served or have ended do not count.
        drop(many[0].state.active_request());
        assert_eq!(admit([127, 0, 0, 1]), Admission::Admitted);
        many.push(connections.register([127, 0, 0, 1].into()));
        assert_eq!(admit([127, 0, 0, 1]), Admission::Refused);
        many.pop();
        assert_eq!(admit([127, 0, 0, 1]), Admission::Admitted);
        drop(many);
        assert_eq!(connections.unproven_of([127, 0, 0, 1].into()), 0);
    }
}
