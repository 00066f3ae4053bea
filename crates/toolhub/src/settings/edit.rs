//! Edits of `toolhub.toml` as a text, so that comments and order are kept. Secrets are masked for the editor and restored
//! afterwards.

use std::ops::Range;

use toml_edit::{Document, Item, TableLike, Value};
use toolhub_client_config::ConfigError;
use toolhub_core::lang::LocalizedText;
use url::Url;

use super::paths::Paths;
use super::servers::load_servers;
use super::toml::Settings;

/// Settings whose values are secrets.
const SECRET_KEYS: [&str; 10] = [
    "key",
    "api_key",
    "apikey",
    "api-key",
    "client_secret",
    "password",
    "passwd",
    "secret",
    "token",
    "authorization",
];
/// Before and after the number of a secret.
pub(super) const MASK: (&str, &str) = ("{{secret ", "}}");

/// The text of a configuration in which each secret is replaced by `{{secret N}}`.
pub struct MaskedConfig {
    text: String,
    /// The secrets in the order of their numbers.
    secrets: Vec<MaskedSecret>,
}

/// A secret of the file.
struct MaskedSecret {
    /// The keys that lead to it, without the positions of entries in lists.
    path: String,
    /// The value as the file writes it.
    literal: String,
}

// Secrets are not shown.
impl std::fmt::Debug for MaskedConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MaskedConfig").field("text", &self.text).finish_non_exhaustive()
    }
}

impl MaskedConfig {
    /// Masks the secrets of a text. `None` if it is not valid TOML: its secrets cannot be found then.
    pub fn new(text: &str) -> Option<Self> {
        let document = Document::parse(text).ok()?;
        let mut secret_spans = Vec::new();
        strings_of_table(document.as_table(), "", &mut |path, value, span| {
            if is_secret(path, value) {
                secret_spans.push((path.to_owned(), span));
            }
        });
        secret_spans.sort_by_key(|(_, span)| span.start);
        let secrets = secret_spans.iter().map(|(path, span)| MaskedSecret {
            path: path.clone(),
            literal: text.get(span.clone()).unwrap_or_default().to_owned(),
        });
        let secrets = secrets.collect();
        let masks = (1..=secret_spans.len()).map(|number| format!("\"{}{number}{}\"", MASK.0, MASK.1));
        let spans = secret_spans.into_iter().map(|(_, span)| span);
        Some(Self { text: replace(text, spans.zip(masks)), secrets })
    }

    /// The text without secrets.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The edited text with the secrets again. Returns an error if it names a secret that there is not.
    pub fn restore(&self, edited: &str) -> Result<String, LocalizedText> {
        // An invalid text is reported when it is checked.
        let Ok(document) = Document::parse(edited) else { return Ok(edited.to_owned()) };
        let (mut changes, mut unknown) = (Vec::new(), None);
        strings_of_table(document.as_table(), "", &mut |path, value, span| {
            if !value.contains(MASK.0) {
                return;
            }
            let number = value.strip_prefix(MASK.0).and_then(|rest| rest.strip_suffix(MASK.1));
            let number = number.and_then(|number| number.parse::<usize>().ok()?.checked_sub(1));
            // A secret stays where it is: elsewhere it could be read, or be sent to another place.
            let secret =
                number.and_then(|number| self.secrets.get(number)).filter(|secret| secret.path == path);
            match secret {
                Some(secret) => changes.push((span, secret.literal.clone())),
                None => unknown = Some(value.to_owned()),
            }
        });
        if let Some(unknown) = unknown {
            return Err(LocalizedText::new(
                format!(
                    "`{unknown}` is not the placeholder of a secret in the file: write the secret itself, or `${{VAR}}`"
                ),
                format!("`{unknown}` 不对应文件中的任何密钥：请写入密钥本身，或 `${{VAR}}`"),
            ));
        }
        changes.sort_by_key(|(span, _)| span.start);
        Ok(replace(edited, changes.into_iter()))
    }
}

/// The text with these ranges replaced, which are in order and do not overlap.
fn replace(text: &str, changes: impl Iterator<Item = (Range<usize>, String)>) -> String {
    let (mut replaced, mut end) = (String::with_capacity(text.len()), 0);
    for (span, new) in changes {
        replaced.push_str(text.get(end..span.start).unwrap_or_default());
        replaced.push_str(&new);
        end = span.end;
    }
    replaced.push_str(text.get(end..).unwrap_or_default());
    replaced
}

/// Whether the value of a setting is a secret, or looks like a mask. A reference to an environment variable is none.
fn is_secret(path: &str, value: &str) -> bool {
    if value.contains(MASK.0) {
        return true;
    }
    if value.is_empty() || is_reference(value) {
        return false;
    }
    let key = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    SECRET_KEYS.contains(&key.as_str()) || has_password(value)
}

