//! The servers that may have a resource: which of them receive a request with its URI.

use std::sync::Arc;

use toolhub_access::Action;
use toolhub_mcp_client::Server;
use toolhub_mcp_wire::Offer;

use super::backend::HubBackend;
use super::list_keys::ListKeys;
use super::profile_access::ProfileAccess;
use super::resource_uri::canonicalize_uri;
use super::uri_template::{TemplateMatch, has_scheme, match_template, scheme_of};

/// The resources and resource templates of one server.
struct OfferedUris {
    listed: Arc<ListKeys>,
    templates: Arc<ListKeys>,
}

impl OfferedUris {
    /// How the most specific template matches a URI.
    fn template_match(&self, uri: &str) -> Option<TemplateMatch> {
        self.templates.iter().filter_map(|template| match_template(template, uri)).max()
    }
}

/// A way in which servers own a URI. Returns the positions of those servers.
type Stage = fn(&[OfferedUris], &str) -> Vec<usize>;

/// Each applies only if no server of those before is permitted.
const STAGES: [Stage; 3] = [claiming, listing_other_spelling, matching];

/// The servers that list a URI or have a specific template for it. A template of a server counts only if no earlier server has a template
/// for the URI.
fn claiming(offered: &[OfferedUris], uri: &str) -> Vec<usize> {
    let mut owners = Vec::new();
    let mut has_earlier_template = false;
    for (index, one) in offered.iter().enumerate() {
        let template = one.template_match(uri);
        let is_specific = template == Some(TemplateMatch::Specific) && !has_earlier_template;
        if is_specific || one.listed.contains(uri) {
            owners.push(index);
        }
        has_earlier_template |= template.is_some();
    }
    owners
}

/// The servers that list another spelling of a URI, which they may read as the same resource. Queries and fragments are compared as they
/// are.
fn listing_other_spelling(offered: &[OfferedUris], uri: &str) -> Vec<usize> {
    let (wanted, wanted_rest) = (canonicalize_uri(uri), query_of(uri));
    let lists = |offered_uris: &OfferedUris| {
        offered_uris.listed.spellings(&wanted).any(|listed| query_of(listed) == wanted_rest)
    };
    (0..offered.len()).filter(|index| offered.get(*index).is_some_and(lists)).collect()
}

/// The servers that have any template for a URI.
fn matching(offered: &[OfferedUris], uri: &str) -> Vec<usize> {
    let fits = |offered_uris: &OfferedUris| offered_uris.template_match(uri).is_some();
    (0..offered.len()).filter(|index| offered.get(*index).is_some_and(fits)).collect()
}

/// The query and the fragment of a URI.
fn query_of(uri: &str) -> &str {
    uri.find(['?', '#']).map_or("", |at| &uri[at..])
}

impl HubBackend {
    /// The servers that may have a resource:
    ///
    /// 1. the first in configuration order that lists it, or that has a specific template for it and follows no server with a template
    ///    for it. So a later server claims no resource of an earlier one's specific template, and a template claims none that an
    ///    earlier server has any template for;
    /// 2. else the first that lists it in another spelling;
    /// 3. else the first with any template for it, so that a template for every URI claims none that another server lists;
    /// 4. else those that have resources of the same scheme, or the only server that has resources: other servers never receive the
    ///    URI.
    ///
    /// A resource that the principal may not use is treated like an unknown one.
    pub(super) async fn owners(
        &self,
        uri: &str,
        access: &ProfileAccess,
        action: Action<'_>,
    ) -> Vec<Arc<Server>> {
        let mut servers = self.servers();
        servers.retain(|server| access.reads_resource(server.id(), uri, action));
        // A URI may be readable through a template that is not visible itself.
        let listed = self.offers.keys(&servers, Offer::Resources).await;
        let templates = self.offers.keys(&servers, Offer::ResourceTemplates).await;
        let offered: Vec<OfferedUris> = listed
            .into_iter()
            .zip(templates)
            .map(|(listed, templates)| OfferedUris { listed, templates })
            .collect();
        for stage in STAGES {
            let owners: Vec<Arc<Server>> =
                stage(&offered, uri).into_iter().filter_map(|index| servers.get(index).cloned()).collect();
            for owner in owners {
                let permitted = self.permitted_servers(vec![owner], uri, access, action).await;
                if !permitted.is_empty() {
                    return permitted;
                }
            }
        }
        let candidates = servers_of_scheme(&servers, &offered, uri);
        self.permitted_servers(candidates, uri, access, action).await
    }
}

