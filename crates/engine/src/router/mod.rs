//! The router, a pure function: the same call, catalog, policy and scores always give the same route, with reasons.

mod concurrent;
mod policy;
mod single_candidate;
mod unknown_tool;

use std::cell::RefCell;
use std::sync::Arc;

use toolhub_core::lang::LocalizedText;
use toolhub_core::source::SourceKind;
use toolhub_core::tool::ApprovalStatus;
use toolhub_core::{CallBy, Coercion, Localize as _, RawJson, Source, Tool, ToolError};

use self::concurrent::{CandidateSelection, OrderedCandidates};
use self::single_candidate::single_candidate;
use self::unknown_tool::{unknown_qualified, unknown_tool_error};
use crate::catalog::{Catalog, CatalogEntry};
use crate::coerce::{Coerced, coerce};
use crate::schema::{Instance, StepBudget};
use crate::score::{Score, Scores};

pub use self::policy::{RoutingPolicy, SourceFilter, Strategy};

/// Maximum number of candidates of a capability; later ones would hardly ever be tried.
const MAX_CANDIDATES: usize = 8;

/// The call to route.
#[derive(Debug, Clone, Copy)]
pub struct RouteRequest<'a> {
    /// The name of a tool or of a capability.
    pub tool: &'a str,
    /// Whether `tool` names a tool or a capability.
    pub by: CallBy,
    /// The source that the caller names.
    pub source: Option<&'a str>,
    /// The arguments. Without them, no candidate is excluded by its schema.
    pub arguments: Option<&'a RawJson>,
    /// Whether arguments that do not match the schema are coerced.
    pub coercion: Coercion,
    /// The sources that may serve the call; `None` allows all.
    pub sources: Option<&'a [Source]>,
    /// Seed for shuffling equally ranked candidates of a capability.
    pub seed: u64,
    /// Whether reasons are collected.
    pub with_reasons: bool,
}

impl RouteRequest<'_> {
    /// Whether this source may serve the call.
    fn admits(&self, source: &Source) -> bool {
        self.sources.is_none_or(|sources| sources.contains(source))
    }
}

impl<'a> RouteRequest<'a> {
    /// A request for a tool by name, with defaults for everything else.
    pub fn named(tool: &'a str) -> Self {
        let (by, coercion) = (CallBy::Name, Coercion::Off);
        Self { tool, by, source: None, arguments: None, coercion, sources: None, seed: 0, with_reasons: true }
    }
}

/// One tool that could serve the call.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The tool.
    pub entry: Arc<CatalogEntry>,
    /// Reason for its position.
    pub why: LocalizedText,
    /// The coerced arguments, if the call's own did not match the schema.
    pub coerced: Option<Coerced>,
}

impl Candidate {
    /// The source of the tool.
    pub fn source(&self) -> &Source {
        &self.entry.tool.source
    }
}

/// The result of routing.
#[derive(Debug, Clone)]
pub struct Route {
    /// How the candidates are run.
    pub strategy: Strategy,
    /// Number of leading candidates that start at the same time.
    pub batch: usize,
    /// The candidates in the order they are tried. Never empty.
    pub candidates: Vec<Candidate>,
    /// Reasons for this route.
    pub reasons: Vec<LocalizedText>,
}

impl Route {
    /// Whether a candidate may change state: true unless all of them are read-only.
    pub fn may_change(&self) -> bool {
        self.candidates.iter().any(|candidate| candidate.entry.tool.hints().read_only != Some(true))
    }
}

/// Inputs of routing beside the request.
#[derive(Debug, Clone, Copy)]
pub struct RoutingContext<'a> {
    /// The available tools.
    pub catalog: &'a Catalog,
    /// The configured routing policy.
    pub policy: &'a RoutingPolicy,
    /// Success and latency scores of the tools.
    pub scores: &'a Scores,
}

