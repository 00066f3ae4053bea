//! Typed access to the fields of one entry, which records the fields that were not read.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};
use toolhub_core::lang::LocalizedText;

use crate::transport::{HttpSpec, StdioSpec, TransportSpec};

/// The members of an entry, and the names of those that were read.
pub(crate) struct Fields<'a> {
    members: &'a Map<String, Value>,
    read: BTreeSet<String>,
    left_out: Vec<String>,
}

fn should_be(key: &str, en: &str, zh: &str) -> LocalizedText {
    LocalizedText::new(format!("its `{key}` should be {en}"), format!("其 `{key}` 应为{zh}"))
}

impl<'a> Fields<'a> {
    pub(crate) fn of(value: &'a Value) -> Result<Self, LocalizedText> {
        let members = value.as_object();
        let members =
            members.ok_or_else(|| LocalizedText::new("its entry should be an object", "其内容应为对象"))?;
        Ok(Self { members, read: BTreeSet::new(), left_out: Vec::new() })
    }

    fn take(&mut self, key: &str) -> Option<&'a Value> {
        self.read.insert(key.to_owned());
        self.members.get(key).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&mut self, key: &str) -> Result<Option<String>, LocalizedText> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        self.take(key)
            .map(|value| text(value).ok_or_else(|| should_be(key, "a string", "字符串")))
            .transpose()
    }

    pub(crate) fn string_list(&mut self, key: &str) -> Result<Vec<String>, LocalizedText> {
        let wrong = || should_be(key, "a list of strings", "字符串列表");
        let Some(value) = self.take(key) else { return Ok(Vec::new()) };
        let items = value.as_array().ok_or_else(wrong)?;
        items.iter().map(|item| scalar_text(item).ok_or_else(wrong)).collect()
    }

    pub(crate) fn pairs(&mut self, key: &str) -> Result<Vec<(String, String)>, LocalizedText> {
        let Some(value) = self.take(key) else { return Ok(Vec::new()) };
        let object = value.as_object().ok_or_else(|| should_be(key, "an object", "对象"))?;
        let mut pairs = Vec::new();
        for (name, value) in object {
            match scalar_text(value) {
                Some(text) => pairs.push((name.clone(), text)),
                // VS Code: `null` removes a variable.
                None if value.is_null() => self.left_out.push(format!("{key}.{name}")),
                None => return Err(should_be(&format!("{key}.{name}"), "a string", "字符串")),
            }
        }
        Ok(pairs)
    }

    /// The members of an object field; `None` if it is not an object.
    pub(crate) fn object(&mut self, key: &str) -> Option<&'a Map<String, Value>> {
        self.take(key).and_then(Value::as_object)
    }

    pub(crate) fn flag(&mut self, key: &str) -> Option<bool> {
        self.take(key).and_then(Value::as_bool)
    }

    /// A duration in units of `unit`; `None` if it is not a positive number.
    pub(crate) fn time(&mut self, key: &str, unit: Duration) -> Option<Duration> {
        let number = self.take(key)?.as_f64()?;
        let time = Duration::try_from_secs_f64(number * unit.as_secs_f64()).ok();
        time.filter(|time| !time.is_zero())
    }

    /// Marks fields as read that carry no further information.
    pub(crate) fn ignore(&mut self, keys: &[&str]) {
        self.read.extend(keys.iter().map(|key| (*key).to_owned()));
    }

    /// Records a field that is not carried over.
    pub(crate) fn leave_out(&mut self, field: impl Into<String>) {
        self.left_out.push(field.into());
    }

    /// Reads `type`, `command`, `args`, `env`, `cwd`, `url` and `headers`, as most clients write them.
    pub(crate) fn transport(&mut self) -> Result<TransportSpec, LocalizedText> {
        let kind = self.text("type")?;
        match (kind.as_deref(), self.text("command")?, self.text("url")?) {
            (None | Some("stdio"), Some(command), _) => Ok(TransportSpec::Stdio(StdioSpec {
                command,
                args: self.string_list("args")?,
                env: self.pairs("env")?,
                cwd: self.text("cwd")?.map(PathBuf::from),
                ..StdioSpec::default()
            })),
            (None, None, Some(url)) => {
                let spec = HttpSpec { headers: self.pairs("headers")?, url };
                Ok(untyped(spec))
            }
            (Some("http" | "streamable-http" | "streamableHttp" | "streamable_http"), _, Some(url)) => {
                Ok(TransportSpec::Http(HttpSpec { headers: self.pairs("headers")?, url }))
            }
            (Some("sse"), _, Some(url)) => {
                Ok(TransportSpec::Sse(HttpSpec { headers: self.pairs("headers")?, url }))
            }
            (None | Some("stdio" | "http" | "sse"), ..) => Err(missing_transport()),
            (Some(other), ..) => Err(unsupported_type(other)),
        }
    }

    /// The fields that are not carried over: the recorded ones, and every unread field with a significant value.
    pub(crate) fn left_out(self) -> Vec<String> {
        let unread =
            self.members.iter().filter(|(key, value)| !self.read.contains(*key) && is_significant(value));
        let unread: Vec<String> = unread.map(|(key, _)| key.clone()).collect();
        [self.left_out, unread].concat()
    }
}

/// The transport of a remote server without a type, for clients that detect it: decided by the URL.
pub(crate) fn untyped(spec: HttpSpec) -> TransportSpec {
    let path = spec.url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    if path.ends_with("/sse") { TransportSpec::Sse(spec) } else { TransportSpec::Http(spec) }
}

pub(crate) fn missing_transport() -> LocalizedText {
    LocalizedText::new("it has neither a command nor an address", "既没有命令也没有地址")
}

pub(crate) fn unsupported_type(kind: &str) -> LocalizedText {
    LocalizedText::new(
        format!("its type `{kind}` is not known here: `stdio`, `http` and `sse` are"),
        format!("类型 `{kind}` 在此未知：支持 `stdio`、`http` 和 `sse`"),
    )
}

/// Accepts numbers and booleans too, which users write for ports and flags.
fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

/// Whether a value differs from the usual default: `false`, null or empty.
fn is_significant(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    }
}
