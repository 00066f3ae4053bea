//! The functions of the host that `prelude.js` uses. None of them keeps a value of the engine.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use rquickjs::{Ctx, Function, IntoJs as _, Object, Result, Value};
use toolhub_core::suggest::{MAX_SUGGESTIONS, similar_names};
use toolhub_script::protocol::{HostError, HostErrorKind, LogLevel};

use crate::state::{ScriptRefusal, ScriptState};
use crate::{hints, position};

/// Names listed if none is similar.
const MAX_LISTED_NAMES: usize = 20;

/// What the functions of the host share.
#[derive(Clone, Debug)]
pub(crate) struct HostState {
    pub(crate) state: Rc<RefCell<ScriptState>>,
    /// Lines before the script in its source text.
    pub(crate) skipped_lines: Rc<Cell<u32>>,
    pub(crate) memory: MemoryFailures,
}

/// What shows that the engine has run out of memory. It throws `null` if the error itself does not fit, and loses promises
/// whose continuation does not fit, with an exception that it leaves behind.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryFailures {
    /// Whether the script itself throws `null`.
    throws_null: Rc<Cell<bool>>,
    /// Whether the engine has left such an exception behind.
    is_lost: Rc<Cell<bool>>,
}

impl MemoryFailures {
    /// Begins with a script.
    pub(crate) fn begin(&self, code: &str) {
        self.throws_null.set(hints::throws_null(code));
    }

    /// Whether the engine threw this value for a lack of memory.
    pub(crate) fn explains(&self, thrown: &Value<'_>) -> bool {
        let message = thrown.as_exception().and_then(rquickjs::Exception::message);
        message.is_some_and(|message| message == "out of memory") || self.explains_null(thrown.is_null())
    }

    fn explains_null(&self, is_null: bool) -> bool {
        is_null && !self.throws_null.get()
    }

    /// Takes an exception that the engine has left behind. Returns whether one was about memory, now or before.
    pub(crate) fn check(&self, ctx: &Ctx<'_>) -> bool {
        if ctx.has_exception() && self.explains(&ctx.catch()) {
            self.is_lost.set(true);
        }
        self.is_lost.get()
    }
}

/// Makes the object of all functions.
pub(crate) fn host_object<'js>(ctx: &Ctx<'js>, shared: &HostState) -> Result<Object<'js>> {
    let host = Object::new(ctx.clone())?;
    add_values(ctx, &host, shared)?;
    add_requests(ctx, &host, shared)?;
    add_ends(ctx, &host, shared)?;
    Ok(host)
}

fn add_values<'js>(ctx: &Ctx<'js>, host: &Object<'js>, shared: &HostState) -> Result<()> {
    let state = Rc::clone(&shared.state);
    host.set("now", Function::new(ctx.clone(), move || state.borrow().clock as f64)?)?;
    let state = Rc::clone(&shared.state);
    host.set("random", Function::new(ctx.clone(), move || state.borrow_mut().random())?)?;
    let state = Rc::clone(&shared.state);
    let unknown = move |path: String, key: String| {
        state.borrow_mut().note_unknown_tool(&key);
        unknown_tool(&state.borrow(), &path, &key)
    };
    host.set("unknown", Function::new(ctx.clone(), unknown)?)
}

fn add_requests<'js>(ctx: &Ctx<'js>, host: &Object<'js>, shared: &HostState) -> Result<()> {
    let state = Rc::clone(&shared.state);
    let call = move |ctx: Ctx<'js>, tool: String, arguments: String| {
        number_or_refusal(&ctx, state.borrow_mut().call(&tool, arguments))
    };
    host.set("call", Function::new(ctx.clone(), call)?)?;
    let state = Rc::clone(&shared.state);
    let sleep = move |ctx: Ctx<'js>, ms: f64| number_or_refusal(&ctx, state.borrow_mut().sleep(ms));
    host.set("sleep", Function::new(ctx.clone(), sleep)?)?;
    let state = Rc::clone(&shared.state);
    let log = move |level: String, text: String| {
        let level = match level.as_str() {
            "info" => LogLevel::Info,
            "warn" => LogLevel::Warn,
            "error" => LogLevel::Error,
            _ => LogLevel::Log,
        };
        state.borrow_mut().log(level, text);
    };
    host.set("log", Function::new(ctx.clone(), log)?)
}

