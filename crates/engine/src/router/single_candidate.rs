//! Fast path of the router. Nearly every call names a tool that exactly one source offers, with valid arguments. The
//! result equals that of the general path.

use std::sync::Arc;

use toolhub_core::CallBy;
use toolhub_core::tool::ApprovalStatus;

use super::{RouteRequest, RoutingContext};
use crate::catalog::CatalogEntry;

/// Returns the only tool of this name if no decision is needed: no other tool has the name, the tool may be used, its
/// schema certainly accepts the arguments unchanged, and no reasons are requested.
pub(super) fn single_candidate<'a>(
    request: RouteRequest<'_>,
    context: RoutingContext<'a>,
) -> Option<&'a Arc<CatalogEntry>> {
    if request.with_reasons || request.by != CallBy::Name || request.source.is_some() {
        return None;
    }
    let mut named = context.catalog.named(request.tool);
    let (entry, None) = (named.next()?, named.next()) else { return None };
    let usable = matches!(entry.tool.approval, ApprovalStatus::Unseen | ApprovalStatus::Approved)
        && request.admits(&entry.tool.source)
        && context.policy.rank(&entry.tool.source).is_some();
    let taken = |arguments| entry.certainly_accepts(arguments, request.coercion);
    (usable && request.arguments.is_none_or(taken)).then_some(entry)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolhub_core::{Coercion, RawJson, ServerId, Source, Tool, ToolDefinition};

    use super::super::{RoutingPolicy, route, route_among};
    use super::*;
    use crate::catalog::Catalog;
    use crate::score::Scores;

    fn tool(source: Source, name: &str, approval: ApprovalStatus) -> Tool {
        let schema = json!({"type": "object", "required": ["path"], "properties": {
            "path": {"type": "string"}, "lines": {"type": "integer"},
        }});
        let definition = json!({"name": name, "inputSchema": schema});
        let definition = ToolDefinition::parse(RawJson::from(definition)).unwrap();
        Tool { approval, ..Tool::new(source, definition) }
    }

    #[test]
    fn fast_path_returns_the_same_route() {
        let server = |id: &str| Source::Server(ServerId::new(id));
        let catalog = Catalog::new([
            tool(server("a"), "one", ApprovalStatus::Unseen),
            tool(server("a"), "two", ApprovalStatus::Approved),
            tool(Source::Native, "two", ApprovalStatus::Unseen),
            tool(server("a"), "changed", ApprovalStatus::Changed),
            tool(server("a"), "held", ApprovalStatus::Quarantined),
            tool(server("unknown"), "lost", ApprovalStatus::Unseen),
        ]);
        let policy = RoutingPolicy { servers: vec![ServerId::new("a")], ..RoutingPolicy::default() };
        let scores = Scores::default();
        let known = RoutingContext { catalog: &catalog, policy: &policy, scores: &scores };
        let arguments = [
            json!({"path": "x"}),
            json!({"path": "x", "lines": 3.0}),
            json!({"path": "x", "lines": "3"}),
            json!({"path": "x", "more": 1}),
            json!({}),
            json!([]),
        ]
        .map(RawJson::from);
        let arguments: Vec<Option<&RawJson>> = arguments.iter().map(Some).chain([None]).collect();
        let (on_server, on_native) = ([server("a")], [Source::Native]);
        let mut short = 0;
        for name in ["one", "two", "changed", "held", "lost", "nobody"] {
            for (coercion, sources) in [
                (Coercion::Off, None),
                (Coercion::On, None),
                (Coercion::On, Some(&on_server[..])),
                (Coercion::On, Some(&on_native[..])),
            ] {
                for arguments in arguments.clone() {
                    let named = RouteRequest::named(name);
                    let request = RouteRequest { coercion, sources, arguments, with_reasons: false, ..named };
                    let (found, expect) = (route(request, known), route_among(request, known));
                    assert_eq!(format!("{found:?}"), format!("{expect:?}"), "{request:?}");
                    short += usize::from(single_candidate(request, known).is_some());
                }
            }
        }
        // One tool, with matching arguments and without any; undeclared arguments could be removed by coercion, so
        // those cases take the general path.
        assert_eq!(short, 3 + 2 + 2);
    }
}
