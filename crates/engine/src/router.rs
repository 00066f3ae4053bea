//! The router: pure. A call, a catalog and a policy give a route, always the same one, and say why.

use std::sync::Arc;

use toolhub_core::error::UnknownTool;
use toolhub_core::lang::Text;
use toolhub_core::source::SourceKind;
use toolhub_core::{RawJson, ServerId, Source, ToolError};

use crate::catalog::{Catalog, Entry};
use crate::near::near_names;

/// Sources that models name by habit, wherever the tool lives.
const GUESSED: [&str; 2] = ["native", "appflowy"];
/// How many near names an error offers.
const NEAR: usize = 3;

/// In which order sources are tried.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The kinds of sources, first tried first.
    pub order: Vec<SourceKind>,
    /// The configured servers, in the order of the config file.
    pub servers: Vec<ServerId>,
}

impl Default for Policy {
    fn default() -> Self {
        Self { order: vec![SourceKind::Mcp, SourceKind::Skill, SourceKind::Native], servers: Vec::new() }
    }
}

impl Policy {
    /// Where a source stands in the order; `None` where it is not to be used.
    fn rank(&self, source: &Source) -> Option<(usize, usize)> {
        let kind = self.order.iter().position(|kind| *kind == source.kind())?;
        let server = match source {
            Source::Server(id) => self.servers.iter().position(|server| server == id)?,
            Source::Native | Source::Skill => 0,
        };
        Some((kind, server))
    }

    fn server(&self, id: &str) -> Option<&ServerId> {
        self.servers.iter().find(|server| server.as_str() == id)
    }
}

/// What is to be routed.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Which tool.
    pub tool: &'a str,
    /// Where the caller believes it to live.
    pub source: Option<&'a str>,
    /// The arguments; without them nobody is left out for not accepting them.
    pub arguments: Option<&'a RawJson>,
}

/// How several candidates are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// One after another.
    First,
}

impl Strategy {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
        }
    }
}

/// One tool that could serve the call.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The tool.
    pub entry: Arc<Entry>,
    /// Why it stands where it stands.
    pub why: Text,
}

impl Candidate {
    /// Where it lives.
    pub fn source(&self) -> &Source {
        &self.entry.tool.source
    }
}

/// The router's answer.
#[derive(Debug, Clone)]
pub struct Route {
    /// How the candidates are run.
    pub strategy: Strategy,
    /// Who could serve the call, first tried first. Never empty.
    pub candidates: Vec<Candidate>,
    /// Why it came out like this.
    pub reasons: Vec<Text>,
}

/// Decides who serves a call.
pub fn route(request: Request<'_>, catalog: &Catalog, policy: &Policy) -> Result<Route, ToolError> {
    let mut reasons = Vec::new();
    let only = only_server(request.source, policy, &mut reasons);
    let named: Vec<&Arc<Entry>> = ordered(request.tool, catalog, policy);
    let group: Vec<&Arc<Entry>> = match only {
        Some(id) => {
            named.iter().copied().filter(|entry| entry.tool.source == Source::Server(id.clone())).collect()
        }
        None => named.clone(),
    };
    if group.is_empty() {
        return Err(unknown(request.tool, only, &named, catalog));
    }
    let fitting = fitting(request.arguments, &group, &mut reasons)?;
    if only.is_none() {
        reasons.push(order_text(policy, &fitting));
    }
    let candidates = fitting
        .iter()
        .enumerate()
        .map(|(place, entry)| candidate(entry, place, standing(only, &fitting)))
        .collect();
    Ok(Route { strategy: Strategy::First, candidates, reasons })
}

/// Reads the call's `source`: the one server it allows, if it allows only one. Says in `reasons` what it means.
fn only_server<'a>(
    source: Option<&str>,
    policy: &'a Policy,
    reasons: &mut Vec<Text>,
) -> Option<&'a ServerId> {
    let source = source?;
    if let Some(id) = policy.server(source) {
        reasons.push(Text::new(
            format!("the call names server `{id}`, so only that server is asked"),
            format!("调用指定了服务器 `{id}`，只用该服务器"),
        ));
        return Some(id);
    }
    reasons.push(if GUESSED.contains(&source) {
        let (en, zh) = match policy.order.first() {
            Some(SourceKind::Mcp) | None => ("MCP servers", "MCP 服务器"),
            Some(SourceKind::Skill) => ("skills", "技能"),
            Some(SourceKind::Native) => ("native tools", "内置工具"),
        };
        Text::new(
            format!("source `{source}` is often a model's guess, so {en} come first all the same"),
            format!("来源 `{source}` 常常只是模型的猜测，仍然先用{zh}"),
        )
    } else {
        Text::new(
            format!("warning: there is no source `{source}`, so it is taken as absent"),
            format!("警告：没有来源 `{source}`，按未指定处理"),
        )
    });
    None
}

