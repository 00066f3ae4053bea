//! URI templates of servers (RFC 6570): whether a URI matches one, and whether the template is specific enough that the URI belongs to
//! its server.

/// Schemes that servers of all kinds use, in lower case: such a scheme does not tell whose resource it is.
const GENERIC_SCHEMES: [&str; 14] = [
    "about",
    "blob",
    "data",
    "file",
    "ftp",
    "ftps",
    "git",
    "http",
    "https",
    "resource",
    "resources",
    "sftp",
    "ui",
    "urn",
];

/// How a template matches a URI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TemplateMatch {
    /// Many URIs match it, also those of other servers.
    General,
    /// The URI belongs to the server, also if a later one lists it.
    Specific,
}

/// How a template matches a URI; `None` if it does not.
pub(super) fn match_template(template: &str, uri: &str) -> Option<TemplateMatch> {
    if !has_scheme(template) || !fits_template(template, uri) {
        return None;
    }
    let is_specific = is_specific(template) || (has_own_scheme(template) && expands_to(template, uri));
    Some(if is_specific { TemplateMatch::Specific } else { TemplateMatch::General })
}

/// The scheme of a URI in lower case.
pub(super) fn scheme_of(uri: &str) -> Option<String> {
    uri.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase())
}

/// Whether a template begins with a literal scheme. A template that could match every URI does not.
pub(super) fn has_scheme(template: &str) -> bool {
    template.split('{').next().is_some_and(|literal| literal.contains(':'))
}

/// Whether a template begins with a literal scheme that is not a generic one.
fn has_own_scheme(template: &str) -> bool {
    let literal = template.split('{').next().and_then(scheme_of);
    literal.is_some_and(|scheme| !scheme.is_empty() && !GENERIC_SCHEMES.contains(&scheme.as_str()))
}

/// Whether a template has a literal host or path and no expression that matches several segments (reserved, path and fragment
/// expansion).
fn is_specific(template: &str) -> bool {
    let mut parts = template.split('{');
    let literal = parts.next().and_then(|literal| literal.split_once(':')).map(|(_, rest)| rest);
    literal.is_some_and(|rest| !rest.trim_matches('/').is_empty())
        && parts.all(|expression| !expression.starts_with(['+', '#', '/', '.']))
}

/// Whether a URI matches a template: its literal parts occur in the same order.
fn fits_template(template: &str, uri: &str) -> bool {
    let mut rest = uri;
    let mut parts = template.split('{');
    let Some(begin) = parts.next() else { return false };
    let Some(after) = rest.strip_prefix(begin) else { return false };
    rest = after;
    let fixed: Vec<&str> = parts.map(|part| part.split_once('}').map_or("", |(_, fixed)| fixed)).collect();
    let Some((last, middle)) = fixed.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last) && rest.len() > last.len()
}

/// Whether a template without reserved, path and fragment expansion yields a URI: a simple expression yields no `/`, `?` and `#`.
/// Each expression gets the shortest value before its literal: a longer one could only end in the same segment. Without a literal it
/// gets the longest one.
fn expands_to(template: &str, uri: &str) -> bool {
    let mut parts = template.split('{');
    let Some(mut rest) = parts.next().and_then(|begin| uri.strip_prefix(begin)) else { return false };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        let Some((expression, literal)) = part.split_once('}') else { return false };
        let Some((shortest, longest)) = value_lengths(expression, rest) else { return false };
        let at = match parts.peek() {
            Some(_) if literal.is_empty() => Some(longest),
            Some(_) => rest.get(shortest..).and_then(|rest| rest.find(literal)).map(|at| at + shortest),
            None => rest.strip_suffix(literal).map(str::len),
        };
        let Some(at) = at.filter(|at| (shortest..=longest).contains(at)) else { return false };
        rest = &rest[at + literal.len()..];
    }
    rest.is_empty()
}

/// The lengths of the shortest and the longest value that an expression may have at the beginning of a text; `None` if a value may span
/// segments, or if there is none.
fn value_lengths(expression: &str, text: &str) -> Option<(usize, usize)> {
    let until = |ends: &[char]| text.find(ends).unwrap_or(text.len());
    match expression.chars().next()? {
        '?' | '&' | ';' if !text.starts_with(&expression[..1]) => Some((0, 0)),
        '?' | '&' => Some((0, until(&['#']))),
        ';' => Some((0, until(&['/', '?', '#']))),
        first if first.is_alphanumeric() || "_%".contains(first) => {
            Some((text.chars().next()?.len_utf8(), until(&['/', '?', '#'])))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_for_every_uri_are_not_specific() {
        for (template, expect) in [
            ("good://doc/{id}", true),
            ("good://doc/{id}/{part}", true),
            ("good://doc/{?page}", true),
            ("good:doc-{id}", true),
            ("good://{id}", false),
            ("good:{id}", false),
            ("good:///{path}", false),
            ("good://doc/{+path}", false),
            ("good://doc{/path*}", false),
            ("good://doc/{id}{#part}", false),
            ("{+any}", false),
        ] {
            assert_eq!(is_specific(template), expect, "{template}");
        }
    }

    #[test]
    fn matches_uri_templates() {
        let check = |template: &str, uri: &str, expect: bool| {
            assert_eq!(fits_template(template, uri), expect, "{template} {uri}");
        };
        check("test://template/{id}/data", "test://template/123/data", true);
        check("test://template/{id}/data", "test://template//data", false);
        check("test://template/{id}/data", "test://other/123/data", false);
        check("file:///{path}", "file:///a/b", true);
        check("a://{x}-{y}.z", "a://1-2.z", true);
        check("a://{x}-{y}.z", "a://12.z", false);
        check("plain://x", "plain://x", true);
    }

    #[test]
    fn a_template_claims_the_uris_that_it_yields_in_its_own_scheme() {
        let (specific, general) = (Some(TemplateMatch::Specific), Some(TemplateMatch::General));
        for (template, uri, expect) in [
            ("notes://{id}", "notes://5", specific),
            ("notes:{id}", "notes:5", specific),
            ("users://{user_id}/profile", "users://7/profile", specific),
            ("users://{user}/{part}-{n}.x", "users://7/a-b-c.x", specific),
            ("notes://{id}{?version}", "notes://55", specific),
            ("notes://{id}{?version}", "notes://5?version=1/2", specific),
            ("notes://{+id}", "notes://5", general),
            ("notes://{id}{/rest*}", "notes://5/a", general),
            ("notes://{id}", "notes://a/b", general),
            ("notes://{id}", "notes://5?x", general),
            ("users://{user_id}/profile", "users://a/b/profile", general),
            ("notes://{日}", "notes://日/b", general),
            ("notes://{id", "notes://5", general),
            ("file:///{name}", "file:///a", general),
            ("HTTPS://{host}", "HTTPS://a", general),
            ("resource://{id}", "resource://5", general),
            ("{+any}", "notes://5", None),
            ("{scheme}://{id}", "notes://5", None),
            ("notes://{id}", "other://5", None),
        ] {
            assert_eq!(match_template(template, uri), expect, "{template} {uri}");
        }
    }
}