/// Routes a call.
pub fn route(request: RouteRequest<'_>, context: RoutingContext<'_>) -> Result<Route, ToolError> {
    match single_candidate(request, context) {
        Some(entry) => {
            let candidate =
                Candidate { entry: Arc::clone(entry), why: LocalizedText::default(), coerced: None };
            let candidates = vec![candidate];
            Ok(Route { strategy: Strategy::First, batch: 1, candidates, reasons: Vec::new() })
        }
        None => route_among(request, context),
    }
}

/// Routes a call by the general path, for any number of candidates.
fn route_among(request: RouteRequest<'_>, context: RoutingContext<'_>) -> Result<Route, ToolError> {
    let RoutingContext { policy, scores, .. } = context;
    let filter = policy.source_filter(request.source)?;
    let mut reasons: Vec<LocalizedText> =
        source_reason(request.source, &filter, policy).into_iter().collect();
    let only = filter.only();
    let capability = (request.by == CallBy::Capability).then_some(request.tool);
    // All schema checks of a call share one step budget, however many candidates there are.
    let steps = StepBudget::for_bytes(request.arguments.map_or(0, |arguments| arguments.get().len()));
    let arguments = request.arguments.map(|arguments| Instance::new(arguments, &steps));
    let check = ArgumentCheck { arguments, coercion: request.coercion, coerced: RefCell::default() };
    let lookup = Lookup { request, check: &check, only };
    let fitting = match capability {
        None => by_name(lookup, context, &mut reasons)?,
        Some(capability) => by_capability(capability, lookup, context, &mut reasons)?,
    };
    // Number of tools with exactly this name; 0 if the call uses the form `source__name`.
    let offered =
        context.catalog.named(request.tool).filter(|entry| request.admits(&entry.tool.source)).count();
    if request.with_reasons && only.is_none() && capability.is_none() && offered > 0 {
        reasons.push(order_text(policy, &fitting, offered));
    }
    let position_rule = match (only, capability, offered) {
        (Some(_), None, _) | (None, None, 0) => PositionRule::Named,
        (_, Some(_), _) => PositionRule::Capable,
        (None, None, 1) => PositionRule::Alone,
        (None, None, _) => PositionRule::InOrder,
    };
    let choice = CandidateSelection { policy, scores, capability, seed: request.seed };
    let ordered_candidates = choice.order_candidates(fitting, &mut reasons);
    let candidates = ordered_candidates
        .entries
        .iter()
        .enumerate()
        .map(|(place, entry)| {
            let coerced = check.coerced_for(entry);
            let why = match request.with_reasons {
                true => why(entry, place, position_rule, &ordered_candidates),
                false => LocalizedText::default(),
            };
            Candidate { entry: Arc::clone(entry), why, coerced }
        })
        .collect();
    Ok(Route { strategy: ordered_candidates.strategy, batch: ordered_candidates.batch, candidates, reasons })
}

/// A request for candidates: the call, the check of its arguments, and the only source that may serve it.
#[derive(Clone, Copy)]
struct Lookup<'a> {
    request: RouteRequest<'a>,
    check: &'a ArgumentCheck<'a>,
    only: Option<&'a Source>,
}

/// Tools of this name whose schema accepts the arguments, in routing order.
fn by_name<'a>(
    Lookup { request, check, only }: Lookup<'_>,
    context: RoutingContext<'a>,
    reasons: &mut Vec<LocalizedText>,
) -> Result<Vec<&'a Arc<CatalogEntry>>, ToolError> {
    let named = context.catalog.named(request.tool).filter(|entry| request.admits(&entry.tool.source));
    let named: Vec<&Arc<CatalogEntry>> = ordered(named, context.policy);
    let group: Vec<&Arc<CatalogEntry>> = match only {
        Some(only) => named.iter().copied().filter(|entry| entry.tool.source == *only).collect(),
        None => named.clone(),
    };
    if group.is_empty() {
        let qualified = qualified(request, context).filter(|_| only.is_none());
        let Some(entry) = qualified else {
            return Err(match only {
                None => unknown_qualified(request.tool, context.policy, context.catalog),
                Some(_) => unknown_tool_error(request.tool, only, &named, context.catalog),
            });
        };
        return fitting(check, &without_quarantined(vec![entry], reasons)?, reasons);
    }
    let fitting = fitting(check, &without_quarantined(group, reasons)?, reasons)?;
    Ok(match (request.sources, only) {
        (None, None) => of_one_server(fitting, context.policy, reasons),
        _ => fitting,
    })
}

