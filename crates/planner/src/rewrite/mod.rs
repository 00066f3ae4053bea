//! Rewrites a request into plain imperatives: idioms, passives, wishes, remarks, reasons and references to earlier requests.

pub(crate) mod address;
pub(crate) mod cell_rewrite;
pub(crate) mod colloquial;
pub(crate) mod coreference;
pub(crate) mod exclusion;
pub(crate) mod follow_up;
pub(crate) mod graph_rewrite;
pub(crate) mod idiom_rewrite;
pub(crate) mod lookup_rewrite;
pub(crate) mod masked_text;
pub(crate) mod message_rewrite;
pub(crate) mod passive_rewrite;
pub(crate) mod question_rewrite;
pub(crate) mod reason_clause;
pub(crate) mod remark;
pub(crate) mod rephrase;
pub(crate) mod shared_location;
pub(crate) mod spelling;
pub(crate) mod statement;
pub(crate) mod statement_words;
pub(crate) mod verbless;
pub(crate) mod wish_rewrite;
