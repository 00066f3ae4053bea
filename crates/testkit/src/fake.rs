//! Fake tool hosts, for tests of the engine without processes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use toolhub_core::{
    BoxFuture, CallContext, Event, EventKind, EventSink, Lang, Localize as _, RawJson, ServerId, Source,
    Tool, ToolDefinition, ToolError, ToolHost, ToolOutput,
};

/// An action of a fake tool.
#[derive(Debug, Clone)]
pub enum Act {
    /// Waits.
    Wait(Duration),
    /// Reports progress.
    Progress,
    /// Returns a text.
    Reply(&'static str),
    /// Returns a tool error (`isError`).
    OwnError(&'static str),
    /// Fails.
    Fail(ToolError),
    /// Never returns.
    Hang,
    /// Panics.
    Panic,
    /// Fails before the request is sent, after that time.
    NeverSent(Duration),
}

/// A host whose tools follow a list of actions.
#[derive(Debug)]
pub struct FakeHost {
    source: Source,
    tools: Vec<Tool>,
    acts: HashMap<String, Vec<Act>>,
    calls: AtomicUsize,
    dropped: Arc<AtomicUsize>,
}

impl FakeHost {
    /// A host of native tools.
    pub fn native() -> Self {
        Self::of(Source::Native)
    }

    /// A host of a server's tools.
    pub fn server(id: &str) -> Self {
        Self::of(Source::Server(ServerId::new(id)))
    }

    fn of(source: Source) -> Self {
        Self {
            source,
            tools: Vec::new(),
            acts: HashMap::new(),
            calls: AtomicUsize::new(0),
            dropped: Arc::default(),
        }
    }

    /// Adds a tool with the members of `definition` besides its name, and its actions.
    #[must_use]
    pub fn tool(mut self, name: &str, definition: Value, acts: &[Act]) -> Self {
        let mut definition_json = json!({"name": name, "inputSchema": {"type": "object"}});
        if let (Some(definition_json), Value::Object(members)) = (definition_json.as_object_mut(), definition)
        {
            definition_json.extend(members);
        }
        let definition =
            ToolDefinition::parse(RawJson::from(definition_json)).expect("a fake tool's definition is sound");
        self.tools.push(Tool::new(self.source.clone(), definition));
        self.acts.insert(name.to_owned(), acts.to_vec());
        self
    }

    /// Its tools, for the catalog.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The number of calls.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// The number of calls dropped before completion.
    pub fn dropped(&self) -> usize {
        self.dropped.load(Ordering::SeqCst)
    }
}

struct CountDrop(Arc<AtomicUsize>, bool);

impl Drop for CountDrop {
    fn drop(&mut self) {
        if !self.1 {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl ToolHost for FakeHost {
    fn source(&self) -> Source {
        self.source.clone()
    }

    fn call<'a>(
        &'a self,
        tool: &'a Tool,
        _: &'a RawJson,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            self.calls.fetch_add(1, Ordering::SeqCst);
            let mut guard = CountDrop(Arc::clone(&self.dropped), false);
            let acts = self.acts.get(tool.name().as_str()).map(Vec::as_slice).unwrap_or_default();
            let result = play(acts, context).await;
            guard.1 = true;
            result
        })
    }
}

async fn play(acts: &[Act], context: &CallContext) -> Result<ToolOutput, ToolError> {
    if !matches!(acts.first(), Some(Act::NeverSent(_))) {
        context.sending();
    }
    for act in acts {
        match act {
            Act::Wait(time) => tokio::time::sleep(*time).await,
            Act::Progress => context.emit(EventKind::Progress { progress: 1.0, total: None, message: None }),
            Act::Reply(text) => return Ok(ToolOutput::text(*text)),
            Act::OwnError(text) => {
                let raw = json!({"content": [{"type": "text", "text": text}], "isError": true});
                return Ok(ToolOutput::from_raw(RawJson::from(raw)).expect("an object"));
            }
            Act::Fail(error) => return Err(error.clone()),
            Act::Hang => std::future::pending().await,
            Act::Panic => panic!("a fake tool was told to panic"),
            Act::NeverSent(time) => {
                tokio::time::sleep(*time).await;
                return Err(ToolError::failed("never sent"));
            }
        }
    }
    Ok(ToolOutput::text("ok"))
}

/// Records all events.
#[derive(Debug, Default)]
pub struct Recorder(Mutex<Vec<Event>>);

impl Recorder {
    /// The events so far, in English.
    pub fn texts(&self) -> Vec<String> {
        let events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        events.iter().map(|event| event.kind.localize(Lang::En)).collect()
    }
}

impl EventSink for Recorder {
    fn emit(&self, event: Event) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}
