//! Listing a server's tools: pages with caps, and salvage: one bad tool costs that tool alone, and is named.

use std::collections::HashSet;
use std::time::Duration;

use serde::Deserialize;
use toolhub_core::{RawJson, RawObject, ToolDefinition};

use crate::connection::{Ask, Connection};
use crate::era::Era;
use crate::error::McpError;
use crate::headers;

const MAX_PAGES: usize = 100;
const MAX_TOOLS: usize = 20_000;

/// What a server offers.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The usable definitions, as they were given.
    pub tools: Vec<RawJson>,
    /// Those that cannot be used, each with the reason.
    pub skipped: Vec<String>,
    /// How long the server says the list keeps.
    pub ttl: Option<Duration>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    tools: Vec<RawJson>,
    #[serde(default)]
    next_cursor: Option<String>,
    #[serde(default)]
    ttl_ms: Option<u64>,
}

/// Lists all tools. The caller sets the deadline.
pub(crate) async fn list(connection: &Connection) -> Result<Listing, McpError> {
    let mut salvage = Salvage { over_http: connection.greeting.era == Era::Modern, ..Salvage::default() };
    let mut cursor: Option<String> = None;
    let mut cursors = HashSet::new();
    for _ in 0..MAX_PAGES {
        let mut params = RawObject::default();
        if let Some(cursor) = &cursor {
            params.set("cursor", cursor.as_str());
        }
        let result = connection.ask(Ask { method: "tools/list", params, ..Ask::default() }).await?;
        let page: Page = result
            .decode()
            .map_err(|error| McpError::unreadable(format!("`tools/list` was answered oddly: {error}")))?;
        salvage.listing.ttl = page.ttl_ms.map(Duration::from_millis).or(salvage.listing.ttl);
        for definition in page.tools {
            if salvage.listing.tools.len() >= MAX_TOOLS {
                salvage.listing.skipped.push(format!("all after the first {MAX_TOOLS}"));
                return Ok(salvage.listing);
            }
            salvage.take(definition);
        }
        match page.next_cursor {
            // A cursor seen before would go round for ever.
            Some(next) if cursors.insert(next.clone()) => cursor = Some(next),
            Some(_) => {
                salvage.listing.skipped.push("the pages after a cursor that came twice".to_owned());
                return Ok(salvage.listing);
            }
            None => return Ok(salvage.listing),
        }
    }
    salvage.listing.skipped.push(format!("the pages after the first {MAX_PAGES}"));
    Ok(salvage.listing)
}

#[derive(Default)]
struct Salvage {
    listing: Listing,
    names: HashSet<String>,
    over_http: bool,
}

impl Salvage {
    fn take(&mut self, raw: RawJson) {
        let name = raw.object().and_then(|members| members.get("name")?.decode::<String>().ok());
        let label = name.map_or_else(|| "a tool without a name".to_owned(), |name| format!("`{name}`"));
        let definition = match ToolDefinition::parse(raw) {
            Ok(definition) => definition,
            Err(error) => return self.skip(&label, &error.to_string()),
        };
        if self.over_http
            && let Err(error) = headers::mirrored(definition.input_schema())
        {
            return self.skip(&label, &error);
        }
        if !self.names.insert(definition.name().as_str().to_owned()) {
            return self.skip(&label, "a second tool of that name");
        }
        self.listing.tools.push(definition.raw().clone());
    }

    fn skip(&mut self, label: &str, why: &str) {
        self.listing.skipped.push(format!("{label}: {why}"));
    }
}
