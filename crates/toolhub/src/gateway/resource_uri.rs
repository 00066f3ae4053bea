//! Spellings of URIs: which texts a server may read as the same resource. Servers parse URIs by RFC 3986, by the URL Standard of
//! WHATWG, or not at all, so that a decision about one spelling must hold for what each of them makes of it.

use url::Url;

/// Maximum length of a URI whose readings are compared. The gateway refuses longer ones.
const MAX_URI_BYTES: usize = 8 << 10;

/// How often percent-encoding is decoded in search of dot-dot segments. Servers decode once, some with a proxy before them twice.
const MAX_DECODINGS: usize = 3;

/// What a server may read when it receives a URI. Each reading has several notations, which differ in percent-encoding and in
/// the letter case of the host only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UriReadings {
    /// Readings that need a permission, each with its notations.
    pub(super) required: Vec<Vec<String>>,
    /// Readings of servers that ignore a part of the URI: a rule that forbids one of them forbids the resource.
    pub(super) partial: Vec<String>,
}

impl UriReadings {
    /// The readings of a URI; `None` if they are unpredictable, because it contains control characters, surrounding spaces or
    /// backslashes, which some parsers remove or replace, or because it is very long.
    pub(super) fn of(uri: &str) -> Option<Self> {
        let is_unpredictable = uri.len() > MAX_URI_BYTES
            || uri.contains(|c: char| c.is_control() || c == '\\')
            || uri.trim() != uri
            || contains_encoded(uri, b'\\');
        if is_unpredictable {
            return None;
        }
        let mut required = vec![vec![uri.to_owned()]];
        let mut add = |reading: String| {
            let notations = notations(uri, reading);
            if !required.contains(&notations) {
                required.push(notations);
            }
        };
        let parsed = Url::parse(uri).ok();
        if let Some(parsed) = &parsed {
            add(parsed.as_str().to_owned());
        }
        for text in [Some(uri), parsed.as_ref().map(Url::as_str)].into_iter().flatten() {
            if let Some(plain) = plain_uri(text) {
                add(plain);
            }
        }
        let partial = parsed.as_ref().map(partial_readings).unwrap_or_default();
        Some(Self { required, partial })
    }
}

/// Whether every parser reads the same in a URI, apart from its notation.
pub(super) fn has_one_reading(uri: &str) -> bool {
    let is_same = |notations: &Vec<String>| notations.iter().any(|notation| notation == uri);
    UriReadings::of(uri).is_some_and(|readings| readings.required.iter().all(is_same))
}

/// Whether a URI, or a value that a server inserts into one, has a dot-dot segment, as it is or percent-encoded. No parser of URIs
/// shows what a server reads that appends the text to the path of a folder.
pub(super) fn has_dot_dot_segment(uri: &str) -> bool {
    let mut bytes = uri.as_bytes().to_vec();
    for _ in 0..=MAX_DECODINGS {
        let is_separator =
            |byte: &u8| matches!(byte, b'/' | b'\\' | b'?' | b'#' | b';' | b':' | b'=' | b'&' | b',');
        if bytes.split(is_separator).any(is_dot_dot) {
            return true;
        }
        let decoded = decode_bytes(&bytes);
        if decoded == bytes {
            return false;
        }
        bytes = decoded;
    }
    false
}

/// Whether a segment is `..` once the characters are removed that some parsers ignore.
fn is_dot_dot(segment: &[u8]) -> bool {
    let is_kept = |byte: &&u8| !byte.is_ascii_control() && **byte != b' ';
    segment.iter().filter(is_kept).eq(b"..")
}

/// The URI in the spelling in which resources are compared: parsed by the URL Standard, without encoded letters, dot segments
/// and repeated slashes.
pub(super) fn canonicalize_uri(uri: &str) -> String {
    let parsed = Url::parse(&uri.replace('\\', "/")).map_or_else(|_| uri.trim().to_owned(), String::from);
    let plain = plain_uri(&parsed).unwrap_or(parsed);
    let decoded = decode(&plain);
    match decoded.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
            format!("{scheme}://{}{path}", host.to_lowercase())
        }
        None => decoded,
    }
}

/// Whether a canonical URI is this folder, a file below it, or one of them with a query or fragment.
pub(super) fn is_within(canonical_uri: &str, canonical_folder: &str) -> bool {
    let folder = canonical_folder.trim_end_matches('/');
    canonical_uri
        .strip_prefix(folder)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#']))
}

