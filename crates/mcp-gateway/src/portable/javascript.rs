//! JavaScript regular expressions, as which clients compile the patterns of a schema.

use std::iter::Peekable;
use std::str::Chars;

/// Characters that may be escaped, in addition to the character classes.
const SYNTAX: &str = "^$\\.*+?()[]{}|/";

/// Returns whether a pattern is certainly a JavaScript regular expression with the flag `u`: balanced, with valid escapes
/// and groups, and with an operand before every quantifier. Returns false for rarer valid forms.
pub(super) fn is_javascript(pattern: &str) -> bool {
    // For each open group, whether it is a lookahead, which cannot be quantified.
    let mut groups = Vec::new();
    let mut repeatable = false;
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        repeatable = match c {
            '\\' => match rest.next() {
                Some('b' | 'B') => false,
                Some('0') if !rest.peek().is_some_and(char::is_ascii_digit) => true,
                Some(c) if "dDwWsSnrtfv".contains(c) || SYNTAX.contains(c) => true,
                _ => return false,
            },
            '[' if is_class(&mut rest) => true,
            '*' | '+' | '?' if repeatable => {
                rest.next_if_eq(&'?');
                false
            }
            '{' if repeatable && is_count(&mut rest) => {
                rest.next_if_eq(&'?');
                false
            }
            '[' | ']' | '{' | '}' | '*' | '+' | '?' => return false,
            '(' => {
                let kind = rest.next_if_eq(&'?').map(|_| rest.next());
                match kind {
                    None | Some(Some(':')) => groups.push(false),
                    Some(Some('=' | '!')) => groups.push(true),
                    Some(_) => return false,
                }
                false
            }
            ')' => match groups.pop() {
                Some(lookahead) => !lookahead,
                None => return false,
            },
            '|' | '^' | '$' => false,
            _ => true,
        };
    }
    groups.is_empty()
}

/// Parses the bounds of a quantifier, after its `{`.
fn is_count(rest: &mut Peekable<Chars<'_>>) -> bool {
    let mut bounds = String::new();
    loop {
        match rest.next() {
            Some('}') => break,
            Some(c) => bounds.push(c),
            None => return false,
        }
    }
    let number = |text: &str| text.parse::<u32>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
    match bounds.split_once(',') {
        Some((low, "")) => number(low).is_some(),
        Some((low, high)) => number(low).zip(number(high)).is_some_and(|(low, high)| low <= high),
        None => number(&bounds).is_some(),
    }
}

/// A part of a character class.
enum Atom {
    One(char),
    /// A class escape such as `\d`, which cannot be the end of a range.
    Several,
}

/// Parses a character class, after its `[`.
fn is_class(rest: &mut Peekable<Chars<'_>>) -> bool {
    rest.next_if_eq(&'^');
    let mut before: Option<Atom> = None;
    loop {
        let Some(c) = rest.next() else { return false };
        let ranges = c == '-' && before.is_some() && rest.peek().is_some_and(|next| *next != ']');
        before = match (c, before) {
            (']', _) => return true,
            ('-', Some(low)) if ranges => {
                let Some(high) = rest.next().and_then(|c| atom(c, rest)) else { return false };
                match (low, high) {
                    (Atom::One(low), Atom::One(high)) if low <= high => None,
                    _ => return false,
                }
            }
            (c, _) => match atom(c, rest) {
                Some(atom) => Some(atom),
                None => return false,
            },
        };
    }
}

fn atom(c: char, rest: &mut Peekable<Chars<'_>>) -> Option<Atom> {
    if c != '\\' {
        return Some(Atom::One(c));
    }
    Some(match rest.next()? {
        'd' | 'D' | 'w' | 'W' | 's' | 'S' => Atom::Several,
        '0' if !rest.peek().is_some_and(char::is_ascii_digit) => Atom::One('\0'),
        'b' => Atom::One('\u{8}'),
        't' => Atom::One('\t'),
        'n' => Atom::One('\n'),
        'v' => Atom::One('\u{b}'),
        'f' => Atom::One('\u{c}'),
        'r' => Atom::One('\r'),
        c if c == '-' || SYNTAX.contains(c) => Atom::One(c),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_javascript_regular_expressions() {
        for good in [
            "",
            "^[\\w-]+(?:\\.\\d{1,3})?$",
            "a|b*?",
            "[^\\]a-z-]{2,}",
            "(?!x)y+",
            "[--a]",
            "\\0",
            "中+",
            "(a)*",
            "[*]",
            "\\b",
        ] {
            assert!(is_javascript(good), "{good}");
        }
        for bad in [
            "*.txt", "a**", "^*", "$+", "(?=a)*", "(*)", "|?", "[\\w-z]", "[z-a]", "x{2,1}", "x{,2}", "x{1",
            "{1}", "\\01", "\\b+", "(", ")", "[a", "]", "}", "(?P<a>x)", "(?i)x", "a\\-b", "\\", "[\\",
            "a???",
        ] {
            assert!(!is_javascript(bad), "{bad}");
        }
    }
}
