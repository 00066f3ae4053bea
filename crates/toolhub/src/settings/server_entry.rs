//! The entry of one server in `mcp.json`, as an editor shows and changes it. Secrets are masked for the editor and restored at
//! the same place only; all other members and comments of the file stay as they are.

use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use toolhub_client_config::{ConfigError, HttpSpec, StdioSpec, TransportSpec};
use toolhub_core::lang::LocalizedText;
use toolhub_mcp_client::config::parse_servers;
use url::Url;

use super::edit::{MASK, has_password, is_reference};

/// Words in the name of an option whose value is a secret.
const SECRET_WORDS: [&str; 12] = [
    "token",
    "secret",
    "password",
    "passwd",
    "pwd",
    "key",
    "auth",
    "credential",
    "bearer",
    "cookie",
    "header",
    "signature",
];
/// How many characters a random text has at least.
const MIN_TOKEN_CHARACTERS: usize = 20;

/// The entry of a server in the text of a file.
pub struct ServerEntryEditor {
    file: PathBuf,
    root: CstRootNode,
    entry: CstObject,
    transport: TransportSpec,
    secrets: Vec<MaskedPart>,
    masked: TransportSpec,
}

/// A part of a transport that is masked.
struct MaskedPart {
    /// Where it stands: a header of another host is another place.
    place: String,
    value: String,
}

// Secrets are not shown.
impl std::fmt::Debug for ServerEntryEditor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerEntryEditor").field("masked", &self.masked).finish_non_exhaustive()
    }
}

impl ServerEntryEditor {
    /// Finds the entry of a server in the text of `mcp.json`. `None` if there is none.
    pub fn open(file: &Path, text: &str, id: &str) -> Result<Option<Self>, ConfigError> {
        let spec = parse_servers(file, text)?.into_iter().find(|spec| spec.id.as_str() == id);
        let Some(spec) = spec else { return Ok(None) };
        let root = CstRootNode::parse(text, &ParseOptions::default())
            .map_err(|error| ConfigError::jsonc(file, text, &error))?;
        let servers = root.object_value().and_then(|object| object.object_value("mcpServers"));
        let Some(entry) = servers.and_then(|servers| servers.object_value(id)) else { return Ok(None) };
        let mut secrets = Vec::new();
        let masked = map_parts(&spec.transport, &mut |place, value| {
            if !is_secret(place, value) {
                return Ok(value.to_owned());
            }
            secrets.push(MaskedPart { place: place.text.clone(), value: value.to_owned() });
            Ok::<_, std::convert::Infallible>(format!("{}{}{}", MASK.0, secrets.len(), MASK.1))
        });
        let Ok(masked) = masked;
        Ok(Some(Self { file: file.to_owned(), root, entry, transport: spec.transport, secrets, masked }))
    }

    /// The entry as the file writes it, for comparisons.
    pub fn text(&self) -> String {
        self.entry.to_string()
    }

    /// The transport, in which `{{secret N}}` stands for each secret.
    pub fn masked(&self) -> &TransportSpec {
        &self.masked
    }

    /// The text of the file with another transport for this server. Returns an error if the transport names a secret that does
    /// not stand at this place.
    pub fn replace(self, new: &TransportSpec) -> Result<String, LocalizedText> {
        let new = map_parts(new, &mut |place, value| self.restore(place, value))?;
        self.write(&new);
        let text = self.root.to_string();
        // A broken file is never written.
        match parse_servers(&self.file, &text) {
            Ok(_) => Ok(text),
            Err(error) => Err(LocalizedText::new(error.to_string(), error.to_string())),
        }
    }

    fn restore(&self, place: &PartPlace, value: &str) -> Result<String, LocalizedText> {
        if !value.contains(MASK.0) {
            return Ok(value.to_owned());
        }
        let number = value.strip_prefix(MASK.0).and_then(|rest| rest.strip_suffix(MASK.1));
        let number = number.and_then(|number| number.parse::<usize>().ok()?.checked_sub(1));
        let secret = number.and_then(|number| self.secrets.get(number));
        match secret.filter(|secret| secret.place == place.text) {
            Some(secret) => Ok(secret.value.clone()),
            None => Err(LocalizedText::new(
                format!(
                    "`{value}` stands for no secret at this place: write the secret again, or `${{VAR}}`"
                ),
                format!("`{value}` 不对应此处的机密值：请重新写入，或写 `${{VAR}}`"),
            )),
        }
    }

