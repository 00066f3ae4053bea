//! Builds the entry of a server in the file of a client.

use serde_json::{Map, Value};
use toolhub_core::lang::LocalizedText;

use crate::reading::VariableSyntax;
use crate::variables::{Variable, has_variables, is_variable_name, map_bare, map_braced};

/// An entry, or the reason why the client does not support this server.
pub(crate) type WriteResult = Result<EntryBuilder, LocalizedText>;

/// An entry under construction.
#[derive(Debug, Default)]
pub(crate) struct EntryBuilder {
    pub(crate) members: Map<String, Value>,
    pub(crate) left_out: Vec<String>,
    pub(crate) notes: Vec<LocalizedText>,
}

impl EntryBuilder {
    pub(crate) fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.members.insert(key.to_owned(), value.into());
    }

    /// Adds a list unless it is empty.
    pub(crate) fn put_list(&mut self, key: &str, string_list: &[String]) {
        if !string_list.is_empty() {
            self.put(key, string_list.to_vec());
        }
    }

    /// Adds name-value pairs unless they are empty.
    pub(crate) fn put_pairs(&mut self, key: &str, pairs: Vec<(String, String)>) {
        if !pairs.is_empty() {
            let pairs: Map<String, Value> =
                pairs.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
            self.put(key, pairs);
        }
    }

    pub(crate) fn leave_out(&mut self, field: impl Into<String>) {
        let field = field.into();
        if !self.left_out.contains(&field) {
            self.left_out.push(field);
        }
    }

    /// Records a field as left out if it is set.
    pub(crate) fn leave_out_if(&mut self, is_set: bool, field: &str) {
        if is_set {
            self.leave_out(field);
        }
    }

    /// A value in the client's variable syntax; `None` if the client cannot express its variables.
    pub(crate) fn value(&mut self, text: &str, variable_syntax: VariableSyntax) -> Option<String> {
        match variable_syntax {
            VariableSyntax::Toolhub => Some(text.to_owned()),
            VariableSyntax::Shell => {
                map_bare(text, &mut |name| {
                    if is_variable_name(name) {
                        self.note_bare(name);
                    }
                    None
                });
                Some(text.to_owned())
            }
            VariableSyntax::Unsupported => (!has_variables(text)).then(|| text.to_owned()),
            VariableSyntax::Editor => Some(map_braced(text, &mut |inner| {
                let Variable { name, default } = Variable::inner(inner)?;
                if default.is_some() {
                    self.leave_out(default_of(name));
                }
                Some(format!("${{env:{name}}}"))
            })),
        }
    }

    /// Adds a note that `$NAME` is literal text here, but a variable for the client.
    fn note_bare(&mut self, name: &str) {
        let note = LocalizedText::new(
            format!("`${name}` is text here, and a variable there"),
            format!("`${name}` 在此是普通文本，在那边是变量"),
        );
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    pub(crate) fn values(
        &mut self,
        field: &str,
        pairs: &[(String, String)],
        variable_syntax: VariableSyntax,
    ) -> Vec<(String, String)> {
        let mut values = Vec::new();
        for (name, value) in pairs {
            match self.value(value, variable_syntax) {
                Some(value) => values.push((name.clone(), value)),
                None => self.leave_out(format!("{field}.{name}")),
            }
        }
        values
    }
}

/// How an unsupported default value is reported: by name, without the value, which may be a secret.
pub(crate) fn default_of(name: &str) -> String {
    format!("${{{name}:-…}}")
}
