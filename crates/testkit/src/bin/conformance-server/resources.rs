//! The resources, the resource template, and their contents.

use rmcp::model::{ErrorData, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use crate::media::PNG;
use crate::skills;

/// The template; every id is a valid resource.
pub(crate) const TEMPLATE: &str = "test://template/{id}/data";
/// The resource for update notifications.
pub(crate) const WATCHED: &str = "test://watched-resource";

const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";

/// All resources outside the template, including those of the skills.
pub(crate) fn list() -> Vec<Resource> {
    let mut resources = vec![
        Resource::new(TEXT, "static-text").with_description("A text").with_mime_type("text/plain"),
        Resource::new(BINARY, "static-binary").with_description("A picture").with_mime_type("image/png"),
        Resource::new(WATCHED, "watched-resource")
            .with_description("A text to subscribe to")
            .with_mime_type("text/plain"),
    ];
    resources.extend(skills::resources());
    resources
}

/// The one template.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = ResourceTemplate::new(TEMPLATE, "template-data");
    vec![template.with_description("Data for an id").with_mime_type("application/json")]
}

/// The content of a resource.
pub(crate) fn read(uri: &str) -> Result<ResourceContents, ErrorData> {
    let text = |kind: &str, words: &str| ResourceContents::text(words, uri).with_mime_type(kind);
    match uri {
        TEXT => return Ok(text("text/plain", "This is the content of the static text resource.")),
        BINARY => return Ok(ResourceContents::blob(PNG, uri).with_mime_type("image/png")),
        WATCHED => return Ok(text("text/plain", "This is the content of the watched resource.")),
        _ => {}
    }
    if let Some(id) = template_id(uri) {
        let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
        return Ok(text("application/json", &data.to_string()));
    }
    if let Some((kind, words)) = skills::file(uri) {
        return Ok(text(kind, &words));
    }
    Err(ErrorData::resource_not_found("there is no such resource", Some(json!({"uri": uri}))))
}

fn template_id(uri: &str) -> Option<&str> {
    let (before, after) = TEMPLATE.split_once("{id}")?;
    let id = uri.strip_prefix(before)?.strip_suffix(after)?;
    (!id.is_empty() && !id.contains('/')).then_some(id)
}
