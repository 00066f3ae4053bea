//! The tools that are built into toolhub, and the host that runs native tools. What a native tool is stands in
//! `toolhub-core`.

mod blocking;
mod calculator;
mod clock;
mod files;
mod host;
mod near;
mod web;

use std::sync::Arc;

use toolhub_core::NativeTool;

pub use calculator::calculate;
pub use clock::{TimeAnswer, TimeRequest, get_time, time_at};
pub use files::{Folders, list_files, read_file};
pub use host::NativeHost;
pub use web::{Freshness, SearchChoice, SearchProvider, WebSearch, search_web};

/// All built-in tools; the file tools see `folders` and nothing else, and the web is searched as `web` says.
pub fn builtin(folders: Folders, web: WebSearch) -> Vec<Arc<dyn NativeTool>> {
    let folders = Arc::new(folders);
    vec![
        Arc::new(calculate),
        Arc::new(get_time),
        Arc::new(list_files(Arc::clone(&folders))),
        Arc::new(read_file(folders)),
        Arc::new(search_web(Arc::new(web))),
    ]
}

/// What the expansion of `#[tool]` needs, for the tools of this crate.
mod private {
    pub(crate) use ::{schemars, serde, serde_json, toolhub_core as core};
}
