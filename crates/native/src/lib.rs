//! The built-in tools of toolhub, and the host that runs native tools. `toolhub-core` defines the trait of a native
//! tool.

mod blocking;
mod calculator;
mod call_tool;
mod clock;
mod files;
mod host;
mod localized_output;
mod memory;
mod suggest;
mod tagged;
mod tool_search;
mod web;

use std::sync::Arc;

use toolhub_core::NativeTool;

use tagged::tagged;

pub use calculator::calculate;
pub use call_tool::CallRunner;
pub use clock::{TimeAnswer, TimeRequest, get_time, time_at};
pub use files::{Folders, list_files, read_file};
pub use host::NativeHost;
pub use localized_output::block as localized_block;
pub use memory::{HistoryKind, Memory, get_conversation_history, read_result};
pub use tool_search::{Finder, describe_tool, search_tools};
pub use web::{Freshness, SearchConfig, SearchProvider, WebSearch, search_web};

/// The dependencies of the built-in tools.
#[derive(Debug)]
pub struct BuiltinDeps {
    /// The folders that the file tools may read.
    pub folders: Folders,
    /// The web search service.
    pub web: WebSearch,
    /// The store of conversations and results.
    pub memory: Memory,
    /// Finds tools.
    pub finder: Finder,
    /// Runs calls.
    pub call_runner: CallRunner,
}

/// All built-in tools.
pub fn builtin(deps: BuiltinDeps) -> Vec<Arc<dyn NativeTool>> {
    let (folders, memory) = (Arc::new(deps.folders), Arc::new(deps.memory));
    let finder = Arc::new(deps.finder);
    let web = Arc::new(deps.web);
    // Without a service, `search_web` only explains the setup; the tag keeps it from being selected by capability
    // instead of a tool that can search.
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
    tools.extend(call_tool::CallTool::new(deps.call_runner).map(|tool| tagged(tool, &["tools"])));
    tools
}

/// The re-exports that the expansion of `#[tool]` needs within this crate.
mod private {
    pub(crate) use ::{schemars, serde, serde_json, toolhub_core as core};
}
