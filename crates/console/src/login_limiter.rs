//! Limits the logins from one address. They need no credential, and cause requests to an identity provider.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_secs(60);
/// Maximum number of requests of logins from one address in a window. A reverse proxy counts as one address.
const MAX_REQUESTS: u32 = 120;
/// Maximum number of addresses that are counted. Others are refused until a window has ended.
const MAX_ADDRESSES: usize = 4_096;

/// Counts requests by address.
#[derive(Debug, Default)]
pub(crate) struct LoginLimiter(Mutex<HashMap<IpAddr, (Instant, u32)>>);

impl LoginLimiter {
    /// Counts a request. Returns whether it is permitted.
    pub(crate) fn permits(&self, client: IpAddr, now: Instant) -> bool {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |began: Instant| now.saturating_duration_since(began) >= WINDOW;
        if counts.len() >= MAX_ADDRESSES && !counts.contains_key(&client) {
            counts.retain(|_, (began, _)| !is_over(*began));
            if counts.len() >= MAX_ADDRESSES {
                return false;
            }
        }
        let (began, count) = counts.entry(client).or_insert((now, 0));
        if is_over(*began) {
            (*began, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        *count <= MAX_REQUESTS
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn floods_are_refused_by_address() {
        let (limiter, now) = (LoginLimiter::default(), Instant::now());
        let address = |number: u32| IpAddr::V4(Ipv4Addr::from_bits(number));
        assert!((0..MAX_REQUESTS).all(|_| limiter.permits(address(1), now)));
        assert!(!limiter.permits(address(1), now));
        assert!(limiter.permits(address(2), now));
        assert!(limiter.permits(address(1), now + WINDOW));
        for number in 0..10_000 {
            limiter.permits(address(number), now + WINDOW);
        }
        assert!(limiter.0.lock().unwrap().len() <= MAX_ADDRESSES);
        assert!(limiter.permits(address(9_999), now + 3 * WINDOW));
    }
}
