//! The actions and objects of a tool, by the words of its name, its description and its parameters.

use toolhub_core::Tool;

use crate::lexer::lexicon::{self, Meaning, WordMatch};
use crate::lexer::token::tokenize;
use crate::selection::table_rows::{READ_ONLY_VERBS, add, is_any_verb, only_changes};
use crate::selection::verb_position::{NOUN_LEADS, is_name_verb};
use crate::values::parameter::{Parameter, name_words};
use crate::values::role::Role;

/// The actions and objects of a tool, from its words.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    /// Actions in the tool's name.
    pub(super) verbs: Vec<usize>,
    /// Actions in the tool's name or in the first sentence of its description.
    pub(super) all_verbs: Vec<usize>,
    pub(super) things: Vec<usize>,
    /// Objects in the name, the description and the parameters.
    pub(super) all_things: Vec<usize>,
    /// Whether the name denotes a change.
    pub(crate) changes: bool,
    /// Whether the name denotes a deletion.
    pub(crate) destroys: bool,
    pub(crate) searches: bool,
    /// Whether the tool searches with filters that are all optional.
    pub(super) filters: bool,
    /// Whether the tool searches for tools.
    pub(super) finds_tools: bool,
    /// Groups of objects, each the possible meanings of one word of the name.
    pub(super) siblings: Vec<Vec<usize>>,
    /// Whether the tool is read-only, by its hint or by its name.
    pub(crate) is_read_only: bool,
    /// Whether the tool reads files as text, which excludes workbooks and pictures.
    pub(crate) reads_text: bool,
    /// Whether the tool edits files as text.
    pub(super) edits_text: bool,
}

/// The words of a text that are in the tables.
fn table_words(text: &str) -> Vec<WordMatch> {
    lexicon::word_matches(text, &tokenize(text), &|_| false)
}

impl Profile {
    pub(crate) fn of(tool: &Tool, parameters: &[Parameter]) -> Self {
        let mut profile = Self::default();
        profile.add_name(tool.name().as_str());
        let description = tool.definition.description();
        profile.add_actions_of_description(description);
        profile.add_objects(description);
        for parameter in parameters.iter().flat_map(Parameter::with_members) {
            profile.add_objects(&parameter.words.join(" "));
            profile.add_objects(&parameter.description);
        }
        profile.classify(tool, parameters);
        profile
    }

    /// Adds the actions and objects in the name of the tool.
    fn add_name(&mut self, tool_name: &str) {
        // `sports.get_ranking`: the part before a dot is a namespace.
        let parts: Vec<String> = tool_name.split(['.', '/']).map(|part| name_words(part).join(" ")).collect();
        let name = parts.join(" . ");
        for WordMatch { start, meaning, .. } in table_words(&name) {
            if is_name_verb(&name, start) {
                add(&mut self.verbs, &meaning.verbs);
            }
            // An object that is only implied by a changing verb such as `merge` does not count as named.
            let is_lookup = |verb: &usize| READ_ONLY_VERBS.contains(&lexicon::verb(*verb).name);
            let objects = match meaning.verbs.iter().all(is_lookup) {
                true => &mut self.things,
                false => &mut self.all_things,
            };
            add(objects, &meaning.things);
            if meaning.things.len() > 1 {
                self.siblings.push(meaning.things);
            }
        }
        self.all_verbs.clone_from(&self.verbs);
        add(&mut self.all_things, &self.things);
    }

    /// Adds the actions in the first sentence of the description.
    fn add_actions_of_description(&mut self, description: &str) {
        let head =
            description.split(['.', '\n', '。']).find(|part| !part.trim().is_empty()).unwrap_or_default();
        for word_match in table_words(head) {
            // `is properly formatted` describes a state, and `by name` a means.
            let before =
                head[..word_match.start].trim_end().rsplit(' ').next().unwrap_or_default().to_lowercase();
            let noun = NOUN_LEADS.contains(&before.as_str());
            if !head[word_match.start..word_match.end].ends_with("ed") && !noun {
                add(&mut self.all_verbs, &word_match.meaning.verbs);
            }
        }
    }

    fn add_objects(&mut self, text: &str) {
        for word_match in table_words(text) {
            add(&mut self.all_things, &word_match.meaning.things);
        }
    }

    /// Determines from the actions, objects and hints what kind of tool it is.
    fn classify(&mut self, tool: &Tool, parameters: &[Parameter]) {
        let has = |names: &[&str]| is_any_verb(&self.verbs, names);
        let read_only = tool.hints().read_only;
        self.changes = match read_only {
            Some(true) => false,
            Some(false) => !has(&READ_ONLY_VERBS),
            None => only_changes(&self.verbs),
        };
        self.is_read_only = match read_only {
            Some(read_only) => read_only,
            None => !self.changes && !self.verbs.is_empty(),
        };
        self.destroys = has(&["delete"]);
        let description = tool.definition.description();
        self.reads_text = has(&["read"])
            && ["text file", "as text", "文本文件"].iter().any(|words| description.contains(words));
        self.edits_text = has(&["edit", "replace"]) && description.contains("text file");
        let of_tools = |row: &usize| lexicon::thing(*row).name == "tool";
        self.finds_tools = has(&["search"]) && self.things.iter().any(of_tools);
        self.searches = has(&["search"]) && parameters.iter().any(|parameter| parameter.role == Role::Query);
        self.filters = self.searches && parameters.iter().all(|parameter| !parameter.required);
    }

    /// Whether the tool's own words contain a meaning of a word in the request.
    pub(crate) fn knows(&self, meaning: &Meaning) -> bool {
        meaning.verbs.iter().any(|verb| self.all_verbs.contains(verb))
            || meaning.things.iter().any(|thing| self.all_things.contains(thing))
    }
}
