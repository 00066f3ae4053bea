//! Which trace a request is part of, and whether it is recorded: a client's own trace is joined and its choice kept; where
//! there is none, a share of the new ones is recorded.

use toolhub_core::trace::TraceContext;

/// Gives requests their places in traces.
#[derive(Debug, Clone, Copy)]
pub struct Sampler {
    /// Numbers below this are recorded.
    bound: u128,
}

impl Sampler {
    /// Records that share of the traces that begin here.
    pub fn new(share: f64) -> Self {
        let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        // All of them, exactly, where the share is one.
        let bound = if share >= 1.0 { 1 << 64 } else { (share * 18_446_744_073_709_551_616.0) as u128 };
        Self { bound }
    }

    /// The place of a request whose client says that it stands there.
    pub fn join(&self, parent: Option<&TraceContext>) -> TraceContext {
        if let Some(parent) = parent {
            return parent.with_span(number());
        }
        loop {
            let trace = fastrand::u128(1..);
            // The lower half is what others decide by as well, so that they come to the same.
            let sampled = trace & u128::from(u64::MAX) < self.bound;
            if let Some(context) = TraceContext::new(trace, number(), sampled) {
                return context;
            }
        }
    }
}

/// A number for a span.
pub(super) fn number() -> u64 {
    fastrand::u64(1..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_new_traces_is_recorded() {
        let recorded = |share: f64| {
            let sampler = Sampler::new(share);
            (0..10_000).filter(|_| sampler.join(None).is_sampled()).count()
        };
        assert_eq!(recorded(0.0), 0);
        assert_eq!(recorded(1.0), 10_000);
        assert_eq!(recorded(f64::NAN), 0);
        // Twenty standard deviations either way.
        assert!((1_000..4_000).contains(&recorded(0.25)), "{}", recorded(0.25));
    }

    #[test]
    fn a_clients_trace_is_joined_and_its_choice_kept() {
        for sampled in [true, false] {
            let parent = TraceContext::new(7, 8, sampled).unwrap();
            let joined = Sampler::new(if sampled { 0.0 } else { 1.0 }).join(Some(&parent));
            assert_eq!((joined.trace(), joined.is_sampled()), (7, sampled));
            assert_ne!(joined.span(), 8);
        }
    }
}
