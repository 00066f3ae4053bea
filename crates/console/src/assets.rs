//! Scripts and styles, built into the program.

use axum::body::Body;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use toolhub_server::hash_of;

use crate::browser;

/// An asset.
struct Asset {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

const ASSETS: &[Asset] = &[
    Asset { name: "console.css", kind: STYLE, text: include_str!("../assets/console.css") },
    Asset { name: "console.js", kind: SCRIPT, text: include_str!("../assets/console.js") },
    Asset { name: "access.js", kind: SCRIPT, text: include_str!("../assets/access.js") },
    Asset { name: "ask.js", kind: SCRIPT, text: include_str!("../assets/ask.js") },
    Asset { name: "add_server.js", kind: SCRIPT, text: include_str!("../assets/add_server.js") },
    Asset { name: "change_preview.js", kind: SCRIPT, text: include_str!("../assets/change_preview.js") },
    Asset { name: "edit_server.js", kind: SCRIPT, text: include_str!("../assets/edit_server.js") },
    Asset { name: "question.js", kind: SCRIPT, text: include_str!("../assets/question.js") },
    Asset { name: "settings.js", kind: SCRIPT, text: include_str!("../assets/settings.js") },
    Asset { name: "try_tool.js", kind: SCRIPT, text: include_str!("../assets/try_tool.js") },
    Asset { name: "form_dom.js", kind: SCRIPT, text: include_str!("../assets/form_dom.js") },
    Asset { name: "form_editors.js", kind: SCRIPT, text: include_str!("../assets/form_editors.js") },
    Asset { name: "form_labels.js", kind: SCRIPT, text: include_str!("../assets/form_labels.js") },
    Asset { name: "json_text.js", kind: SCRIPT, text: include_str!("../assets/json_text.js") },
    Asset { name: "schema_form.js", kind: SCRIPT, text: include_str!("../assets/schema_form.js") },
    Asset { name: "schema_view.js", kind: SCRIPT, text: include_str!("../assets/schema_view.js") },
    Asset { name: "schema_form.css", kind: STYLE, text: include_str!("../assets/schema_form.css") },
];

/// Responds with an asset. Browsers revalidate: an update of the program shows at once.
pub(crate) fn respond(name: &str, headers: &HeaderMap) -> Response<Body> {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return browser::plain(StatusCode::NOT_FOUND, "there is no such asset");
    };
    let tag = format!("\"{}\"", hash_of(asset.text));
    let is_current =
        headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut response = match is_current {
        true => Response::new(Body::empty()),
        false => Response::new(Body::from(asset.text)),
    };
    *response.status_mut() = if is_current { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}
