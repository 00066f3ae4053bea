//! Tools that respond immediately, each with another type of content.

use rmcp::model::{CallToolResult, ContentBlock, ErrorData, ResourceContents};

use super::{Arguments, Fixture, Outcome, done, text_content};
use crate::exchange::{Exchange, Step};
use crate::media::{PNG, WAV};

pub(super) const FIXTURES: &[Fixture] = &[
    Fixture {
        name: "test_simple_text",
        description: "Answers with a text",
        arguments: Arguments::None,
        step: |_| done(text_content("This is a simple text response for testing.")),
    },
    Fixture {
        name: "test_image_content",
        description: "Answers with a picture",
        arguments: Arguments::None,
        step: |_| done(CallToolResult::success(vec![picture()])),
    },
    Fixture {
        name: "test_audio_content",
        description: "Answers with a sound",
        arguments: Arguments::None,
        step: |_| done(CallToolResult::success(vec![ContentBlock::audio(WAV, "audio/wav")])),
    },
    Fixture {
        name: "test_embedded_resource",
        description: "Answers with a resource inside the answer",
        arguments: Arguments::None,
        step: embedded_resource,
    },
    Fixture {
        name: "test_multiple_content_types",
        description: "Answers with a text, a picture and a resource",
        arguments: Arguments::None,
        step: multiple_content_types,
    },
    Fixture {
        name: "test_error_handling",
        description: "Always fails",
        arguments: Arguments::None,
        step: |_| {
            let words = "This tool intentionally returns an error for testing";
            done(CallToolResult::error(vec![ContentBlock::text(words)]))
        },
    },
    Fixture {
        name: "greet",
        description: "Greets somebody",
        arguments: Arguments::Required(&[("name", "string")]),
        step: |exchange| done(text_content(format!("Hello, {}!", exchange.text("name")?))),
    },
];

fn picture() -> ContentBlock {
    ContentBlock::image(PNG, "image/png")
}

fn resource(uri: &str, kind: &str, text: &str) -> ContentBlock {
    ContentBlock::resource(ResourceContents::text(text, uri).with_mime_type(kind))
}

fn embedded_resource(_: &Exchange) -> Result<Step<Outcome>, ErrorData> {
    let words = "This is an embedded resource content.";
    done(CallToolResult::success(vec![resource("test://embedded-resource", "text/plain", words)]))
}

fn multiple_content_types(_: &Exchange) -> Result<Step<Outcome>, ErrorData> {
    let data = r#"{"test":"data","value":123}"#;
    done(CallToolResult::success(vec![
        ContentBlock::text("Multiple content types test:"),
        picture(),
        resource("test://mixed-content-resource", "application/json", data),
    ]))
}
