//! The OpenAPI 3.1 document of the API, made from its route table.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::idempotency::MAX_KEY_BYTES;
use crate::problem::ProblemBody;
use crate::route::{Permission, ResponseKind, Route, Verb, schema_of};

/// A header that a route reads.
struct Header {
    /// The method and path of the route.
    method: Verb,
    path: &'static str,
    name: &'static str,
    description: &'static str,
    max_length: Option<usize>,
}

const HEADERS: &[Header] = &[
    Header {
        method: Verb::Post,
        path: "tools/{name}:call",
        name: "Idempotency-Key",
        description: "Makes the request repeatable: a second one with this key gets the response of the first.",
        max_length: Some(MAX_KEY_BYTES),
    },
    Header {
        method: Verb::Get,
        path: "events",
        name: "Last-Event-ID",
        description: "The id of the last event that the client has received.",
        max_length: None,
    },
    Header {
        method: Verb::Put,
        path: "config",
        name: "If-Match",
        description: "`ETag` of the text that was changed. Another text is not overwritten.",
        max_length: None,
    },
];

/// The document of these routes.
pub(crate) fn openapi_document(routes: &[Route]) -> Value {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut generator = settings.into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for route in routes {
        let operation = operation(route, &mut generator);
        let path = paths.entry(format!("/api/v1/{}", route.path)).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(route.method.name().to_lowercase(), operation);
        }
    }
    let problem = schema_of::<ProblemBody>(&mut generator);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "toolhub",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Tools, servers, calls and approvals of a hub.",
        },
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "responses": {
                "Problem": {
                    "description": "What is wrong, and what to do (RFC 9457)",
                    "content": { "application/problem+json": { "schema": problem } },
                },
            },
            "securitySchemes": {
                "key": { "type": "http", "scheme": "bearer", "description": "A key of `toolhub keys new`" },
                "session": { "type": "apiKey", "in": "cookie", "name": "toolhub_console_PORT" },
            },
        },
        "security": [{ "key": [] }, { "session": [] }],
    })
}

/// An event of a stream: its name, and its data as text, which is JSON.
fn event_schema() -> Value {
    let text = json!({ "type": "string" });
    json!({ "type": "object", "properties": { "event": text, "data": text, "id": text } })
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let placeholders = route.path.split('{').skip(1).filter_map(|part| part.split_once('}')).map(|(name, _)| {
        json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string", "minLength": 1 } })
    });
    let query = route.parameters.iter().map(|parameter| {
        let schema = match parameter.r#type {
            // Numbers are counts.
            "integer" => json!({ "type": "integer", "minimum": 1 }),
            other => json!({ "type": other }),
        };
        json!({ "name": parameter.name, "in": "query", "description": parameter.description, "schema": schema })
    });
    let headers = HEADERS.iter().filter(|header| (header.method, header.path) == (route.method, route.path)).map(|header| {
        let mut schema = json!({ "type": "string", "minLength": 1 });
        if let Some(length) = header.max_length {
            schema["maxLength"] = json!(length);
        }
        json!({ "name": header.name, "in": "header", "description": header.description, "schema": schema })
    });
    let parameters: Vec<Value> = placeholders.chain(query).chain(headers).collect();
    let content = match route.response {
        ResponseKind::Json(schema) => json!({ "application/json": { "schema": schema(generator) } }),
        ResponseKind::Events => json!({ "text/event-stream": { "schema": event_schema() } }),
        ResponseKind::Text(kind) => json!({ kind: { "schema": { "type": "string" } } }),
    };
    let mut responses = json!({ "200": { "description": "OK", "content": content } });
    if let Some(responses) = responses.as_object_mut() {
        responses.insert("default".to_owned(), json!({ "$ref": "#/components/responses/Problem" }));
    }
    let needs = match route.permission {
        Permission::Authenticated => "any principal".to_owned(),
        Permission::LocalUser => "a session of the local user".to_owned(),
        Permission::AnyOf(roles) => {
            let names: Vec<&str> = roles.iter().map(|role| role.name()).collect();
            format!("one of the roles {}", names.join(", "))
        }
    };
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.summary,
        "description": format!("Needs {needs}."),
        "parameters": parameters,
        "responses": responses,
    });
    if let (Some(schema), Some(operation)) = (route.request, operation.as_object_mut()) {
        let schema = schema(generator);
        let body = json!({ "required": true, "content": { "application/json": { "schema": schema } } });
        operation.insert("requestBody".to_owned(), body);
    }
    operation
}

/// A unique name such as `post_servers_id_restart`.
pub(crate) fn operation_id(route: &Route) -> String {
    let path: String =
        route.path.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
    let words: Vec<&str> = path.split('_').filter(|word| !word.is_empty()).collect();
    format!("{}_{}", route.method.name().to_lowercase(), words.join("_"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::routes::ROUTES;

    #[test]
    fn headers_are_described_at_their_routes() {
        let document = openapi_document(ROUTES);
        for header in HEADERS {
            let operations = document["paths"][format!("/api/v1/{}", header.path)].as_object().unwrap();
            let parameters =
                operations.values().flat_map(|operation| operation["parameters"].as_array().unwrap());
            let mut headers = parameters.filter(|parameter| parameter["in"] == "header");
            assert!(headers.any(|parameter| parameter["name"] == header.name), "{}", header.path);
        }
    }
}
