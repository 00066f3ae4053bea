//! The skills extension: a skill with two files, its listing and its directories.

use rmcp::model::{CustomRequest, ErrorCode, ErrorData, JsonObject, Resource};
use serde_json::{Value, json};
use toolhub_core::hex;

/// The extension's name among the capabilities.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/skills";

const ROOT: &str = "skill://paint-a-fence";
const NAME: &str = "paint-a-fence";
const DESCRIPTION: &str = "How to paint a fence so that it lasts";
const MANIFEST: &str = "SKILL.md";
const MARKDOWN: &str = "text/markdown";
const DIRECTORY: &str = "inode/directory";

/// The declaration of the extension, with readable directories.
pub(crate) fn settings() -> JsonObject {
    JsonObject::from_iter([("directoryRead".to_owned(), Value::Bool(true))])
}

/// The files: relative path and content.
fn files() -> [(&'static str, String); 2] {
    let manifest = format!(
        "---\nname: {NAME}\ndescription: {DESCRIPTION}\n---\n\nSand it, then paint it. Colors: references/colors.md\n"
    );
    [
        (MANIFEST, manifest),
        ("references/colors.md", "Green hides in gardens; white shows every cat.\n".to_owned()),
    ]
}

fn uri(path: &str) -> String {
    format!("{ROOT}/{path}")
}

/// The skill's files as resources.
pub(crate) fn resources() -> Vec<Resource> {
    files().iter().map(|(path, text)| file_resource(path, text)).collect()
}

fn file_resource(path: &str, text: &str) -> Resource {
    let (name, description) =
        if path == MANIFEST { (NAME, DESCRIPTION) } else { (path, "A file that the skill refers to") };
    Resource::new(uri(path), name)
        .with_description(description)
        .with_mime_type(MARKDOWN)
        .with_size(text.len() as u64)
}

/// MIME type and text of a file of the skill.
pub(crate) fn file(requested_uri: &str) -> Option<(&'static str, String)> {
    let (_, text) = files().into_iter().find(|(path, _)| uri(path) == requested_uri)?;
    Some((MARKDOWN, text))
}

/// Handles the methods of the extension; all other methods unknown to the SDK are errors.
pub(crate) fn answer(request: &CustomRequest) -> Result<JsonObject, ErrorData> {
    let requested_uri = request.params.as_ref().and_then(|params| params.get("uri")).and_then(Value::as_str);
    match request.method.as_str() {
        "skills/list" => Ok(JsonObject::from_iter([("skills".to_owned(), json!([entry()]))])),
        "skills/get" if requested_uri == Some(&uri(MANIFEST)) => {
            Ok(JsonObject::from_iter([("skill".to_owned(), entry())]))
        }
        "resources/directory/read" if let Some(children) = requested_uri.and_then(children) => {
            Ok(JsonObject::from_iter([("resources".to_owned(), json!(children))]))
        }
        "skills/get" | "resources/directory/read" => Err(ErrorData::invalid_params(
            "there is nothing of that kind",
            Some(json!({"uri": requested_uri})),
        )),
        method => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method.to_owned(), None)),
    }
}

fn entry() -> Value {
    let resources: Vec<Value> = files()
        .iter()
        .map(|(path, text)| {
            let digest = hex::sha256(text.as_bytes());
            json!({"uri": uri(path), "digest": format!("sha256:{digest}"), "size": text.len()})
        })
        .collect();
    json!({
        "uri": uri(MANIFEST),
        "frontmatter": {"name": NAME, "description": DESCRIPTION},
        "resources": resources,
    })
}

/// The direct children of a directory: files, and directories with files; `None` if it does not exist.
fn children(directory: &str) -> Option<Vec<Resource>> {
    let mut found: Vec<Resource> = Vec::new();
    for (path, text) in files() {
        let full_uri = uri(path);
        let Some(below) = full_uri.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/')) else {
            continue;
        };
        let child = match below.split_once('/') {
            None => file_resource(path, &text),
            Some((name, _)) => Resource::new(format!("{directory}/{name}"), name).with_mime_type(DIRECTORY),
        };
        if !found.iter().any(|other| other.uri == child.uri) {
            found.push(child);
        }
    }
    (!found.is_empty()).then_some(found)
}
