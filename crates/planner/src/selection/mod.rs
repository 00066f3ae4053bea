//! Selects tools: candidates of the search, the verb and the object of a clause, and how well a tool fits both.

pub(crate) mod candidates;
pub(crate) mod choice;
pub(crate) mod choice_check;
pub(crate) mod choose;
pub(crate) mod clause_intent;
pub(crate) mod generalize;
pub(crate) mod implied_need;
pub(crate) mod intent;
pub(crate) mod intent_match;
pub(crate) mod preferences;
mod table_rows;
pub(crate) mod tool_profile;
pub(crate) mod unsupported;
pub(crate) mod verb_class;
pub(crate) mod verb_position;
pub(crate) mod word_usage;
