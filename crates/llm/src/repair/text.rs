//! The source text of the parsers. It records whether its end was inspected, so that a stream parser can detect that
//! more text could change a decision, and it limits the total work.

use std::cell::Cell;

/// How many bytes before a position may affect its interpretation.
pub(crate) const MAX_LOOK_BEHIND_BYTES: usize = 512;

/// A text, possibly incomplete.
#[derive(Debug)]
pub(crate) struct SourceText<'t> {
    text: &'t str,
    end_seen: Cell<bool>,
    work: Cell<usize>,
    stop: Cell<Option<(usize, usize)>>,
}

impl<'t> SourceText<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, end_seen: Cell::new(false), work: Cell::new(0), stop: Cell::new(None) }
    }

    /// The text up to `end`. Reaching this end does not count as reaching the end of the whole text.
    pub(crate) fn up_to(&self, end: usize) -> SourceText<'t> {
        SourceText::new(self.text.get(..end).unwrap_or(self.text))
    }

    pub(crate) fn text(&self) -> &'t str {
        self.text
    }

    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// Records that the end was inspected.
    pub(crate) fn touch_end(&self) {
        self.end_seen.set(true);
    }

    /// Returns and resets whether the end was inspected.
    pub(crate) fn take_end_seen(&self) -> bool {
        self.end_seen.replace(false)
    }

    /// Adds to the work done, in bytes.
    pub(crate) fn spend(&self, bytes: usize) {
        self.work.set(self.work.get().saturating_add(bytes));
    }

    /// Whether the work exceeds the limit, which valid text does not reach.
    pub(crate) fn exhausted(&self) -> bool {
        self.work.get() > 16 * self.text.len() + (1 << 18)
    }

    pub(crate) fn work(&self) -> usize {
        self.work.get()
    }

    pub(crate) fn rest(&self, at: usize) -> &'t str {
        self.text.get(at..).unwrap_or_default()
    }

    pub(crate) fn slice(&self, from: usize, to: usize) -> &'t str {
        self.text.get(from..to).unwrap_or_default()
    }

    pub(crate) fn char_at(&self, at: usize) -> Option<char> {
        let found = self.rest(at).chars().next();
        if found.is_none() {
            self.touch_end();
        }
        found
    }

    /// The text before `at`, as far as it may matter.
    pub(crate) fn preceding(&self, at: usize) -> &'t str {
        let mut from = at.saturating_sub(MAX_LOOK_BEHIND_BYTES);
        while !self.text.is_char_boundary(from) {
            from -= 1;
        }
        self.slice(from, at)
    }

    /// The text before `at` on its line.
    pub(crate) fn line_before(&self, at: usize) -> &'t str {
        self.preceding(at).rsplit('\n').next().unwrap_or_default()
    }

    /// Caches the result of `find`, which is the same for every position up to it: scanning from left to right computes
    /// it once.
    pub(crate) fn memoized(&self, at: usize, find: impl FnOnce() -> usize) -> usize {
        if let Some((from, to)) = self.stop.get()
            && (from..=to).contains(&at)
        {
            if to >= self.text.len() {
                self.touch_end();
            }
            return to;
        }
        let to = find();
        self.stop.set(Some((at, to)));
        to
    }

    /// The character before `at`.
    pub(crate) fn char_before(&self, at: usize) -> Option<char> {
        self.slice(0, at).chars().next_back()
    }

    /// Whether `prefix` is at `at`, ignoring ASCII case.
    pub(crate) fn starts_with(&self, at: usize, prefix: &str) -> bool {
        let rest = self.rest(at).as_bytes();
        if rest.len() < prefix.len() && prefix.as_bytes()[..rest.len()].eq_ignore_ascii_case(rest) {
            self.touch_end();
        }
        rest.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
    }

    /// Finds `needle` from `at` on.
    pub(crate) fn find(&self, at: usize, needle: &str) -> Option<usize> {
        let found = self.rest(at).find(needle);
        self.spend(found.unwrap_or(self.rest(at).len()));
        if found.is_none() {
            self.touch_end();
        }
        found.map(|offset| at + offset)
    }

    /// The end of the line of `at`, without the line break.
    pub(crate) fn line_end(&self, at: usize) -> usize {
        self.find(at, "\n").unwrap_or(self.text.len())
    }

    pub(crate) fn skip_space(&self, mut at: usize) -> usize {
        while let Some(character) = self.char_at(at) {
            if !is_space(character) {
                break;
            }
            at += character.len_utf8();
        }
        at
    }

    /// Skips white space and comments. Returns whether there were comments.
    pub(crate) fn skip_space_and_comments(&self, mut at: usize) -> (usize, bool) {
        let mut comments = false;
        loop {
            at = self.skip_space(at);
            let end = match self.char_at(at) {
                Some('/') if self.starts_with(at, "//") => self.line_end(at),
                Some('/') if self.starts_with(at, "/*") => {
                    self.find(at + 2, "*/").map_or(self.text.len(), |close| close + 2)
                }
                Some('#') => self.line_end(at),
                _ => return (at, comments),
            };
            comments = true;
            at = end;
        }
    }
}

pub(crate) fn is_space(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\u{feff}' | '\u{200b}')
}