/// A reading, without percent-encoding, and the requested text if both differ in notation only.
fn notations(uri: &str, reading: String) -> Vec<String> {
    let mut notations = vec![reading];
    for other in [decode(&notations[0]), recode(&notations[0])] {
        if !notations.contains(&other) {
            notations.push(other);
        }
    }
    if !notations.iter().any(|notation| notation == uri) && comparable(uri) == comparable(&notations[0]) {
        notations.push(uri.to_owned());
    }
    notations
}

/// A URI in a form that is equal for texts that differ in percent-encoding of characters without a meaning in paths, in the letter
/// case of scheme and host, and in the slash of an empty path.
fn comparable(uri: &str) -> String {
    // An encoded slash or dot changes the segments for some servers.
    let kept =
        uri.replace("%2f", "%252F").replace("%2F", "%252F").replace("%2e", "%252E").replace("%2E", "%252E");
    let decoded = decode(&kept);
    let Some((scheme, rest)) = decoded.split_once(':') else { return decoded };
    let (host, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.find(['/', '?', '#']).map_or((rest, ""), |at| rest.split_at(at)),
        None => ("", rest),
    };
    let path = if path.is_empty() { "/" } else { path };
    format!("{}:{}{path}", scheme.to_ascii_lowercase(), host.to_lowercase())
}

/// Readings without user information, port, query, fragment and a final slash; for files also without a host.
fn partial_readings(parsed: &Url) -> Vec<String> {
    let path = decode(parsed.path());
    let rooted = match parsed.host_str() {
        Some(host) => format!("{}://{}{path}", parsed.scheme(), decode(host).to_lowercase()),
        None if parsed.cannot_be_a_base() => format!("{}:{path}", parsed.scheme()),
        None => format!("{}://{path}", parsed.scheme()),
    };
    let mut readings = vec![rooted];
    if parsed.scheme() == "file" {
        readings.push(format!("file://{path}"));
    }
    let plain: Vec<String> = readings.iter().filter_map(|reading| plain_uri(reading)).collect();
    readings.extend(plain);
    let trimmed: Vec<String> =
        readings.iter().filter_map(|reading| reading.strip_suffix('/')).map(str::to_owned).collect();
    readings.extend(trimmed);
    readings
}

/// The octets that the text after a `%` encodes.
fn octet(after: &str) -> Option<u8> {
    let digits = after.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u8::from_str_radix(digits, 16).ok()
}

fn contains_encoded(uri: &str, wanted: u8) -> bool {
    uri.split('%').skip(1).any(|after| octet(after) == Some(wanted))
}

/// Decodes percent-encoded octets once; text that is not UTF-8 afterwards stays as it is.
fn decode(uri: &str) -> String {
    String::from_utf8(decode_bytes(uri.as_bytes())).unwrap_or_else(|_| uri.to_owned())
}

/// Decodes percent-encoded octets once.
fn decode_bytes(encoded: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let decoded = digits.and_then(octet);
        bytes.push(decoded.unwrap_or(*first));
        rest = if decoded.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    bytes
}

/// The usual percent-encoding: of characters outside of ASCII and spaces, with upper case digits.
fn recode(uri: &str) -> String {
    let mut coded = String::with_capacity(uri.len());
    for (index, part) in uri.split('%').enumerate() {
        let text = match octet(part) {
            Some(byte) if index > 0 => {
                coded.push_str(&format!("%{byte:02X}"));
                &part[2..]
            }
            _ => {
                if index > 0 {
                    coded.push('%');
                }
                part
            }
        };
        for c in text.chars() {
            match c.is_ascii() && c != ' ' {
                true => coded.push(c),
                false => {
                    let mut buffer = [0; 4];
                    for byte in c.encode_utf8(&mut buffer).bytes() {
                        coded.push_str(&format!("%{byte:02X}"));
                    }
                }
            }
        }
    }
    coded
}

