//! Rewrites a request into plain imperatives: idioms, passives, wishes, remarks, reasons and references to earlier requests.

pub(crate) mod again;
pub(crate) mod aside;
pub(crate) mod ask_turn;
pub(crate) mod casual;
pub(crate) mod cell_turn;
pub(crate) mod context;
pub(crate) mod follow_up;
pub(crate) mod graph_turn;
pub(crate) mod lookup_turn;
pub(crate) mod message_turn;
pub(crate) mod passive_turn;
pub(crate) mod pretext;
pub(crate) mod remark;
pub(crate) mod rephrase;
pub(crate) mod spelling;
pub(crate) mod statement;
pub(crate) mod statement_words;
pub(crate) mod turn;
pub(crate) mod verbless;
pub(crate) mod wish_turn;
