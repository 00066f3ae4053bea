//! toolhub's own `mcp.json` as the target of an import.

use crate::entry::ClientServer;
use crate::entry_builder::{EntryBuilder, WriteResult};
use crate::format::Format;
use crate::syntax::Syntax;
use crate::transport::TransportSpec;

/// The format of toolhub's own `mcp.json`.
pub const TOOLHUB_FORMAT: Format =
    Format { disables: true, syntax: Syntax::Json, path: &["mcpServers"], write };

/// Settings that belong into `[[servers]]` are not written here.
fn write(server: &ClientServer) -> WriteResult {
    let mut entry = EntryBuilder::default();
    match &server.transport {
        TransportSpec::Stdio(spec) => {
            entry.put("command", spec.command.as_str());
            entry.put_list("args", &spec.args);
            entry.put_pairs("env", spec.env.clone());
            if let Some(folder) = &spec.cwd {
                entry.put("cwd", folder.to_string_lossy().into_owned());
            }
        }
        TransportSpec::Http(spec) | TransportSpec::Sse(spec) => {
            entry.put("type", server.transport.name());
            entry.put("url", spec.url.as_str());
            entry.put_pairs("headers", spec.headers.clone());
        }
    }
    if !server.enabled {
        entry.put("disabled", true);
    }
    Ok(entry)
}