/// The usual spelling of a URI: without encoded letters, dot segments, repeated slashes and the host `localhost` of a file.
/// Returns `None` if it is spelled so already.
fn plain_uri(uri: &str) -> Option<String> {
    let mut decoded = String::with_capacity(uri.len());
    let mut rest = uri;
    while let Some(at) = rest.find('%') {
        decoded.push_str(&rest[..at]);
        let unreserved =
            octet(&rest[at + 1..]).filter(|byte| byte.is_ascii_alphanumeric() || b"-._~/".contains(byte));
        match unreserved {
            Some(byte) => decoded.push(char::from(byte)),
            None => decoded.push('%'),
        }
        rest = &rest[at + if unreserved.is_some() { 3 } else { 1 }..];
    }
    decoded.push_str(rest);
    let (scheme, path) = decoded.split_once("://")?;
    let is_file = scheme.eq_ignore_ascii_case("file");
    let path = match path.split_once('/') {
        Some((host, below)) if is_file && host.eq_ignore_ascii_case("localhost") => format!("/{below}"),
        _ => path.to_owned(),
    };
    let mut segments: Vec<&str> = Vec::new();
    for (index, segment) in path.split('/').enumerate() {
        match segment {
            "" if index > 0 => {}
            "." => {}
            ".." => {
                if segments.len() > 1 {
                    segments.pop();
                }
            }
            segment => segments.push(segment),
        }
    }
    let trailing = if path.ends_with('/') && path.len() > 1 { "/" } else { "" };
    let plain = format!("{}://{}{trailing}", scheme.to_ascii_lowercase(), segments.join("/"));
    (plain != uri).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a rule that forbids everything below a prefix forbids the URI.
    fn is_forbidden(uri: &str, prefix: &str) -> bool {
        let Some(readings) = UriReadings::of(uri) else { return true };
        let matches = |text: &String| text.to_lowercase().starts_with(prefix);
        readings.required.iter().flatten().chain(&readings.partial).any(matches)
    }

    #[test]
    fn other_spellings_of_a_uri_have_one_plain_form() {
        for other in [
            "file:///%73ecret/a",
            "file:///pub/../secret/a",
            "file:///pub/%2e%2e/secret/a",
            "file:////secret/a",
            "file://localhost/secret/a",
            "file://LocalHost/secret/a",
            "FILE:///secret/./a",
            "file:///pub%2f..%2fsecret/a",
        ] {
            assert_eq!(plain_uri(other).as_deref(), Some("file:///secret/a"), "{other}");
        }
        for plain in ["file:///secret/a", "note://x/a", "note://x/", "memo:a", "x://h/%E4%B8%AD%", "x://h"] {
            assert_eq!(plain_uri(plain), None, "{plain}");
        }
    }

    #[test]
    fn readings_of_other_parsers_are_decided() {
        for uri in [
            "file:/secret/a",
            "file:secret/a",
            "file:///sec\tret/a",
            "file:///x/..\\secret/a",
            " file:///secret/a",
            "file:\\\\\\secret\\a",
            "file://LOCALHOST/secret/a",
            "file:///secret\\a",
            "file:///public/.\t./secret/a",
            "file:///public/.%2\te/secret/a",
            "fi\nle:///secret/a",
            "file:///public/..%5csecret/a",
            "file:///public/..%2Fsecret/a",
            "file://other/secret/a",
            "file://%6cocalhost/secret/a",
            "file:///secret/a?x",
            "file:///secret/a#x",
            "FILE:///SECRET/a",
        ] {
            assert!(is_forbidden(uri, "file:///secret/"), "{uri:?}: {:?}", UriReadings::of(uri));
        }
        assert!(is_forbidden("note://me@vault:80/a", "note://vault/"));
        assert!(is_forbidden("http://h:80/x/../secret/a", "http://h/secret/"));
        assert!(is_forbidden("note://x/%E6%97%A5%e8%ae%b0", "note://x/日记"));
        assert!(is_forbidden("note://x/日记", "note://x/%e6%97%a5"));
        for uri in ["file:///public/a", "file:///public/secret/a", "note://secret/a", "secret/a"] {
            assert!(!is_forbidden(uri, "file:///secret/"), "{uri}");
        }
    }

    #[test]
    fn notations_of_the_requested_text_need_one_permission() {
        // A permission for the text as it was listed suffices if a parser changes its notation only.
        for uri in [
            "http://Host/a",
            "note://x/日记",
            "file:///my documents/a",
            "http://host",
            "memo:a",
            "note://{id}/x",
        ] {
            let readings = UriReadings::of(uri).unwrap();
            assert!(
                readings.required.iter().all(|notations| notations.iter().any(|one| one == uri)),
                "{readings:?}"
            );
        }
        for uri in ["file:///public/../secret/a", "file:secret/a", "file:///public/..%2fsecret/a"] {
            let readings = UriReadings::of(uri).unwrap();
            assert!(
                readings.required.iter().any(|notations| !notations.iter().any(|one| one == uri)),
                "{readings:?}"
            );
        }
    }

    #[test]
    fn dot_dot_segments_are_found_in_every_encoding() {
        for uri in [
            "doc://ok/../hid/1",
            "doc://ok/..",
            "doc://../hid",
            "doc://ok/%2e%2e/hid",
            "doc://ok/%2E./hid",
            "doc://ok/.%2e/hid",
            "doc://ok/%2e%2e%2fhid",
            "doc://ok/%252e%252e/hid",
            "doc://ok/%252e%252E%252fhid",
            "doc://ok/..%5chid",
            "doc://ok/..\\hid",
            "doc://ok/..;x/hid",
            "doc://ok/..?x",
            "doc://ok/..%00/hid",
            "doc://ok/.\t./hid",
            "doc://ok/%ff/%2e%2e/hid",
            "doc://ok/%e6%97%a5/%2e%2e/hid",
            "../hid",
            "..",
            "files:../root/secret/a",
            "doc://read?path=../base/hid",
            "doc://read?a=1&path=%2e%2e/base",
        ] {
            assert!(has_dot_dot_segment(uri), "{uri:?}");
        }
        for uri in [
            "doc://ok/a..b",
            "doc://ok/...",
            "doc://ok/..a",
            "doc://ok/a..",
            "doc://ok/./a",
            "doc://ok/%",
            "doc://ok/%2",
            "doc://ok/%zz",
            "doc://ok/日记",
            "doc://ok/v1..v2/a?range=1..2",
            "",
            ".",
        ] {
            assert!(!has_dot_dot_segment(uri), "{uri:?}");
        }
    }

    /// A random spelling that the URL Standard reads as the same URI.
    fn respelled(random: &mut fastrand::Rng, segments: &[&str]) -> String {
        let mut path = String::new();
        let separators: &[&str] = &["/", "/", "/", "\\", "/./", "/x/../", "/%2e/", "/x/%2E./", "/x/.%2e/"];
        for segment in segments {
            path.push_str(separators[random.usize(..separators.len())]);
            path.push_str(segment);
        }
        let schemes = ["file:", "FILE:", "File:", " file:", "fi\tle:", "\u{1}file:"];
        let hosts = ["//", "", "//localhost", "//LOCALHOST", "\\\\", "//%6Cocalhost"];
        let mut uri = format!("{}{}{path}", schemes[random.usize(..6)], hosts[random.usize(..6)]);
        for _ in 0..random.usize(..3) {
            let at = random.usize(..=uri.len());
            uri.insert(at, ['\t', '\n', '\r'][random.usize(..3)]);
        }
        uri
    }

    #[test]
    fn every_spelling_of_a_url_gets_the_decision_of_the_url() {
        let mut random = fastrand::Rng::with_seed(fastrand::u64(..));
        let mut same = 0;
        for _ in 0..20_000 {
            let uri = respelled(&mut random, &["secret", "a"]);
            let Ok(parsed) = Url::parse(&uri) else { continue };
            if parsed.as_str() != "file:///secret/a" {
                continue;
            }
            same += 1;
            assert!(is_forbidden(&uri, "file:///secret/"), "{uri:?}, seed {}", random.get_seed());
            assert!(is_within(&canonicalize_uri(&uri), &canonicalize_uri("file:///secret")), "{uri:?}");
        }
        assert!(same > 5_000, "only {same} spellings had the same URL");
        // The control: spellings of another resource that a parser reads unambiguously are not forbidden.
        let mut open = 0;
        for _ in 0..20_000 {
            let uri = respelled(&mut random, &["public", "a"]);
            if Url::parse(&uri).is_ok_and(|parsed| parsed.as_str() == "file:///public/a")
                && UriReadings::of(&uri).is_some()
            {
                open += 1;
                assert!(!is_forbidden(&uri, "file:///secret/"), "{uri:?}");
            }
        }
        assert!(open > 1_000, "only {open} spellings were unambiguous");
    }

    #[test]
    fn canonical_uris_of_skills_are_equal() {
        let folder = canonicalize_uri("skill://vault");
        for uri in [
            "SKILL://vault/SKILL.md",
            "skill://va\tult/SKILL.md",
            " skill://vault/SKILL.md",
            "skill://vault/x/../SKILL.md",
            "skill://vault/%53KILL.md",
            "skill://VAULT/SKILL.md",
            "skill:\\\\vault\\SKILL.md",
            "skill://vault/SKILL.md?x",
            "skill://vault#x",
            "skill://vault",
        ] {
            assert!(is_within(&canonicalize_uri(uri), &folder), "{uri:?}: {}", canonicalize_uri(uri));
        }
        assert!(!is_within(&canonicalize_uri("skill://vaults/SKILL.md"), &folder));
        assert!(!is_within(&canonicalize_uri("docs://vault/SKILL.md"), &folder));
    }
}