/// Resolves `source__name`.
fn qualified<'a>(request: RouteRequest<'_>, context: RoutingContext<'a>) -> Option<&'a Arc<CatalogEntry>> {
    let (source, name) = request.tool.split_once("__")?;
    let is_meant = |entry: &&Arc<CatalogEntry>| {
        let place = &entry.tool.source;
        place.to_string() == source && request.admits(place) && context.policy.rank(place).is_some()
    };
    context.catalog.named(name).find(is_meant)
}

/// Removes tools of all servers but the first: equal names do not imply equal behaviour, unless the policy declares
/// the servers equivalent. Skills and native tools stay, in the configured order.
fn of_one_server<'a>(
    mut entries: Vec<&'a Arc<CatalogEntry>>,
    policy: &RoutingPolicy,
    reasons: &mut Vec<LocalizedText>,
) -> Vec<&'a Arc<CatalogEntry>> {
    let is_server = |entry: &Arc<CatalogEntry>| matches!(entry.tool.source, Source::Server(_));
    let Some(first) = entries.iter().find(|entry| is_server(entry)).map(|entry| &entry.tool.source) else {
        return entries;
    };
    let stays = |entry: &Arc<CatalogEntry>| {
        let place = &entry.tool.source;
        !is_server(entry) || place == first || policy.are_equivalent(place, first)
    };
    for entry in entries.iter().filter(|entry| !stays(entry)) {
        let place = &entry.tool.source;
        reasons.push(LocalizedText::new(
            format!("{place} has a tool of that name, too, and is not used: name it as the source, or declare both in `[routing] equivalent`"),
            format!("{place} 也有同名工具，但不会使用：可将其指定为来源，或在 `[routing] equivalent` 中声明两者等价"),
        ));
    }
    entries.retain(|entry| stays(entry));
    entries
}

/// Tools with this capability whose schema declares all given arguments, in routing order.
fn by_capability<'a>(
    capability: &str,
    Lookup { request, check, only }: Lookup<'_>,
    context: RoutingContext<'a>,
    reasons: &mut Vec<LocalizedText>,
) -> Result<Vec<&'a Arc<CatalogEntry>>, ToolError> {
    // Sorts whole sources, so that the cost does not depend on their number of tools.
    let admitted = |source: &Source| request.admits(source) && only.is_none_or(|only| source == only);
    let tagged = context.catalog.tagged(capability).filter(|(source, ..)| admitted(source));
    let mut groups: Vec<_> = tagged
        .filter_map(|(source, count, entries)| Some((context.policy.rank(source)?, count, entries)))
        .collect();
    groups.sort_by_key(|(rank, ..)| *rank);
    let have = groups.iter().map(|(_, count, _)| count).sum();
    let group = groups.into_iter().flat_map(|(.., entries)| entries);
    let fits = |entry: &Arc<CatalogEntry>| {
        request.arguments.is_none_or(|received| match check.accepts(entry) {
            Ok(_) => {
                let coerced = check.coerced_for(entry);
                entry.declares_all(coerced.as_ref().map_or(received, |coerced| &coerced.arguments))
            }
            Err(_) => false,
        })
    };
    let mut held_back = None;
    let mut usable = |entry: &Arc<CatalogEntry>| {
        let usable = entry.tool.approval != ApprovalStatus::Quarantined;
        if !usable {
            held_back.get_or_insert((entry.tool.name().clone(), entry.tool.source.clone()));
        }
        usable
    };
    let fitting = group.filter(|entry| fits(entry));
    let mut fitting: Vec<_> = fitting.filter(|entry| usable(entry)).take(MAX_CANDIDATES).collect();
    of_one_changing_server(&mut fitting, context.policy);
    if let (true, Some((tool, place))) = (fitting.is_empty(), held_back) {
        return Err(ToolError::Quarantined { tool, place });
    }
    if fitting.is_empty() {
        let known = context.catalog.capabilities().into_iter().map(str::to_owned).collect();
        return Err(ToolError::NoneCapable { capability: capability.to_owned(), have, known });
    }
    let count = fitting.len();
    for entry in fitting.iter().filter(|entry| entry.tool.approval == ApprovalStatus::Changed) {
        reasons.push(changed(&entry.tool));
    }
    reasons.push(LocalizedText::new(
        format!("{count} of {have} tools for `{capability}` accept the arguments"),
        format!("{have} 个 `{capability}` 类工具中有 {count} 个接受这些参数"),
    ));
    Ok(fitting)
}

