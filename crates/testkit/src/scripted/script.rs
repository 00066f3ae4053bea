//! Builds the script of a scripted server.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// A script under construction. A [`RawValue`] is sent verbatim.
#[derive(Debug, Clone, Default)]
pub struct Script {
    fields: BTreeMap<String, Box<RawValue>>,
    tools: Vec<Box<RawValue>>,
    on: BTreeMap<String, Box<RawValue>>,
}

impl Script {
    /// A server of the revisions with `initialize`.
    #[must_use]
    pub fn legacy() -> Self {
        Self::default().set("era", "legacy")
    }

    /// A server of 2026-07-28 only.
    #[must_use]
    pub fn modern() -> Self {
        Self::default().set("era", "modern")
    }

    /// A server of both eras.
    #[must_use]
    pub fn both() -> Self {
        Self::default().set("era", "both")
    }

    /// Sets a field of the script, such as `page_size`.
    #[must_use]
    pub fn set(mut self, field: &str, value: impl Serialize) -> Self {
        self.fields.insert(field.to_owned(), raw(&value));
        self
    }

    /// Adds a tool definition.
    #[must_use]
    pub fn tool(mut self, definition: impl Serialize) -> Self {
        self.tools.push(raw(&definition));
        self
    }

    /// Adds a tool definition as text: key order, digits of numbers and vendor fields are kept.
    #[must_use]
    pub fn tool_text(mut self, definition: &str) -> Self {
        self.tools.push(RawValue::from_string(definition.to_owned()).expect("a tool definition is JSON"));
        self
    }

    /// Adds a tool that accepts any object.
    #[must_use]
    pub fn plain_tool(self, name: &str) -> Self {
        self.tool(serde_json::json!({"name": name, "description": name, "inputSchema": {"type": "object"}}))
    }

    /// Sets the actions for a method, or for `tools/call:<tool>`: a list of actions, or a list of lists.
    #[must_use]
    pub fn on(mut self, key: &str, actions: impl Serialize) -> Self {
        self.on.insert(key.to_owned(), raw(&actions));
        self
    }

    /// Records received messages in this file.
    #[must_use]
    pub fn journal(self, path: impl AsRef<Path>) -> Self {
        self.set("journal", path.as_ref())
    }

    /// The script as JSON text, which the server also accepts in place of a file.
    #[must_use]
    pub fn json(&self) -> String {
        let mut fields = self.fields.clone();
        fields.insert("tools".to_owned(), raw(&self.tools));
        fields.insert("on".to_owned(), raw(&self.on));
        serde_json::to_string(&fields).expect("a script serializes")
    }

    /// Writes the script to a new file in `folder`.
    #[must_use]
    pub fn write(&self, folder: impl AsRef<Path>) -> PathBuf {
        static WRITTEN: AtomicU64 = AtomicU64::new(0);
        let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let path = folder.as_ref().join(format!("script-{}-{number}.json", std::process::id()));
        fs::write(&path, self.json()).expect("the script's folder is writable");
        path
    }
}

fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).expect("a script is JSON")
}