    /// Changes the members that differ, so that comments beside the others stay.
    fn write(&self, new: &TransportSpec) {
        let (old_members, new_members) = (members(&self.transport), members(new));
        for (name, value) in &new_members {
            let is_same = old_members.iter().any(|(old, before)| old == name && before == value);
            if !is_same {
                set(&self.entry, name, value.to_input());
            }
        }
        for (name, _) in old_members.iter().filter(|(old, _)| new_members.iter().all(|(new, _)| old != new)) {
            if let Some(property) = self.entry.get(name) {
                property.remove();
            }
        }
    }
}

fn set(entry: &CstObject, name: &str, value: CstInputValue) {
    match entry.get(name) {
        Some(property) => property.set_value(value),
        None => drop(entry.append(name, value)),
    }
}

/// The value of a member of an entry.
#[derive(PartialEq)]
enum Member {
    Text(String),
    List(Vec<String>),
    Pairs(Vec<(String, String)>),
}

impl Member {
    fn to_input(&self) -> CstInputValue {
        let text = |text: &String| CstInputValue::String(text.clone());
        match self {
            Self::Text(value) => text(value),
            Self::List(values) => CstInputValue::Array(values.iter().map(text).collect()),
            Self::Pairs(pairs) => {
                CstInputValue::Object(pairs.iter().map(|(name, value)| (name.clone(), text(value))).collect())
            }
        }
    }
}

/// The members that describe a transport. Those that are empty are left out.
fn members(transport: &TransportSpec) -> Vec<(&'static str, Member)> {
    let mut members = Vec::new();
    let pairs = |name, pairs: &[(String, String)], members: &mut Vec<_>| {
        if !pairs.is_empty() {
            members.push((name, Member::Pairs(pairs.to_vec())));
        }
    };
    match transport {
        TransportSpec::Stdio(spec) => {
            members.push(("command", Member::Text(spec.command.clone())));
            if !spec.args.is_empty() {
                members.push(("args", Member::List(spec.args.clone())));
            }
            pairs("env", &spec.env, &mut members);
            let folder = spec.cwd.iter().map(|folder| folder.to_string_lossy().into_owned());
            members.extend(folder.map(|folder| ("cwd", Member::Text(folder))));
        }
        TransportSpec::Http(spec) | TransportSpec::Sse(spec) => {
            members.push(("type", Member::Text(transport.name().to_owned())));
            members.push(("url", Member::Text(spec.url.clone())));
            pairs("headers", &spec.headers, &mut members);
        }
    }
    members
}

/// The place of a part of a transport.
struct PartPlace {
    text: String,
    kind: PartKind,
}

enum PartKind {
    /// A variable or a header, all of which may be secrets.
    Value,
    /// An argument, with the option that it belongs to.
    Argument {
        option: String,
    },
    /// A user, a parameter or a segment of a URL.
    UserOrParameter,
    Segment,
    /// The program and its folder.
    Program,
}

/// Applies a function to each part of a transport that may hold a secret.
fn map_parts<E>(
    transport: &TransportSpec,
    map: &mut impl FnMut(&PartPlace, &str) -> Result<String, E>,
) -> Result<TransportSpec, E> {
    let pairs = |prefix: &str, pairs: &[(String, String)], map: &mut dyn FnMut(&PartPlace, &str) -> _| {
        let pair = |(name, value): &(String, String)| {
            let place = PartPlace { text: format!("{prefix}.{name}"), kind: PartKind::Value };
            Ok((name.clone(), map(&place, value)?))
        };
        pairs.iter().map(pair).collect::<Result<Vec<_>, E>>()
    };
    Ok(match transport {
        TransportSpec::Stdio(spec) => {
            let program = |text: &str| PartPlace { text: text.to_owned(), kind: PartKind::Program };
            let folder = spec.cwd.as_ref().map(|folder| map(&program("cwd"), &folder.to_string_lossy()));
            TransportSpec::Stdio(StdioSpec {
                command: map(&program("command"), &spec.command)?,
                args: map_arguments(&spec.args, map)?,
                env: pairs("env", &spec.env, map)?,
                cwd: folder.transpose()?.map(PathBuf::from),
                ..spec.clone()
            })
        }
        TransportSpec::Http(spec) | TransportSpec::Sse(spec) => {
            let origin = origin_of(&spec.url);
            let headers = pairs(&format!("headers of {origin}"), &spec.headers, map)?;
            let spec = HttpSpec { url: map_url(&spec.url, &origin, map)?, headers };
            match transport {
                TransportSpec::Sse(_) => TransportSpec::Sse(spec),
                _ => TransportSpec::Http(spec),
            }
        }
    })
}