/// The tools of that name that policy allows, in its order.
fn ordered<'a>(tool: &str, catalog: &'a Catalog, policy: &Policy) -> Vec<&'a Arc<Entry>> {
    let mut named: Vec<_> =
        catalog.named(tool).filter_map(|entry| Some((policy.rank(&entry.tool.source)?, entry))).collect();
    named.sort_by_key(|(rank, _)| *rank);
    named.into_iter().map(|(_, entry)| entry).collect()
}

/// Those whose schema accepts the arguments. Where nobody's does, the first one's complaint is the answer.
fn fitting<'a>(
    arguments: Option<&RawJson>,
    group: &[&'a Arc<Entry>],
    reasons: &mut Vec<Text>,
) -> Result<Vec<&'a Arc<Entry>>, ToolError> {
    let Some(arguments) = arguments else { return Ok(group.to_vec()) };
    let mut fitting = Vec::with_capacity(group.len());
    let mut complaint = None;
    for entry in group {
        match entry.check(arguments) {
            Ok(()) => fitting.push(*entry),
            Err(error) => {
                let source = &entry.tool.source;
                reasons.push(Text::new(
                    format!("{source} is left out, as the arguments do not fit its schema"),
                    format!("参数不符合 {source} 的模式，不用它"),
                ));
                complaint.get_or_insert(error);
            }
        }
    }
    match complaint {
        Some(error) if fitting.is_empty() => Err(error),
        _ => Ok(fitting),
    }
}

fn order_text(policy: &Policy, fitting: &[&Arc<Entry>]) -> Text {
    let order = policy.order.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match fitting {
        [only] => {
            let source = &only.tool.source;
            Text::new(
                format!("only {source} has it (order: {order})"),
                format!("只有 {source} 提供（顺序：{order}）"),
            )
        }
        _ => Text::new(format!("tried in the order {order}"), format!("按顺序尝试：{order}")),
    }
}

/// Why a candidate stands where it stands.
#[derive(Clone, Copy)]
enum Standing {
    Named,
    Alone,
    InOrder,
}

fn standing(only: Option<&ServerId>, fitting: &[&Arc<Entry>]) -> Standing {
    match (only, fitting.len()) {
        (Some(_), _) => Standing::Named,
        (None, 1) => Standing::Alone,
        (None, _) => Standing::InOrder,
    }
}

fn candidate(entry: &Arc<Entry>, place: usize, standing: Standing) -> Candidate {
    let source = &entry.tool.source;
    let what = match source.kind() {
        SourceKind::Mcp => Text::new(format!("MCP server `{source}`"), format!("MCP 服务器 `{source}`")),
        SourceKind::Skill => Text::new("skill", "技能"),
        SourceKind::Native => Text::new("native tool", "内置工具"),
    };
    let (en, zh) = match (standing, place) {
        (Standing::Named, _) => ("named by the call", "由调用指定"),
        (Standing::Alone, _) => ("the only one that has it", "只有它提供"),
        (Standing::InOrder, 0) => ("first in the routing order", "路由顺序中的第一个"),
        (Standing::InOrder, _) => {
            ("fallback, if those before certainly had no effect", "备选：仅当之前的肯定没有生效")
        }
    };
    let say = |lang| toolhub_core::Say::say(&what, lang);
    let why = Text::new(
        format!("{}: {en}", say(toolhub_core::Lang::En)),
        format!("{}：{zh}", say(toolhub_core::Lang::Zh)),
    );
    Candidate { entry: Arc::clone(entry), why }
}

fn unknown(tool: &str, only: Option<&ServerId>, named: &[&Arc<Entry>], catalog: &Catalog) -> ToolError {
    let names: Vec<&str> = match only {
        Some(id) => {
            let own = catalog.iter().filter(|entry| entry.tool.source == Source::Server(id.clone()));
            own.map(|entry| entry.tool.name().as_str()).collect()
        }
        None => catalog.names().collect(),
    };
    ToolError::UnknownTool(Box::new(UnknownTool {
        tool: tool.to_owned(),
        server: only.cloned(),
        near: near_names(tool, names, NEAR),
        elsewhere: named.iter().map(|entry| entry.tool.source.clone()).collect(),
        unlisted: Vec::new(),
    }))
}
