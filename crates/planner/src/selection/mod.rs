//! Selects tools: candidates of the search, the verb and the object of a clause, and how well a tool fits both.

pub(crate) mod candidates;
pub(crate) mod choice_check;
pub(crate) mod choose;
pub(crate) mod deed;
pub(crate) mod foreign;
pub(crate) mod probe;
pub(crate) mod skeleton;
pub(crate) mod verb_class;
pub(crate) mod verb_place;
