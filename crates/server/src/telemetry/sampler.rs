//! Assigns requests to traces and decides on sampling. If the client sends a trace context, the request joins that trace
//! with its sampling decision; otherwise a fraction of the new traces is sampled.

use toolhub_core::trace::TraceContext;

/// Assigns requests to traces.
#[derive(Debug, Clone, Copy)]
pub struct Sampler {
    /// Traces are sampled if the lower 64 bits of their id are below this.
    bound: u128,
}

impl Sampler {
    /// Samples that fraction of the traces that start here.
    pub fn new(fraction: f64) -> Self {
        let fraction = if fraction.is_nan() { 0.0 } else { fraction.clamp(0.0, 1.0) };
        // A fraction of one includes every trace id.
        let bound = if fraction >= 1.0 { 1 << 64 } else { (fraction * 18_446_744_073_709_551_616.0) as u128 };
        Self { bound }
    }

    /// Returns the trace context of a request whose client sent `parent`.
    pub fn join(&self, parent: Option<&TraceContext>) -> TraceContext {
        if let Some(parent) = parent {
            return parent.with_span(random_span_id());
        }
        loop {
            let trace = fastrand::u128(1..);
            // Other samplers also decide by the lower half of the trace id, so that the decisions agree.
            let sampled = trace & u128::from(u64::MAX) < self.bound;
            if let Some(context) = TraceContext::new(trace, random_span_id(), sampled) {
                return context;
            }
        }
    }
}

/// Returns a random span id.
pub(super) fn random_span_id() -> u64 {
    fastrand::u64(1..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_a_fraction_of_new_traces() {
        let recorded = |fraction: f64| {
            let sampler = Sampler::new(fraction);
            (0..10_000).filter(|_| sampler.join(None).is_sampled()).count()
        };
        assert_eq!(recorded(0.0), 0);
        assert_eq!(recorded(1.0), 10_000);
        assert_eq!(recorded(f64::NAN), 0);
        // Twenty standard deviations in either direction.
        assert!((1_000..4_000).contains(&recorded(0.25)), "{}", recorded(0.25));
    }

    #[test]
    fn joins_client_trace_with_its_sampling_decision() {
        for sampled in [true, false] {
            let parent = TraceContext::new(7, 8, sampled).unwrap();
            let joined = Sampler::new(if sampled { 0.0 } else { 1.0 }).join(Some(&parent));
            assert_eq!((joined.trace(), joined.is_sampled()), (7, sampled));
            assert_ne!(joined.span(), 8);
        }
    }
}