/// Removes state-changing tools of all servers but the first that has one: a change that failed on one server must
/// not be repeated on another, unless the policy declares the servers equivalent.
fn of_one_changing_server(entries: &mut Vec<&Arc<CatalogEntry>>, policy: &RoutingPolicy) {
    let changes = |entry: &Arc<CatalogEntry>| {
        matches!(entry.tool.source, Source::Server(_)) && !entry.tool.hints().may_repeat()
    };
    let Some(first) = entries.iter().find(|entry| changes(entry)).map(|entry| entry.tool.source.clone())
    else {
        return;
    };
    let stays = |place: &Source| *place == first || policy.are_equivalent(place, &first);
    entries.retain(|entry| !changes(entry) || stays(&entry.tool.source));
}

/// Removes quarantined tools. Returns an error if none is left.
fn without_quarantined<'a>(
    group: Vec<&'a Arc<CatalogEntry>>,
    reasons: &mut Vec<LocalizedText>,
) -> Result<Vec<&'a Arc<CatalogEntry>>, ToolError> {
    let mut held_back = None;
    let mut usable_entries = Vec::with_capacity(group.len());
    for entry in group {
        let (place, name) = (&entry.tool.source, entry.tool.name());
        match entry.tool.approval {
            ApprovalStatus::Unseen | ApprovalStatus::Approved => usable_entries.push(entry),
            ApprovalStatus::Changed => {
                reasons.push(changed(&entry.tool));
                usable_entries.push(entry);
            }
            ApprovalStatus::Quarantined => {
                reasons.push(LocalizedText::new(
                    format!("{place} is held back: it is not what was approved"),
                    format!("{place} 已被隔离：与批准的定义不同"),
                ));
                held_back.get_or_insert((name.clone(), place.clone()));
            }
        }
    }
    match held_back {
        Some((tool, place)) if usable_entries.is_empty() => Err(ToolError::Quarantined { tool, place }),
        _ => Ok(usable_entries),
    }
}

fn changed(tool: &Tool) -> LocalizedText {
    let (name, place) = (tool.name(), &tool.source);
    LocalizedText::new(
        format!("warning: the definition of `{name}` at {place} changed since it was approved"),
        format!("警告：{place} 的 `{name}` 的定义在批准后有改动"),
    )
}

/// The effect of a call's `source` on its route, as a reason.
fn source_reason(
    source: Option<&str>,
    filter: &SourceFilter,
    policy: &RoutingPolicy,
) -> Option<LocalizedText> {
    match filter {
        SourceFilter::Any => None,
        SourceFilter::Only(Source::Server(id)) => Some(LocalizedText::new(
            format!("the call names server `{id}`, so only that server is used"),
            format!("调用指定了服务器 `{id}`，只用该服务器"),
        )),
        SourceFilter::Only(only) => Some(LocalizedText::new(
            format!("the call names `{only}`, so no other source is used"),
            format!("调用指定了来源 `{only}`，不用其他来源"),
        )),
        SourceFilter::Guessed => {
            let source = source.unwrap_or_default();
            let (en, zh) = match policy.order.first() {
                Some(SourceKind::Mcp) | None => ("MCP servers", "MCP 服务器"),
                Some(SourceKind::Skill) => ("skills", "技能"),
                Some(SourceKind::Native) => ("native tools", "内置工具"),
            };
            Some(LocalizedText::new(
                format!("source `{source}` is often a model's guess, so {en} come first all the same"),
                format!("来源 `{source}` 常常只是模型的猜测，仍然先用{zh}"),
            ))
        }
    }
}

