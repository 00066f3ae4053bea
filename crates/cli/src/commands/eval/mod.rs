//! `toolhub eval`: measures search and planning on files of requests.

pub(crate) mod files;
pub(crate) mod index_search;
pub(crate) mod model;
pub(crate) mod plan;
pub(crate) mod search;
