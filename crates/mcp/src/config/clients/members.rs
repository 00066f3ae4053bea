//! Writing one server as an object: what most clients share, by rules that say where they differ.

use std::time::Duration;

use serde_json::{Map, Value};
use toolhub_core::lang::Text;

use super::super::spec::{HttpSpec, StdioSpec, TransportSpec};
use super::entry::ClientServer;
use super::login::{self, Names};
use super::reading::Forms;
use super::variables::{Variable, has_variables, is_name, map_bare, map_braced};

/// An entry, or why the client cannot have this server.
pub(super) type Written = Result<Members, Text>;

/// An entry in the making.
#[derive(Debug, Default)]
pub(super) struct Members {
    pub(super) members: Map<String, Value>,
    pub(super) left_out: Vec<String>,
    pub(super) notes: Vec<Text>,
}

/// How a client writes the fields that most of them share.
pub(super) struct Rules {
    pub(super) title: &'static str,
    pub(super) forms: Forms,
    /// Whether servers at an address can stand in its file.
    pub(super) remote: bool,
    /// Whether a program's `type` is written.
    pub(super) typed: bool,
    pub(super) cwd: bool,
    /// The field for the time of a call, in milliseconds.
    pub(super) call_timeout: Option<&'static str>,
    /// The field for the only tools to be used.
    pub(super) tools: Option<&'static str>,
    /// Its words for a login.
    pub(super) login: Option<&'static Names>,
}

impl Members {
    pub(super) fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.members.insert(key.to_owned(), value.into());
    }

    /// A list, where there is anything in it.
    pub(super) fn put_list(&mut self, key: &str, texts: &[String]) {
        if !texts.is_empty() {
            self.put(key, texts.to_vec());
        }
    }

    /// Names and values, where there are any.
    pub(super) fn put_pairs(&mut self, key: &str, pairs: Vec<(String, String)>) {
        if !pairs.is_empty() {
            let pairs: Map<String, Value> =
                pairs.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
            self.put(key, pairs);
        }
    }

    pub(super) fn leave_out(&mut self, field: impl Into<String>) {
        let field = field.into();
        if !self.left_out.contains(&field) {
            self.left_out.push(field);
        }
    }

    /// A field that is left out where it says anything.
    pub(super) fn leave_out_if(&mut self, said: bool, field: &str) {
        if said {
            self.leave_out(field);
        }
    }

    /// A value in the client's form; `None` where the client has no form for its variables.
    pub(super) fn value(&mut self, text: &str, forms: Forms) -> Option<String> {
        match forms {
            Forms::Ours => Some(text.to_owned()),
            Forms::Shell => {
                map_bare(text, &mut |name| {
                    if is_name(name) {
                        self.note_bare(name);
                    }
                    None
                });
                Some(text.to_owned())
            }
            Forms::Nothing => (!has_variables(text)).then(|| text.to_owned()),
            Forms::Editor => Some(map_braced(text, &mut |inside| {
                let Variable { name, default } = Variable::inside(inside)?;
                if default.is_some() {
                    self.leave_out(default_of(name));
                }
                Some(format!("${{env:{name}}}"))
            })),
        }
    }

    /// Text here, and a variable there.
    fn note_bare(&mut self, name: &str) {
        let note = Text::new(
            format!("`${name}` is text here, and a variable there"),
            format!("`${name}` 在此是普通文本，在那边是变量"),
        );
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn values(&mut self, field: &str, pairs: &[(String, String)], forms: Forms) -> Vec<(String, String)> {
        let mut values = Vec::new();
        for (name, value) in pairs {
            match self.value(value, forms) {
                Some(value) => values.push((name.clone(), value)),
                None => self.leave_out(format!("{field}.{name}")),
            }
        }
        values
    }
}

/// What is said of a default that has no place: its name, and not its value, which may be a secret.
pub(super) fn default_of(name: &str) -> String {
    format!("${{{name}:-…}}")
}

pub(super) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A client without variables cannot have a server that is reached through one.
pub(super) fn needs_variables(title: &str, field: &str) -> Text {
    Text::new(
        format!("its `{field}` has a variable, and {title} fills in none there"),
        format!("其 `{field}` 含有变量，而 {title} 不会填充"),
    )
}

/// The entry of a server, by a client's rules.
pub(super) fn write(server: &ClientServer, rules: &Rules) -> Written {
    let mut entry = Members::default();
    match &server.transport {
        TransportSpec::Stdio(spec) => write_program(&mut entry, spec, rules)?,
        TransportSpec::Http(spec) | TransportSpec::Sse(spec) if rules.remote => {
            entry.put("type", server.transport.name());
            write_address(&mut entry, spec, rules)?;
            login::write(&mut entry, &server.extras.oauth, rules.login, rules.forms);
        }
        _ => return Err(programs_only(rules.title)),
    }
    let extras = &server.extras;
    match (rules.call_timeout, extras.call_timeout) {
        (Some(key), Some(time)) => entry.put(key, milliseconds(time)),
        (_, time) => entry.leave_out_if(time.is_some(), "call_timeout"),
    }
    match (rules.tools, &extras.tools) {
        (Some(key), Some(tools)) => entry.put(key, tools.clone()),
        (_, tools) => entry.leave_out_if(tools.is_some(), "tools"),
    }
    entry.leave_out_if(extras.connect_timeout.is_some(), "connect_timeout");
    Ok(entry)
}

fn programs_only(title: &str) -> Text {
    Text::new(
        format!("{title} takes only programs from its file: add the address in its settings"),
        format!("{title} 的配置文件只接受本地程序：请在其设置中添加该地址"),
    )
}

fn write_program(entry: &mut Members, spec: &StdioSpec, rules: &Rules) -> Result<(), Text> {
    let missing = |field: &str| needs_variables(rules.title, field);
    if rules.typed {
        entry.put("type", "stdio");
    }
    let command = entry.value(&spec.command, rules.forms).ok_or_else(|| missing("command"))?;
    entry.put("command", command);
    let mut args = Vec::new();
    for arg in &spec.args {
        args.push(entry.value(arg, rules.forms).ok_or_else(|| missing("args"))?);
    }
    entry.put_list("args", &args);
    let mut env = entry.values("env", &spec.env, rules.forms);
    for name in &spec.env_pass {
        match rules.forms {
            _ if spec.env.iter().any(|(known, _)| known == name) => {}
            // Empty where it is not set, as it would be without it.
            Forms::Ours | Forms::Shell => env.push((name.clone(), format!("${{{name}:-}}"))),
            Forms::Editor => env.push((name.clone(), format!("${{env:{name}}}"))),
            Forms::Nothing => entry.leave_out(format!("env_pass.{name}")),
        }
    }
    entry.put_pairs("env", env);
    if let Some(folder) = &spec.cwd {
        if rules.cwd {
            let folder = entry.value(&folder.to_string_lossy(), rules.forms).ok_or_else(|| missing("cwd"))?;
            entry.put("cwd", folder);
        } else {
            entry.leave_out("cwd");
        }
    }
    Ok(())
}

fn write_address(entry: &mut Members, spec: &HttpSpec, rules: &Rules) -> Result<(), Text> {
    let url = entry.value(&spec.url, rules.forms).ok_or_else(|| needs_variables(rules.title, "url"))?;
    entry.put("url", url);
    let headers = entry.values("headers", &spec.headers, rules.forms);
    entry.put_pairs("headers", headers);
    Ok(())
}
