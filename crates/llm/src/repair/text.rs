//! The text that readers look at: it notices when somebody looked past its end, so that a reader of a stream knows that
//! more text could change what was decided, and it bounds the work spent on it.

use std::cell::Cell;

/// How much before a place may matter for what stands there.
pub(crate) const LOOK_BEHIND: usize = 512;

/// A text, or the beginning of one.
#[derive(Debug)]
pub(crate) struct Source<'t> {
    text: &'t str,
    end_seen: Cell<bool>,
    work: Cell<usize>,
    stop: Cell<Option<(usize, usize)>>,
}

impl<'t> Source<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, end_seen: Cell::new(false), work: Cell::new(0), stop: Cell::new(None) }
    }

    /// The same text up to `end`. Whoever looks past that has not looked past the whole text's end.
    pub(crate) fn up_to(&self, end: usize) -> Source<'t> {
        Source::new(self.text.get(..end).unwrap_or(self.text))
    }

    pub(crate) fn text(&self) -> &'t str {
        self.text
    }

    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// Notes that the end was looked at.
    pub(crate) fn touch_end(&self) {
        self.end_seen.set(true);
    }

    /// Whether somebody looked at the end since this was last asked.
    pub(crate) fn take_end_seen(&self) -> bool {
        self.end_seen.replace(false)
    }

    /// Notes that so many bytes were worked on.
    pub(crate) fn spend(&self, bytes: usize) {
        self.work.set(self.work.get().saturating_add(bytes));
    }

    /// Whether more work was done than any honest text needs.
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

    /// As much of what stands before `at` as can matter for what stands there.
    pub(crate) fn behind(&self, at: usize) -> &'t str {
        let mut from = at.saturating_sub(LOOK_BEHIND);
        while !self.text.is_char_boundary(from) {
            from -= 1;
        }
        self.slice(from, at)
    }

    /// What stands before `at` in its line.
    pub(crate) fn line_before(&self, at: usize) -> &'t str {
        self.behind(at).rsplit('\n').next().unwrap_or_default()
    }

    /// The end that `find` gives for a place, which holds for every place between the two: asked for from left to right, it
    /// is looked for once.
    pub(crate) fn remembered(&self, at: usize, find: impl FnOnce() -> usize) -> usize {
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

    /// Whether `prefix` stands at `at`, in either case of ASCII letters.
    pub(crate) fn starts_with(&self, at: usize, prefix: &str) -> bool {
        let rest = self.rest(at).as_bytes();
        if rest.len() < prefix.len() && prefix.as_bytes()[..rest.len()].eq_ignore_ascii_case(rest) {
            self.touch_end();
        }
        rest.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
    }

    /// Where `needle` is found from `at` on.
    pub(crate) fn find(&self, at: usize, needle: &str) -> Option<usize> {
        let found = self.rest(at).find(needle);
        self.spend(found.unwrap_or(self.rest(at).len()));
        if found.is_none() {
            self.touch_end();
        }
        found.map(|offset| at + offset)
    }

    /// The end of the line that `at` stands in, without its line break.
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

    /// Past white space and comments, and whether there were comments.
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
