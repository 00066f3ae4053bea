//! Finds the rules that can concern an item without examining every rule. Never omits a rule that matches; the rules
//! that it finds are compared completely afterwards.

use toolhub_core::FastMap;

use crate::pattern::{Anchor, FoldedName, Pattern};
use crate::request::PreparedResource;
use crate::rule::Rule;
use crate::rule_bits::RuleBits;

/// Rules found under one key.
#[derive(Debug)]
enum Bucket {
    /// Positions of rules, for small buckets.
    List(Vec<usize>),
    /// For buckets that are larger than the set of all rules as bits.
    Bits(RuleBits),
}

impl Bucket {
    fn new(rules: Vec<usize>, total: usize) -> Self {
        if rules.len() <= total.div_ceil(64) {
            return Self::List(rules);
        }
        let mut bits = RuleBits::with_capacity(total);
        rules.iter().for_each(|rule| bits.insert(*rule));
        Self::Bits(bits)
    }

    fn for_each_common(&self, applicable: &RuleBits, visit: &mut impl FnMut(usize)) {
        match self {
            Self::List(rules) => {
                rules.iter().filter(|rule| applicable.contains(**rule)).for_each(|rule| visit(*rule));
            }
            Self::Bits(bits) => bits.for_each_common(applicable, visit),
        }
    }
}

/// Rules by what they select. Each rule is under one selector, with one entry for each of its values.
#[derive(Debug)]
pub(crate) struct Index {
    /// By the exact name of an item, folded.
    names: FastMap<Box<str>, Bucket>,
    /// By the literal start of a name, folded.
    prefixes: Prefixes,
    /// By the literal end of a name, folded and reversed.
    suffixes: Prefixes,
    /// By the exact name of a source, folded.
    servers: FastMap<Box<str>, Bucket>,
    /// The other rules.
    rest: Bucket,
}

type Entries = FastMap<Box<str>, Vec<usize>>;

impl Index {
    pub(crate) fn new(rules: &[Rule]) -> Self {
        let (mut names, mut prefixes, mut suffixes) =
            (Entries::default(), Entries::default(), Entries::default());
        let (mut servers, mut rest) = (Entries::default(), Vec::new());
        let is_anchored = |pattern: &Pattern| pattern.anchor() != Anchor::None;
        let is_whole = |pattern: &Pattern| matches!(pattern.anchor(), Anchor::Whole(_));
        for (position, rule) in rules.iter().enumerate() {
            let add = |entries: &mut Entries, key: Box<str>| entries.entry(key).or_default().push(position);
            if !rule.tools.is_empty() && rule.tools.iter().all(is_anchored) {
                for pattern in &rule.tools {
                    match pattern.anchor() {
                        Anchor::Whole(name) => add(&mut names, name.into()),
                        Anchor::Prefix(prefix) => add(&mut prefixes, prefix.into()),
                        Anchor::Suffix(suffix) => add(&mut suffixes, reverse(suffix).into()),
                        Anchor::None => {}
                    }
                }
            } else if !rule.servers.is_empty() && rule.servers.iter().all(is_whole) {
                for pattern in &rule.servers {
                    if let Anchor::Whole(server) = pattern.anchor() {
                        add(&mut servers, server.into());
                    }
                }
            } else {
                rest.push(position);
            }
        }
        let total = rules.len();
        let finish = |entries: Entries| {
            entries.into_iter().map(|(key, rules)| (key, Bucket::new(rules, total))).collect()
        };
        Self {
            names: finish(names),
            prefixes: Prefixes::new(prefixes, total),
            suffixes: Prefixes::new(suffixes, total),
            servers: finish(servers),
            rest: Bucket::new(rest, total),
        }
    }

    /// Calls `visit` for the applicable rules that can match the item, possibly more than once for the same rule and in
    /// any order.
    pub(crate) fn for_each(
        &self,
        item: &PreparedResource<'_>,
        applicable: &RuleBits,
        visit: &mut impl FnMut(usize),
    ) {
        if item.names.is_empty() {
            // An item without names is presumed to match every name.
            applicable.for_each(visit);
            return;
        }
        for name in item.names.iter().map(FoldedName::folded) {
            if let Some(bucket) = self.names.get(name) {
                bucket.for_each_common(applicable, visit);
            }
            self.prefixes.for_each(name, &mut |bucket| bucket.for_each_common(applicable, visit));
            if !self.suffixes.is_empty() {
                self.suffixes
                    .for_each(&reverse(name), &mut |bucket| bucket.for_each_common(applicable, visit));
            }
        }
        if let Some(bucket) = self.servers.get(item.server.folded()) {
            bucket.for_each_common(applicable, visit);
        }
        self.rest.for_each_common(applicable, visit);
    }
}

fn reverse(text: &str) -> String {
    text.chars().rev().collect()
}

/// Literal starts of texts in alphabetical order.
#[derive(Debug)]
struct Prefixes(Vec<Prefix>);

#[derive(Debug)]
struct Prefix {
    text: Box<str>,
    rules: Bucket,
    /// The position of the longest other entry that is a prefix of this one.
    parent: Option<usize>,
}

impl Prefixes {
    fn new(entries: Entries, total: usize) -> Self {
        let mut entries: Vec<(Box<str>, Vec<usize>)> = entries.into_iter().collect();
        entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let mut prefixes: Vec<Prefix> = Vec::with_capacity(entries.len());
        for (text, rules) in entries {
            // The entries that are prefixes of this one are also prefixes of the entry before it, or that entry itself.
            let mut parent = prefixes.len().checked_sub(1);
            while let Some(position) = parent
                && !text.starts_with(&*prefixes[position].text)
            {
                parent = prefixes[position].parent;
            }
            prefixes.push(Prefix { text, rules: Bucket::new(rules, total), parent });
        }
        Self(prefixes)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Calls `visit` for every entry that is a prefix of the name. All of them are prefixes of the last entry that is
    /// not after the name, because every text between a prefix of the name and the name starts with that prefix.
    fn for_each<'a>(&'a self, name: &str, visit: &mut impl FnMut(&'a Bucket)) {
        let mut next = self.0.partition_point(|entry| *entry.text <= *name).checked_sub(1);
        while let Some(entry) = next.and_then(|position| self.0.get(position)) {
            if name.starts_with(&*entry.text) {
                visit(&entry.rules);
            }
            next = entry.parent;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn finds_every_prefix_of_a_name(
            texts in prop::collection::btree_set("[ab\u{e9}]{1,5}", 0..30),
            name in "[abc\u{e9}]{0,7}",
        ) {
            let entries = texts.iter().enumerate().map(|(position, text)| (text.as_str().into(), vec![position]));
            let prefixes = Prefixes::new(entries.collect(), texts.len());
            let mut found = Vec::new();
            prefixes.for_each(&name, &mut |bucket| match bucket {
                Bucket::List(rules) => found.extend(rules),
                Bucket::Bits(bits) => bits.for_each(&mut |rule| found.push(rule)),
            });
            found.sort_unstable();
            let expect: Vec<usize> = (0..texts.len())
                .filter(|position| texts.iter().nth(*position).is_some_and(|text| name.starts_with(text)))
                .collect();
            prop_assert_eq!(found, expect);
        }
    }
}
