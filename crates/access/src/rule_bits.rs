//! Sets of rules as bits, so that two sets of ten thousand rules are intersected in a hundred steps.

/// A set of positions of rules.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct RuleBits(Box<[u64]>);

impl RuleBits {
    /// An empty set for that many rules.
    pub(crate) fn with_capacity(rules: usize) -> Self {
        Self(vec![0; rules.div_ceil(64)].into())
    }

    pub(crate) fn insert(&mut self, rule: usize) {
        if let Some(word) = self.0.get_mut(rule / 64) {
            *word |= 1 << (rule % 64);
        }
    }

    pub(crate) fn contains(&self, rule: usize) -> bool {
        self.0.get(rule / 64).is_some_and(|word| word & 1 << (rule % 64) != 0)
    }

    /// Calls `visit` for every rule of the set, in order.
    pub(crate) fn for_each(&self, visit: &mut impl FnMut(usize)) {
        for (position, word) in self.0.iter().enumerate() {
            visit_word(position, *word, visit);
        }
    }

    /// Calls `visit` for every rule that both sets contain, in order.
    pub(crate) fn for_each_common(&self, other: &Self, visit: &mut impl FnMut(usize)) {
        for (position, (word, other)) in self.0.iter().zip(&other.0).enumerate() {
            visit_word(position, word & other, visit);
        }
    }
}

fn visit_word(position: usize, mut word: u64, visit: &mut impl FnMut(usize)) {
    while word != 0 {
        visit(position * 64 + word.trailing_zeros() as usize);
        word &= word - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_exactly_the_common_rules() {
        let set = |rules: &[usize]| {
            let mut bits = RuleBits::with_capacity(200);
            rules.iter().for_each(|rule| bits.insert(*rule));
            bits
        };
        let mut common = Vec::new();
        set(&[0, 5, 63, 64, 130, 199])
            .for_each_common(&set(&[5, 63, 65, 130, 199]), &mut |rule| common.push(rule));
        assert_eq!(common, [5, 63, 130, 199]);
        assert!(set(&[64]).contains(64) && !set(&[64]).contains(63) && !set(&[64]).contains(1 << 20));
    }
}