/// Arguments are `--name=value`, or follow the option `--name`, or stand alone.
fn map_arguments<E>(
    arguments: &[String],
    map: &mut impl FnMut(&PartPlace, &str) -> Result<String, E>,
) -> Result<Vec<String>, E> {
    let mut previous = "";
    let mut mapped = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let named = argument.split_once('=').filter(|(name, _)| is_option_name(name));
        let (prefix, option, value) = match named {
            Some((name, value)) => (format!("{name}="), name, value),
            None => (String::new(), if previous.starts_with('-') { previous } else { "" }, argument.as_str()),
        };
        let kind = PartKind::Argument { option: option.to_owned() };
        let value = map(&PartPlace { text: format!("args {option}"), kind }, value)?;
        mapped.push(format!("{prefix}{value}"));
        previous = if named.is_some() { "" } else { argument };
    }
    Ok(mapped)
}

fn is_option_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// The parts of a URL: its user, the values of its parameters, and the segments of its path.
fn map_url<E>(
    url: &str,
    origin: &str,
    map: &mut impl FnMut(&PartPlace, &str) -> Result<String, E>,
) -> Result<String, E> {
    let Some((scheme, rest)) = url.split_once("://") else { return Ok(url.to_owned()) };
    let mut place = |kind: PartKind, name: &str, value: &str| {
        map(&PartPlace { text: format!("url {origin} {name}"), kind }, value)
    };
    let (address, query) =
        rest.split_once('?').map_or((rest, None), |(address, query)| (address, Some(query)));
    let (authority, path) = address.find('/').map_or((address, ""), |slash| address.split_at(slash));
    let mut mapped = format!("{scheme}://");
    match authority.rsplit_once('@') {
        Some((user, host)) => {
            mapped.push_str(&place(PartKind::UserOrParameter, "user", user)?);
            mapped.push('@');
            mapped.push_str(host);
        }
        None => mapped.push_str(authority),
    }
    for (index, segment) in path.split('/').enumerate() {
        if index > 0 {
            mapped.push('/');
            mapped.push_str(&place(PartKind::Segment, &format!("segment {index}"), segment)?);
        }
    }
    for (index, parameter) in query.iter().flat_map(|query| query.split('&')).enumerate() {
        mapped.push(if index == 0 { '?' } else { '&' });
        match parameter.split_once('=') {
            Some((name, value)) => {
                mapped.push_str(name);
                mapped.push('=');
                mapped.push_str(&place(PartKind::UserOrParameter, &format!("parameter {name}"), value)?);
            }
            None => mapped.push_str(&place(PartKind::UserOrParameter, "parameter", parameter)?),
        }
    }
    Ok(mapped)
}

/// Scheme, host and port of a URL. A secret stays with them: it must not be sent to another host.
fn origin_of(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let origin = format!("{scheme}://{host}");
    Url::parse(&origin).map_or(origin, |url| url.origin().ascii_serialization())
}

/// Whether a part is masked.
fn is_secret(place: &PartPlace, value: &str) -> bool {
    if value.contains(MASK.0) {
        return true;
    }
    if value.is_empty() || is_reference(value) {
        return false;
    }
    match &place.kind {
        PartKind::Value | PartKind::UserOrParameter => true,
        PartKind::Argument { option } => {
            let is_named = option.eq_ignore_ascii_case("-h") || names_secret(option);
            // An option after an option is not its value.
            (is_named && !value.starts_with("--")) || has_password(value) || contains_secret(value)
        }
        PartKind::Segment => is_random(value),
        PartKind::Program => false,
    }
}

fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// Whether a part of an argument is a secret: an assignment in a script, a member of JSON, a header, or a random text.
fn contains_secret(value: &str) -> bool {
    let text = value.to_ascii_lowercase();
    let is_header = text.contains("bearer ") || text.contains("authorization:");
    let is_json = value.trim_start().starts_with(['{', '[']) && names_secret(value);
    let separators = |letter: char| letter.is_whitespace() || ";&|,'\"".contains(letter);
    let is_assigned = |part: &str| {
        let assigned = part.split_once('=').filter(|(_, value)| !value.is_empty() && !value.starts_with('$'));
        assigned.is_some_and(|(name, value)| names_secret(name) || is_random(value))
    };
    let mut parts = value.split(separators);
    is_header || is_json || parts.any(|part| is_random(part) || is_assigned(part))
}

/// Whether a text looks like a key: long, without spaces and separators, of letters and digits.
fn is_random(value: &str) -> bool {
    let prefixes = ["sk-", "ghp_", "github_pat_", "xox", "eyJ", "glpat-"];
    if prefixes.iter().any(|prefix| value.starts_with(prefix)) {
        return true;
    }
    let has = |test: fn(&u8) -> bool| value.bytes().any(|byte| test(&byte));
    value.len() >= MIN_TOKEN_CHARACTERS
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_+=".contains(&byte))
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{
  // Kept.
  "mcpServers": {
    "a": {
      "command": "npx", // also kept
      "args": ["-y", "server@1.2", "--api-key", "hunter1", "--token=hunter2", "--level", "3", "sk-hunter3"],
      "env": {"KEY": "hunter4", "HOME_OF": "${HOME}", "PORT": 80},
      "disabled": true,
      "vendor": {"x": 1}
    },
    "b": {"type": "sse", "url": "https://u:hunter5@host/s/hunter6hunter6hunter6x/mcp?key=hunter7&v", "headers": {"X": "hunter8"}},
    "c": {"command": "other", "env": {"KEY": "hunter9"}}
  }
}
"#;

    fn open(id: &str) -> ServerEntryEditor {
        ServerEntryEditor::open(Path::new("mcp.json"), TEXT, id).unwrap().unwrap()
    }

    fn stdio(id: &str) -> StdioSpec {
        match open(id).masked() {
            TransportSpec::Stdio(spec) => spec.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn http(id: &str) -> HttpSpec {
        match open(id).masked() {
            TransportSpec::Http(spec) | TransportSpec::Sse(spec) => spec.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn secrets_are_masked_and_the_rest_is_shown() {
        let spec = stdio("a");
        let shown = format!("{} {:?} {:?}", spec.command, spec.args, spec.env);
        assert!(!shown.contains("hunter") && !shown.contains("\"80\""), "{shown}");
        for part in
            ["npx", "-y", "server@1.2", "--api-key", "--token={{secret", "--level", "\"3\"", "${HOME}"]
        {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let spec = http("b");
        assert!(!spec.url.contains("hunter"), "{}", spec.url);
        assert!(spec.url.starts_with("https://{{secret ") && spec.url.contains("@host/s/"), "{}", spec.url);
        assert_eq!(spec.headers, [("X".to_owned(), "{{secret 1}}".to_owned())]);
        assert!(!format!("{:?}", open("b")).contains("hunter"));
    }

    #[test]
    fn arguments_with_secrets_are_recognized() {
        let is_masked = |option: &str, value: &str| {
            let kind = PartKind::Argument { option: option.to_owned() };
            is_secret(&PartPlace { text: String::new(), kind }, value)
        };
        for (option, value) in [
            ("--api-key", "hunter1"),
            ("-H", "X-Key: hunter1"),
            ("API_KEY", "hunter1"),
            ("-c", "export TOKEN=hunter1; exec run"),
            ("--config", r#"{"apiKey": "hunter1"}"#),
            ("", "postgres://user:hunter1@host/db"),
            ("", "https://host/sse?x=hunter1"),
            ("-c", "run --with ghp_hunter1"),
            ("", "0123456789abcdef0123456789abcdef"),
        ] {
            assert!(is_masked(option, value), "{option} {value}");
        }
        for (option, value) in [
            ("--api-key", "${API_KEY}"),
            ("--api-key", "--verbose"),
            ("-c", "TOKEN=$TOKEN exec run"),
            ("-y", "@modelcontextprotocol/server-filesystem@2025.1.14"),
            ("--from", "mcp-server-excel==0.1.8"),
            ("", "/srv/documents/2026/reports"),
            ("--port", "8080"),
            ("--config", r#"{"level": 3}"#),
        ] {
            assert!(!is_masked(option, value), "{option} {value}");
        }
    }

    #[test]
    fn unchanged_entries_leave_the_file_unchanged() {
        for id in ["a", "b", "c"] {
            let editor = open(id);
            let masked = editor.masked().clone();
            assert_eq!(editor.replace(&masked).unwrap(), TEXT, "{id}");
        }
        assert!(ServerEntryEditor::open(Path::new("mcp.json"), TEXT, "none").unwrap().is_none());
    }

    #[test]
    fn changes_keep_secrets_comments_and_other_members() {
        let mut spec = stdio("a");
        "bunx".clone_into(&mut spec.command);
        spec.args.retain(|arg| arg != "-y");
        spec.env.retain(|(name, _)| name != "HOME_OF");
        spec.env.push(("NEW".to_owned(), "v".to_owned()));
        spec.cwd = Some(PathBuf::from("/data"));
        let text = open("a").replace(&TransportSpec::Stdio(spec)).unwrap();
        for part in [
            "// Kept.",
            "// also kept",
            "\"bunx\"",
            "hunter1",
            "--token=hunter2",
            "hunter4",
            "\"NEW\": \"v\"",
            "\"cwd\": \"/data\"",
            "\"disabled\": true",
            "\"vendor\": {\"x\": 1}",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("HOME_OF") && !text.contains("\"-y\""), "{text}");
        // The other entries are the same.
        assert!(text.contains("\"c\": {\"command\": \"other\", \"env\": {\"KEY\": \"hunter9\"}}"), "{text}");
    }

    #[test]
    fn transport_can_become_another_one() {
        let new = HttpSpec { url: "http://localhost/mcp".to_owned(), headers: Vec::new() };
        let text = open("a").replace(&TransportSpec::Http(new)).unwrap();
        assert!(
            !text.contains("npx") && !text.contains("hunter4") && text.contains("\"type\": \"http\""),
            "{text}"
        );
        let new = StdioSpec { command: "x".to_owned(), ..StdioSpec::default() };
        let text = open("b").replace(&TransportSpec::Stdio(new)).unwrap();
        assert!(!text.contains("sse") && !text.contains("hunter8"), "{text}");
        assert_eq!(parse_servers(Path::new("mcp.json"), &text).unwrap()[1].transport.name(), "stdio");
    }

    /// A secret elsewhere could be read, or be sent to another host.
    #[test]
    fn secrets_cannot_be_moved() {
        let refused = |id: &str, new: &TransportSpec| assert!(open(id).replace(new).is_err(), "{new:?}");
        let spec = stdio("a");
        let mask = spec.env[0].1.clone();
        for place in 0..4 {
            let mut moved = spec.clone();
            match place {
                0 => moved.command.clone_from(&mask),
                1 => moved.args.push(mask.clone()),
                2 => "OTHER".clone_into(&mut moved.env[0].0),
                _ => moved.env[0].1.push('x'),
            }
            refused("a", &TransportSpec::Stdio(moved));
        }
        let spec = http("b");
        for (old, new) in [("host", "other"), ("https", "http"), ("?key", "?v"), ("host/", "host:444/")] {
            let url = spec.url.replace(old, new);
            refused("b", &TransportSpec::Sse(HttpSpec { url, headers: spec.headers.clone() }));
        }
        let only_header = HttpSpec { url: "https://other/mcp".to_owned(), headers: spec.headers.clone() };
        refused("b", &TransportSpec::Http(only_header));
        let same_host = HttpSpec { url: "https://host/other".to_owned(), headers: spec.headers };
        assert!(open("b").replace(&TransportSpec::Http(same_host)).unwrap().contains("hunter8"));
    }
}
