//! Plain text from what search services send: without tags, entities and line breaks.

/// Tags that only mark words.
const INLINE: [&str; 23] = [
    "a", "abbr", "b", "bdi", "cite", "code", "em", "font", "i", "kbd", "mark", "q", "s", "small", "span",
    "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
];
/// Tags that part what stands around them.
const BLOCK: [&str; 25] = [
    "blockquote",
    "br",
    "dd",
    "div",
    "dl",
    "dt",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "img",
    "li",
    "ol",
    "p",
    "pre",
    "script",
    "section",
    "style",
    "table",
    "td",
    "tr",
    "ul",
];
const MAX_TAG: usize = 1_000;

/// The text on one line, as a reader would see it. Only tags of HTML are taken out: `Vec<String>` is what it says.
pub(super) fn plain(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        bare.push_str(&rest[..start]);
        rest = &rest[start..];
        match tag(rest) {
            Some((length, between)) => {
                bare.push_str(between);
                rest = &rest[length..];
            }
            None => {
                bare.push('<');
                rest = &rest[1..];
            }
        }
    }
    bare.push_str(rest);
    // Entities come last: `&lt;b&gt;` means the characters, not a tag.
    let text = html_escape::decode_html_entities(&bare);
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// The length of the tag that `text` begins with, and what stands for it.
fn tag(text: &str) -> Option<(usize, &'static str)> {
    if let Some(comment) = text.strip_prefix("<!--") {
        return comment.find("-->").map(|end| (end + "<!---->".len(), ""));
    }
    let inside = &text[1..];
    let inside = inside.strip_prefix('/').unwrap_or(inside);
    let end = inside.find(|c: char| !c.is_ascii_alphanumeric())?;
    let (name, after) = inside.split_at(end);
    let between = kind(name)?;
    let close =
        after.find(['<', '>']).filter(|close| *close < MAX_TAG && after[*close..].starts_with('>'))?;
    let parted = after.starts_with(|c: char| c.is_whitespace() || c == '/' || c == '>');
    parted.then_some((text.len() - after.len() + close + 1, between))
}

/// What stands for a tag of this name; `None` where it is no tag. A single capital is rather a type's parameter.
fn kind(name: &str) -> Option<&'static str> {
    let lower = if name.len() == 1 { name.to_owned() } else { name.to_ascii_lowercase() };
    if INLINE.contains(&lower.as_str()) { Some("") } else { BLOCK.contains(&lower.as_str()).then_some(" ") }
}
