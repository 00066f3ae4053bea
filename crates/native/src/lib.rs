//! The tools that are built into toolhub, and the host that runs native tools. What a native tool is stands in
//! `toolhub-core`.

mod blocking;
mod calculator;
mod calling;
mod clock;
mod files;
mod finding;
mod host;
mod in_chinese;
mod memory;
mod suggest;
mod tagged;
mod web;

use std::sync::Arc;

use toolhub_core::NativeTool;

use tagged::tagged;

pub use calculator::calculate;
pub use calling::Caller;
pub use clock::{TimeAnswer, TimeRequest, get_time, time_at};
pub use files::{Folders, list_files, read_file};
pub use finding::{Finder, describe_tool, search_tools};
pub use host::NativeHost;
pub use memory::{HistoryKind, Memory, get_conversation_history, read_result};
pub use web::{Freshness, SearchChoice, SearchProvider, WebSearch, search_web};

/// What the built-in tools may use.
#[derive(Debug)]
pub struct Rooms {
    /// What the file tools see; nothing else.
    pub folders: Folders,
    /// Who searches the web.
    pub web: WebSearch,
    /// What can be looked back at.
    pub memory: Memory,
    /// Who finds tools.
    pub finder: Finder,
    /// Who runs calls.
    pub caller: Caller,
}

/// All built-in tools.
pub fn builtin(rooms: Rooms) -> Vec<Arc<dyn NativeTool>> {
    let (folders, memory) = (Arc::new(rooms.folders), Arc::new(rooms.memory));
    let finder = Arc::new(rooms.finder);
    let web = Arc::new(rooms.web);
    // Without a service it can only say how to get one: by name, not in the place of somebody who can search.
    let search: Arc<dyn NativeTool> = match web.is_set_up() {
        true => Arc::new(search_web(web)),
        false => tagged(search_web(web), &["setup"]),
    };
    let mut tools: Vec<Arc<dyn NativeTool>> = vec![
        Arc::new(calculate),
        Arc::new(get_time),
        Arc::new(list_files(Arc::clone(&folders))),
        Arc::new(read_file(folders)),
        search,
        Arc::new(get_conversation_history(Arc::clone(&memory))),
        tagged(read_result(memory), &["memory"]),
        tagged(search_tools(Arc::clone(&finder)), &["tools"]),
        tagged(describe_tool(finder), &["tools"]),
    ];
    tools.extend(calling::CallTool::new(rooms.caller).map(|tool| tagged(tool, &["tools"])));
    tools
}

/// What the expansion of `#[tool]` needs, for the tools of this crate.
mod private {
    pub(crate) use ::{schemars, serde, serde_json, toolhub_core as core};
}