/// The tools that the policy allows, in its order.
fn ordered<'a>(
    tools: impl Iterator<Item = &'a Arc<CatalogEntry>>,
    policy: &RoutingPolicy,
) -> Vec<&'a Arc<CatalogEntry>> {
    let mut ranked: Vec<_> =
        tools.filter_map(|entry| Some((policy.rank(&entry.tool.source)?, entry))).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, entry)| entry).collect()
}

/// Tools whose schema accepts the arguments. If none does, returns the error of the first one.
fn fitting<'a>(
    check: &ArgumentCheck<'_>,
    group: &[&'a Arc<CatalogEntry>],
    reasons: &mut Vec<LocalizedText>,
) -> Result<Vec<&'a Arc<CatalogEntry>>, ToolError> {
    let mut fitting = Vec::with_capacity(group.len());
    let mut complaint = None;
    for entry in group {
        match check.accepts(entry) {
            Ok(coerced) => {
                if coerced {
                    let source = &entry.tool.source;
                    reasons.push(LocalizedText::new(
                        format!("the arguments were mended to fit the schema of {source}"),
                        format!("已修正参数以符合 {source} 的 schema"),
                    ));
                }
                fitting.push(*entry);
            }
            Err(error) => {
                let source = &entry.tool.source;
                reasons.push(LocalizedText::new(
                    format!("{source} is left out, as the arguments do not fit its schema"),
                    format!("参数不符合 {source} 的 schema，因此不使用"),
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

/// Checks the arguments of one call against the schemas of its candidates.
struct ArgumentCheck<'a> {
    arguments: Option<Instance<'a>>,
    coercion: Coercion,
    /// The coerced arguments per candidate.
    coerced: RefCell<Vec<(Arc<CatalogEntry>, Coerced)>>,
}

impl ArgumentCheck<'_> {
    /// Whether a tool accepts the arguments; `Ok(true)` means that they had to be coerced.
    fn accepts(&self, entry: &Arc<CatalogEntry>) -> Result<bool, ToolError> {
        let coerced = match &self.arguments {
            Some(arguments) => arguments.steps().with_share(|| self.suited(entry, arguments))?,
            None => None,
        };
        let is_mended = coerced.is_some();
        self.coerced.borrow_mut().extend(coerced.map(|coerced| (Arc::clone(entry), coerced)));
        Ok(is_mended)
    }

    /// The coerced arguments for a tool that accepts them only in this form.
    fn coerced_for(&self, entry: &Arc<CatalogEntry>) -> Option<Coerced> {
        let coerced_entries = self.coerced.borrow();
        coerced_entries.iter().find(|(of, _)| Arc::ptr_eq(of, entry)).map(|(_, coerced)| coerced.clone())
    }

    fn suited(&self, entry: &CatalogEntry, arguments: &Instance<'_>) -> Result<Option<Coerced>, ToolError> {
        let raw = arguments.raw();
        if entry.certainly_accepts(raw, self.coercion) {
            return Ok(None);
        }
        let checked = entry.check_within(arguments);
        if self.coercion == Coercion::Off {
            return checked.map(|()| None);
        }
        // Most schemas accept undeclared members, which the tool then ignores.
        let fits = checked.is_ok() && entry.declares_all(raw);
        if fits {
            return Ok(None);
        }
        match coerce(entry.tool.definition.input_schema(), raw) {
            Some(coerced) => {
                match entry.check_within(&Instance::new(&coerced.arguments, arguments.steps())) {
                    Ok(()) => Ok(Some(coerced)),
                    Err(_) if checked.is_ok() => Ok(None),
                    Err(error) => Err(error),
                }
            }
            None => checked.map(|()| None),
        }
    }
}

fn order_text(policy: &RoutingPolicy, fitting: &[&Arc<CatalogEntry>], offered: usize) -> LocalizedText {
    let order = policy.order.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (order, order_zh) = (order.join(", "), order.join("、"));
    match fitting {
        [only] if offered == 1 => {
            let source = &only.tool.source;
            LocalizedText::new(
                format!("only {source} has it (order: {order})"),
                format!("只有 {source} 提供（顺序：{order_zh}）"),
            )
        }
        [first] => {
            let source = &first.tool.source;
            LocalizedText::new(
                format!("{source} is the first of {offered} in the order {order}"),
                format!("{offered} 个来源中 {source} 排在最前（顺序：{order_zh}）"),
            )
        }
        _ => LocalizedText::new(format!("tried in the order {order}"), format!("按顺序尝试：{order_zh}")),
    }
}

/// The rule that determines a candidate's position.
#[derive(Clone, Copy)]
enum PositionRule {
    Named,
    Alone,
    Capable,
    InOrder,
}

fn why(
    entry: &Arc<CatalogEntry>,
    place: usize,
    position_rule: PositionRule,
    ordered_candidates: &OrderedCandidates<'_>,
) -> LocalizedText {
    let source = &entry.tool.source;
    let what = match source.kind() {
        SourceKind::Mcp => {
            LocalizedText::new(format!("MCP server `{source}`"), format!("MCP 服务器 `{source}`"))
        }
        SourceKind::Skill => LocalizedText::new("skill", "技能"),
        SourceKind::Native => LocalizedText::new("native tool", "内置工具"),
    };
    let why = match (ordered_candidates.scores.get(place), position_rule) {
        (Some(score), _) => beside_text(place, ordered_candidates, score),
        (None, PositionRule::Named) => LocalizedText::new("named by the call", "由调用指定"),
        (None, PositionRule::Alone) => LocalizedText::new("the only one that has it", "只有它提供"),
        (None, PositionRule::Capable) if ordered_candidates.entries.len() == 1 => {
            LocalizedText::new("the only one that is good for it", "只有它适用")
        }
        (None, _) if place == 0 => LocalizedText::new("first in the routing order", "路由顺序中的第一个"),
        (None, _) => LocalizedText::new(
            "fallback, if those before certainly had no effect",
            "备选：仅当之前的肯定没有生效",
        ),
    };
    let localize = |text: &LocalizedText, lang| text.localize(lang);
    let (en, zh) = (toolhub_core::Lang::En, toolhub_core::Lang::Zh);
    LocalizedText::new(
        format!("{}: {}", localize(&what, en), localize(&why, en)),
        format!("{}：{}", localize(&what, zh), localize(&why, zh)),
    )
}

/// Reason for the position of a candidate that runs concurrently with others.
fn beside_text(place: usize, ordered_candidates: &OrderedCandidates<'_>, score: &Score) -> LocalizedText {
    let latest = ordered_candidates.scores.iter().filter_map(|score| score.last_success).max();
    let role = if latest.is_some() && score.last_success == latest && place == 0 {
        LocalizedText::new("succeeded last", "最近一次成功")
    } else if place < ordered_candidates.batch {
        LocalizedText::new("in the first batch", "在第一批中")
    } else {
        LocalizedText::new("if the first batch fails", "第一批失败后再试")
    };
    let (en, zh) = (toolhub_core::Lang::En, toolhub_core::Lang::Zh);
    let score = score.text();
    LocalizedText::new(
        format!("{} ({})", role.localize(en), score.localize(en)),
        format!("{}（{}）", role.localize(zh), score.localize(zh)),
    )
}