fn add_ends<'js>(ctx: &Ctx<'js>, host: &Object<'js>, shared: &HostState) -> Result<()> {
    let (state, memory) = (Rc::clone(&shared.state), shared.memory.clone());
    let finish = move |json: String| {
        // The value may be what was lost.
        if json == "null" && memory.is_lost.get() {
            state.borrow_mut().fail(HostError { kind: HostErrorKind::Memory, ..HostError::default() });
        } else {
            state.borrow_mut().finish(json);
        }
    };
    host.set("finish", Function::new(ctx.clone(), finish)?)?;
    let (state, memory) = (Rc::clone(&shared.state), shared.memory.clone());
    let unwritable = move |message: String, is_null: bool| {
        let is_memory = memory.explains_null(is_null) || message == "out of memory";
        let kind = if is_memory { HostErrorKind::Memory } else { HostErrorKind::Result };
        state.borrow_mut().fail(HostError { kind, message, ..HostError::default() });
    };
    host.set("unwritable", Function::new(ctx.clone(), unwritable)?)?;
    let shared = shared.clone();
    let fail = move |error: Object<'js>| -> Result<()> {
        let mut failure = thrown(&error, shared.skipped_lines.get())?;
        if shared.memory.explains_null(error.get("isNull")?) {
            failure.kind = HostErrorKind::Memory;
        }
        shared.state.borrow_mut().fail(failure);
        Ok(())
    };
    host.set("fail", Function::new(ctx.clone(), fail)?)
}

/// The number of a call or a sleep, or an object that says why there is none.
fn number_or_refusal<'js>(
    ctx: &Ctx<'js>,
    number: std::result::Result<u32, ScriptRefusal>,
) -> Result<Value<'js>> {
    match number {
        Ok(number) => number.into_js(ctx),
        Err(ScriptRefusal { kind, message, hint }) => {
            let refusal = Object::new(ctx.clone())?;
            refusal.set("kind", kind)?;
            refusal.set("message", message)?;
            refusal.set("hint", hint)?;
            Ok(refusal.into_value())
        }
    }
}

/// An error that the script did not catch.
fn thrown(error: &Object<'_>, skipped_lines: u32) -> Result<HostError> {
    let text = |key: &str| error.get::<_, Option<String>>(key);
    let (name, message) = (text("name")?.unwrap_or_default(), text("message")?.unwrap_or_default());
    let (line, column) = position::of_stack(&text("stack")?.unwrap_or_default(), skipped_lines).unzip();
    let is_out_of_memory = name == "InternalError" && message == "out of memory";
    let kind = if is_out_of_memory { HostErrorKind::Memory } else { HostErrorKind::Thrown };
    let missing =
        hints::missing_name(&message).and_then(hints::for_missing).filter(|_| name == "ReferenceError");
    let hint = text("hint")?.or_else(|| missing.map(str::to_owned));
    Ok(HostError { kind, name, message, line, column, hint, tool: text("tool")?, call_kind: text("kind")? })
}

/// The message about a member of `tools` that does not exist.
fn unknown_tool(state: &ScriptState, path: &str, key: &str) -> String {
    let mut names: Vec<&str> = match path.strip_prefix("tools.") {
        None => {
            let members = state.tools.iter().filter_map(|tool| tool.member.as_ref());
            let servers = members.map(|(server, _)| server.as_str());
            servers.chain(state.tools.iter().map(|tool| tool.name.as_str())).collect()
        }
        Some(server) => {
            let members = state.tools.iter().filter_map(|tool| tool.member.as_ref());
            members.filter(|(of, _)| of == server).map(|(_, tool)| tool.as_str()).collect()
        }
    };
    names.sort_unstable();
    names.dedup();
    let near = similar_names(key, names.iter().copied(), MAX_SUGGESTIONS);
    let listed =
        |names: &[String]| names.iter().map(|name| access(path, name)).collect::<Vec<_>>().join(", ");
    let what = access(path, key);
    // A tool of another server may have this name.
    let elsewhere: Vec<String> = state
        .tools
        .iter()
        .filter_map(|tool| tool.member.as_ref())
        .filter(|(_, tool)| tool == key)
        .take(MAX_SUGGESTIONS)
        .map(|(server, tool)| access(&format!("tools.{server}"), tool))
        .collect();
    if !elsewhere.is_empty() {
        return format!("{what} does not exist; did you mean {}?", elsewhere.join(", "));
    }
    if !near.is_empty() {
        return format!("{what} does not exist; did you mean {}?", listed(&near));
    }
    if names.is_empty() {
        return format!("{what} does not exist; this script has no tools");
    }
    let count = names.len();
    let first: Vec<String> = names.iter().take(MAX_LISTED_NAMES).map(|name| (*name).to_owned()).collect();
    let more = if count > MAX_LISTED_NAMES {
        format!(" and {} more", count - MAX_LISTED_NAMES)
    } else {
        String::new()
    };
    format!("{what} does not exist; there are {}{more}", listed(&first))
}

/// How a script writes the access to a member.
fn access(path: &str, key: &str) -> String {
    if toolhub_script::signature::is_identifier(key) {
        format!("`{path}.{key}`")
    } else {
        format!("`{path}[{}]`", serde_json::Value::from(key))
    }
}
