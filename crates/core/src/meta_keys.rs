//! The keys of the members that the hub adds to `_meta` of definitions and results.

/// The prefix of all these keys. Only the hub uses it: such members are removed from results of servers.
pub const PREFIX: &str = "toolhub/";
/// Of a definition: a short description, for lists that name the skills separately.
pub const BRIEF: &str = "toolhub/brief";
/// Of a text block: the Chinese translation of its text. Users are shown it; models get the English text.
pub const CHINESE: &str = "toolhub/zh";
/// Of a list: the servers whose part of it is missing.
pub const INCOMPLETE: &str = "toolhub/incomplete";
/// Of the output of a script: its log and its calls.
pub const SCRIPT: &str = "toolhub/script";
/// Of a definition: the skill that it belongs to.
pub const SKILL: &str = "toolhub/skill";
/// Of the definition of `use_skill`: the skills, for prompts.
pub const SKILLS: &str = "toolhub/skills";
/// Of a content block of merged results: the source that it comes from.
pub const SOURCE: &str = "toolhub/source";
/// Of a definition: the capability tags of the tool.
pub const TAGS: &str = "toolhub/tags";
/// Of a stored output: its size, if only its beginning is stored.
pub const TRUNCATED: &str = "toolhub/truncated";
