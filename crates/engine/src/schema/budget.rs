//! The step budget of one call: bounds the work of checking its arguments.

use std::cell::Cell;

/// Steps of a call with small arguments. A step takes about 10 ns in a release build.
const BASE_STEPS: u64 = 400_000;
/// Additional steps per byte of arguments.
const STEPS_PER_BYTE: u64 = 64;
/// Maximum steps of a call.
pub(super) const MAX_VALIDATION_STEPS: u64 = 6_000_000;
/// Maximum pattern steps of a call. Counted separately, because an untested pattern does no harm: the server tests
/// it.
pub(super) const MAX_PATTERN_STEPS: u64 = 4_000_000;

/// The budget is exhausted: the arguments are rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BudgetExhausted;

/// The remaining steps.
#[derive(Debug)]
pub(crate) struct StepBudget {
    remaining_steps: Cell<u64>,
    patterns: Cell<u64>,
}

impl StepBudget {
    /// The budget of a call with arguments of this many bytes.
    pub(crate) fn for_bytes(bytes: usize) -> Self {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let steps = BASE_STEPS.saturating_add(bytes.saturating_mul(STEPS_PER_BYTE)).min(MAX_VALIDATION_STEPS);
        Self { remaining_steps: Cell::new(steps), patterns: Cell::new(MAX_PATTERN_STEPS) }
    }

    pub(super) fn unlimited() -> Self {
        Self { remaining_steps: Cell::new(u64::MAX), patterns: Cell::new(u64::MAX) }
    }

    pub(super) fn spend(&self, steps: u64) -> Result<(), BudgetExhausted> {
        match self.remaining_steps.get().checked_sub(steps) {
            Some(remaining_steps) => {
                self.remaining_steps.set(remaining_steps);
                Ok(())
            }
            None => {
                self.remaining_steps.set(0);
                Err(BudgetExhausted)
            }
        }
    }

    /// Spends steps in proportion to a size.
    pub(super) fn spend_len(&self, len: usize, per_step: usize) -> Result<(), BudgetExhausted> {
        self.spend(u64::try_from(len / per_step).unwrap_or(u64::MAX).saturating_add(1))
    }

    /// Spends the steps of a pattern match; returns `false` if too few are left.
    pub(super) fn spend_pattern(&self, steps: u64) -> bool {
        let remaining_steps = self.patterns.get().checked_sub(steps);
        if let Some(remaining_steps) = remaining_steps {
            self.patterns.set(remaining_steps);
        }
        remaining_steps.is_some()
    }

    /// Runs `run` with three quarters of the remaining budget: the schema of one candidate leaves some for the next.
    pub(crate) fn with_share<T>(&self, run: impl FnOnce() -> T) -> T {
        let reserve = self.remaining_steps.get() / 4;
        self.remaining_steps.set(self.remaining_steps.get() - reserve);
        let result = run();
        self.remaining_steps.set(self.remaining_steps.get() + reserve);
        result
    }

    #[cfg(test)]
    pub(super) fn remaining_steps(&self) -> u64 {
        self.remaining_steps.get()
    }
}
