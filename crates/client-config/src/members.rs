//! Writes one server as an object: the fields that most clients share, with rules for the differences.

use toolhub_core::lang::LocalizedText;
use toolhub_core::millis::duration_millis;

use crate::entry::ClientServer;
use crate::entry_builder::{EntryBuilder, WriteResult};
use crate::login::{self, OAuthFieldNames};
use crate::reading::VariableSyntax;
use crate::transport::{HttpSpec, StdioSpec, TransportSpec};

/// How a client writes the fields that most clients share.
pub(crate) struct WriteRules {
    pub(crate) title: &'static str,
    pub(crate) variable_syntax: VariableSyntax,
    /// Whether it supports remote servers.
    pub(crate) remote: bool,
    /// Whether `type` is written for stdio servers.
    pub(crate) writes_type: bool,
    pub(crate) cwd: bool,
    /// The field for the call timeout in milliseconds.
    pub(crate) call_timeout: Option<&'static str>,
    /// The field for the allowed tools.
    pub(crate) tools: Option<&'static str>,
    /// Its names for the OAuth settings.
    pub(crate) login: Option<&'static OAuthFieldNames>,
}

/// The error for a client that expands no variables in this field.
pub(crate) fn needs_variables(title: &str, field: &str) -> LocalizedText {
    LocalizedText::new(
        format!("its `{field}` has a variable, and {title} fills in none there"),
        format!("其 `{field}` 含有变量，而 {title} 不会填充"),
    )
}

/// The entry of a server, according to a client's rules.
pub(crate) fn write(server: &ClientServer, rules: &WriteRules) -> WriteResult {
    let mut entry = EntryBuilder::default();
    match &server.transport {
        TransportSpec::Stdio(spec) => write_program(&mut entry, spec, rules)?,
        TransportSpec::Http(spec) | TransportSpec::Sse(spec) if rules.remote => {
            entry.put("type", server.transport.name());
            write_address(&mut entry, spec, rules)?;
            login::write(&mut entry, &server.extras.oauth, rules.login, rules.variable_syntax);
        }
        _ => return Err(programs_only(rules.title)),
    }
    let extras = &server.extras;
    match (rules.call_timeout, extras.call_timeout) {
        (Some(key), Some(time)) => entry.put(key, duration_millis(time)),
        (_, time) => entry.leave_out_if(time.is_some(), "call_timeout"),
    }
    match (rules.tools, &extras.tools) {
        (Some(key), Some(tools)) => entry.put(key, tools.clone()),
        (_, tools) => entry.leave_out_if(tools.is_some(), "tools"),
    }
    entry.leave_out_if(extras.connect_timeout.is_some(), "connect_timeout");
    Ok(entry)
}

fn programs_only(title: &str) -> LocalizedText {
    LocalizedText::new(
        format!("{title} takes only programs from its file: add the address in its settings"),
        format!("{title} 的配置文件只接受本地程序：请在其设置中添加该地址"),
    )
}

fn write_program(
    entry: &mut EntryBuilder,
    spec: &StdioSpec,
    rules: &WriteRules,
) -> Result<(), LocalizedText> {
    let missing = |field: &str| needs_variables(rules.title, field);
    if rules.writes_type {
        entry.put("type", "stdio");
    }
    let command = entry.value(&spec.command, rules.variable_syntax).ok_or_else(|| missing("command"))?;
    entry.put("command", command);
    let mut args = Vec::new();
    for arg in &spec.args {
        args.push(entry.value(arg, rules.variable_syntax).ok_or_else(|| missing("args"))?);
    }
    entry.put_list("args", &args);
    let mut env = entry.values("env", &spec.env, rules.variable_syntax);
    for name in &spec.env_pass {
        match rules.variable_syntax {
            _ if spec.env.iter().any(|(known, _)| known == name) => {}
            // Empty if the variable is not set.
            VariableSyntax::Toolhub | VariableSyntax::Shell => {
                env.push((name.clone(), format!("${{{name}:-}}")));
            }
            VariableSyntax::Editor => env.push((name.clone(), format!("${{env:{name}}}"))),
            VariableSyntax::Unsupported => entry.leave_out(format!("env_pass.{name}")),
        }
    }
    entry.put_pairs("env", env);
    if let Some(folder) = &spec.cwd {
        if rules.cwd {
            let folder = entry
                .value(&folder.to_string_lossy(), rules.variable_syntax)
                .ok_or_else(|| missing("cwd"))?;
            entry.put("cwd", folder);
        } else {
            entry.leave_out("cwd");
        }
    }
    Ok(())
}

fn write_address(entry: &mut EntryBuilder, spec: &HttpSpec, rules: &WriteRules) -> Result<(), LocalizedText> {
    let url =
        entry.value(&spec.url, rules.variable_syntax).ok_or_else(|| needs_variables(rules.title, "url"))?;
    entry.put("url", url);
    let headers = entry.values("headers", &spec.headers, rules.variable_syntax);
    entry.put_pairs("headers", headers);
    Ok(())
}