/// Whether a value is a reference to an environment variable and nothing else.
pub(super) fn is_reference(value: &str) -> bool {
    value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).is_some_and(|name| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// Whether a value is a URL with a user or a query, which often is a secret. Parts in `${…}` do not parse as a URL.
pub(super) fn has_password(value: &str) -> bool {
    let Some((_, rest)) = value.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.contains('@') || Url::parse(value).is_ok_and(|url| url.query().is_some())
}

/// Visits the strings of a table with the keys that lead to them, joined by dots, and their positions in the text.
fn strings_of_table(table: &dyn TableLike, parent: &str, visit: &mut impl FnMut(&str, &str, Range<usize>)) {
    for (key, item) in table.iter() {
        let path = if parent.is_empty() { key.to_owned() } else { format!("{parent}.{key}") };
        match item {
            Item::Value(value) => strings_of_value(&path, value, visit),
            Item::Table(table) => strings_of_table(table, &path, visit),
            Item::ArrayOfTables(tables) => {
                tables.iter().for_each(|table| strings_of_table(table, &path, visit));
            }
            Item::None => {}
        }
    }
}

fn strings_of_value(path: &str, value: &Value, visit: &mut impl FnMut(&str, &str, Range<usize>)) {
    match value {
        Value::String(text) => {
            if let Some(span) = text.span() {
                visit(path, text.value(), span);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| strings_of_value(path, value, visit)),
        Value::InlineTable(table) => strings_of_table(table, path, visit),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {}
    }
}

/// Checks the text of a configuration as a hub that starts or reloads does. Returns the settings with all warnings.
pub fn check_config(paths: &Paths, text: &str) -> Result<Settings, ConfigError> {
    let mut settings = Settings::parse(&paths.config, text)?;
    let (_, notes) = load_servers(paths, &settings)?;
    settings.notes.extend(notes);
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# Kept.
[llm]
url = "http://host/v1" # no secret
key = 'hunter2'
[store]
url = "postgres://hub:hunter3@db/hub"
[web_search]
api_key = "${TAVILY}"
[[servers]]
id = "a"
oauth = { client_id = "c", client_secret = "hunter4" }
[[servers]]
id = "key"
roots = ["https://host/a?token=hunter5"]
"#;

    #[test]
    fn secrets_are_masked_and_restored() {
        let masked = MaskedConfig::new(TEXT).unwrap();
        assert!(!masked.text().contains("hunter"), "{}", masked.text());
        assert!(!format!("{masked:?}").contains("hunter"));
        for kept in ["# Kept.", "http://host/v1", "${TAVILY}", "client_id = \"c\"", "id = \"key\""] {
            assert!(masked.text().contains(kept), "{kept}");
        }
        assert_eq!(masked.secrets.len(), 4);
        assert_eq!(masked.restore(masked.text()).unwrap(), TEXT);
    }

    #[test]
    fn secrets_follow_their_entries() {
        let masked = MaskedConfig::new(TEXT).unwrap();
        // The first server is removed, the second one moves up.
        let edited = masked.text().replace(
            "[[servers]]\nid = \"a\"\noauth = { client_id = \"c\", client_secret = \"{{secret 3}}\" }\n",
            "",
        );
        let restored = masked.restore(&edited).unwrap();
        assert!(restored.contains("hunter5") && !restored.contains("hunter4"), "{restored}");
        let edited = masked.text().replace("\"{{secret 1}}\"", "\"new\"");
        assert!(masked.restore(&edited).unwrap().contains("key = \"new\""));
    }

    /// A secret at another setting could be read there, in a message about it, or at the place that it is sent to.
    #[test]
    fn secrets_cannot_be_moved() {
        let masked = MaskedConfig::new(TEXT).unwrap();
        for moved in [
            "[limits]\ncall = \"{{secret 1}}\"\n",
            "[llm]\nmodel = \"{{secret 1}}\"\n",
            "[web_search]\napi_key = \"{{secret 1}}\"\n",
            "[llm]\nkey = \"{{secret 2}}\"\n",
            "[llm]\nkey = \"{{secret 1}}x\"\n",
            "[llm]\nkey = \"x {{secret 1}}\"\n",
            "[[servers]]\nid = \"{{secret 3}}\"\n",
        ] {
            assert!(masked.restore(moved).is_err(), "{moved}");
        }
        assert!(masked.restore("[llm]\nkey = \"{{secret 1}}\"\n").unwrap().contains("hunter2"));
    }

    /// Names of tools come from servers: one that looks like a mask must stay what it is.
    #[test]
    fn values_that_look_like_masks_stay() {
        let text = "[llm]\nkey = \"hunter2\"\n[[servers]]\nid = \"s\"\ndisabled_tools = [\"{{secret 1}}\", \"a {{secret 2}}\"]\n";
        let masked = MaskedConfig::new(text).unwrap();
        assert_eq!(masked.restore(masked.text()).unwrap(), text);
    }

    #[test]
    fn unknown_masks_are_refused() {
        let masked = MaskedConfig::new(TEXT).unwrap();
        for wrong in ["0", "5", "x", "-1", ""] {
            let edited = format!("[llm]\nkey = \"{{{{secret {wrong}}}}}\"\n");
            assert!(masked.restore(&edited).is_err(), "{wrong}");
        }
        assert!(MaskedConfig::new("a = ").is_none());
        // The check reports what is wrong.
        assert_eq!(masked.restore("a = ").unwrap(), "a = ");
    }
}