/// The servers that have resources of the same scheme, or the only server that has resources.
fn servers_of_scheme(servers: &[Arc<Server>], offered: &[OfferedUris], uri: &str) -> Vec<Arc<Server>> {
    let scheme = scheme_of(uri);
    let listing = servers.iter().zip(offered.iter().map(|offered_uris| &offered_uris.listed));
    let with_templates = servers.iter().zip(offered.iter().map(|offered_uris| &offered_uris.templates));
    let (mut any, mut same): (Vec<Arc<Server>>, Vec<Arc<Server>>) = (Vec::new(), Vec::new());
    for (server, keys) in listing.chain(with_templates).filter(|(_, keys)| !keys.is_empty()) {
        let is_same = keys.iter().any(|key| has_scheme(key) && scheme_of(key) == scheme);
        for list in [Some(&mut any), is_same.then_some(&mut same)].into_iter().flatten() {
            if !list.iter().any(|listed_server| listed_server.id() == server.id()) {
                list.push(Arc::clone(server));
            }
        }
    }
    if any.len() == 1 { any } else { same }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(listed: &[&str], templates: &[&str]) -> OfferedUris {
        let keys =
            |list: &[&str]| -> Arc<ListKeys> { Arc::new(list.iter().map(ToString::to_string).collect()) };
        OfferedUris { listed: keys(listed), templates: keys(templates) }
    }

    fn owner(servers: &[OfferedUris], uri: &str) -> Option<usize> {
        STAGES.iter().find_map(|stage| stage(servers, uri).first().copied())
    }

    #[test]
    fn compares_spellings_of_uris_with_their_queries() {
        for (one, other, expect) in [
            ("note://a/b", "NOTE://A/%62", true),
            ("note://a/b?x", "note://a/./b?x", true),
            ("note://a/b?x", "note://a/b", false),
            ("note://a/b?x", "note://a/b?y", false),
            ("note://a/b", "note://a/c", false),
        ] {
            let servers = [offered(&[one], &[])];
            let expected: &[usize] = if expect { &[0] } else { &[] };
            assert_eq!(listing_other_spelling(&servers, other), expected, "{one} {other}");
        }
    }

    /// The first server has the template, the second one lists URIs or has templates: (template of the first, listed, templates, URI,
    /// owner).
    #[test]
    fn a_later_server_takes_no_resource_of_a_template() {
        for (template, listed, templates, uri, expect) in [
            ("notes://{id}", "notes://5", "notes://5{?x}", "notes://5", 0),
            ("users://{id}/profile", "users://7/profile", "users://7/{x}", "users://7/profile", 0),
            ("notes://{id}", "NOTES://5", "", "notes://5", 0),
            ("file:///{+path}", "", "file:///docs/{name}", "file:///docs/a", 0),
            ("file:///{+path}", "file:///docs/a", "", "file:///docs/a", 1),
            ("notes://{+id}", "notes://5", "", "notes://5", 1),
            ("notes://{id}", "notes://a/b", "", "notes://a/b", 1),
            ("notes://{id}", "notes://a/b", "", "NOTES://a/b", 1),
            ("{+any}", "", "notes://{+x}", "notes://5", 1),
            ("other://{id}", "", "notes://x/{y}", "notes://x/5", 1),
        ] {
            let servers = [offered(&[], &[template]), offered(&[listed], &[templates])];
            assert_eq!(owner(&servers, uri), Some(expect), "{template} {uri}");
        }
    }
}
