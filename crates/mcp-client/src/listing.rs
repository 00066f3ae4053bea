//! Lists the tools, resources and prompts of a server page by page, with limits. An invalid tool is skipped and reported; the
//! others are used.

use std::collections::HashSet;
use std::time::Duration;

use toolhub_core::error::METHOD_NOT_FOUND;
use toolhub_core::json::KeyProblem;
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::tool::DefinitionError;
use toolhub_core::{RawJson, RawObject, ToolDefinition};
use toolhub_mcp_wire::{Era, McpError, Offer, headers};

use crate::connection::{Connection, McpRequest};
use crate::transport::Repeat;

const MAX_PAGES: usize = 100;
const MAX_LISTED_ITEMS: usize = 20_000;

/// The tools of a server.
#[derive(Debug, Clone, Default)]
pub struct ToolListing {
    /// The usable definitions, unchanged.
    pub tools: Vec<RawJson>,
    /// The skipped definitions, each with its reason.
    pub skipped: Vec<LocalizedText>,
    /// How long the list may be cached, according to the server.
    pub ttl: Option<Duration>,
}

/// All pages of a list, and a description of what was left out.
#[derive(Default)]
struct Pages {
    items: Vec<RawJson>,
    truncated: Option<LocalizedText>,
    ttl: Option<Duration>,
}

/// Reads a list page by page, within the limits.
async fn pages(connection: &Connection, method: &'static str, key: &str) -> Result<Pages, McpError> {
    let unexpected = |error: String| McpError::unreadable(format!("`{method}` was answered oddly: {error}"));
    let mut collected = Pages::default();
    let mut cursor: Option<String> = None;
    let mut cursors = HashSet::new();
    for _ in 0..MAX_PAGES {
        let mut params = RawObject::default();
        if let Some(cursor) = &cursor {
            params.set("cursor", cursor.as_str());
        }
        let request =
            McpRequest { method: method.into(), params, repeat: Repeat::Safe, ..McpRequest::default() };
        let result = match connection.request(request).await {
            // Items are checked one by one, so that one that is too deep does not affect the others.
            Err(McpError::TooDeep { result, .. }) => result,
            result => result?,
        };
        let page = result.object().ok_or_else(|| unexpected("the result is not an object".to_owned()))?;
        let items = page.get(key).ok_or_else(|| unexpected(format!("missing field `{key}`")))?;
        let items: Vec<RawJson> = items.decode().map_err(|error| unexpected(error.to_string()))?;
        let ttl = page.get("ttlMs").and_then(|ttl| ttl.decode().ok()).map(Duration::from_millis);
        collected.ttl = ttl.or(collected.ttl);
        collected.items.extend(items);
        if collected.items.len() > MAX_LISTED_ITEMS {
            collected.items.truncate(MAX_LISTED_ITEMS);
            collected.truncated = Some(LocalizedText::new(
                format!("all after the first {MAX_LISTED_ITEMS}"),
                format!("前 {MAX_LISTED_ITEMS} 个之后的全部"),
            ));
            return Ok(collected);
        }
        match page.get("nextCursor").and_then(|next| next.decode::<Option<String>>().ok()).flatten() {
            // A repeated cursor would loop forever.
            Some(next) if cursors.insert(next.clone()) => cursor = Some(next),
            Some(_) => {
                collected.truncated = Some(LocalizedText::new(
                    "the pages after a cursor that came twice",
                    "重复出现的游标之后的各页",
                ));
                return Ok(collected);
            }
            None => return Ok(collected),
        }
    }
    collected.truncated = Some(LocalizedText::new(
        format!("the pages after the first {MAX_PAGES}"),
        format!("前 {MAX_PAGES} 页之后的各页"),
    ));
    Ok(collected)
}

/// Lists all tools. The caller applies the timeout.
pub(crate) async fn list(connection: &Connection) -> Result<ToolListing, McpError> {
    let pages = pages(connection, "tools/list", "tools").await?;
    let mut builder =
        ListingBuilder { over_http: connection.server_info.era == Era::Modern, ..ListingBuilder::default() };
    pages.items.into_iter().for_each(|definition| builder.take(definition));
    builder.listing.skipped.extend(pages.truncated);
    Ok(ToolListing { ttl: pages.ttl, ..builder.listing })
}

/// Lists resources, templates or prompts, unchanged. A server that does not support the method has none.
pub(crate) async fn list_offer(connection: &Connection, offer: Offer) -> Result<Vec<RawJson>, McpError> {
    match pages(connection, offer.method(), offer.key()).await {
        Ok(pages) => Ok(pages.items.into_iter().filter(is_unambiguous).collect()),
        Err(McpError::Rpc { code: METHOD_NOT_FOUND, .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Lists the skills of a server, unchanged.
pub(crate) async fn list_skills(connection: &Connection) -> Result<Vec<RawJson>, McpError> {
    Ok(pages(connection, "skills/list", "skills").await?.items.into_iter().filter(is_unambiguous).collect())
}

/// Whether all JSON parsers read the same from an item: a client must not see another name or URI than the one the hub routes
/// by, and must be able to parse it.
fn is_unambiguous(item: &RawJson) -> bool {
    item.too_deep().is_none() && item.key_problem().is_none()
}

#[derive(Default)]
struct ListingBuilder {
    listing: ToolListing,
    names: HashSet<String>,
    over_http: bool,
}

impl ListingBuilder {
    fn take(&mut self, raw: RawJson) {
        let name = raw.object().and_then(|members| members.get("name")?.decode::<String>().ok());
        let label = name.map_or_else(
            || LocalizedText::new("a tool without a name", "没有名称的工具"),
            |name| LocalizedText::from(format!("`{name}`")),
        );
        let definition = match ToolDefinition::parse(raw) {
            Ok(definition) => definition,
            Err(error) => return self.skip(&label, &describe_definition_error(&error)),
        };
        if self.over_http
            && let Err(error) = headers::mirrored(definition.input_schema())
        {
            return self.skip(&label, &error);
        }
        if !self.names.insert(definition.name().as_str().to_owned()) {
            return self.skip(&label, &LocalizedText::new("a second tool of that name", "同名的第二个工具"));
        }
        self.listing.tools.push(definition.raw().clone());
    }

    fn skip(&mut self, label: &LocalizedText, why: &LocalizedText) {
        let both = |lang: Lang| (label.localize(lang), why.localize(lang));
        let ((label, why), (label_zh, why_zh)) = (both(Lang::En), both(Lang::Zh));
        self.listing
            .skipped
            .push(LocalizedText::new(format!("{label}: {why}"), format!("{label_zh}：{why_zh}")));
    }
}

fn describe_definition_error(error: &DefinitionError) -> LocalizedText {
    let zh = match error {
        DefinitionError::NotAnObject => "定义不是对象".to_owned(),
        DefinitionError::NoName => "定义中没有名称".to_owned(),
        DefinitionError::SchemaKind(_) => "`inputSchema` 不是对象".to_owned(),
        DefinitionError::SchemaSize(bytes) => format!("`inputSchema` 有 {bytes} 字节，太大"),
        DefinitionError::TooDeep(depth) => format!("定义嵌套了 {depth} 层，太深"),
        DefinitionError::Keys(KeyProblem::Duplicate(key)) => format!("定义有歧义：键 `{key}` 重复"),
        DefinitionError::Keys(KeyProblem::NotUnicode) => "定义有歧义：有一个键不是 Unicode 文本".to_owned(),
    };
    LocalizedText::new(error.to_string(), zh)
}
