//! The form for a JSON Schema: hand-written cases, and for many schemas a round trip of instances that the validator of the hub
//! accepts, and the messages of the validator for others.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolhub_console::argument_pointer;
use toolhub_core::lang::Localize as _;
use toolhub_core::tool::{Tool, ToolDefinition};
use toolhub_core::{Lang, RawJson, Source, ToolError};
use toolhub_engine::Catalog;

use crate::hub::{ConsoleHub, command_line, no_requests};

/// The number of schemas in one request of the scenario.
const BATCH: usize = 150;

#[test]
fn form_passes_its_cases() {
    let mut hub = ConsoleHub::start(command_line(""));
    hub.run_scenario("form_cases", json!({}), no_requests);
}

/// A schema with its name.
struct NamedSchema {
    name: String,
    schema: String,
}

/// What the scenario counted.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Totals {
    schemas: usize,
    /// Valid instances that the form showed and returned unchanged.
    valid: usize,
    /// The schemas without one.
    without_valid: Vec<String>,
    /// Invalid values that the form showed with the messages of the validator.
    invalid: usize,
    without_invalid: Vec<String>,
    /// Messages beside a field.
    beside: usize,
    /// Messages below the form.
    below: usize,
}

/// Checks arguments as `POST tools/NAME:check` does. Each result is `null` or a list of problems.
fn check(schema: &str, texts: &[String]) -> Value {
    let definition = format!(r#"{{"name":"t","inputSchema":{schema}}}"#);
    let definition = ToolDefinition::parse(RawJson::parse(&definition).unwrap()).unwrap();
    let catalog = Catalog::new([Tool::new(Source::Native, definition)]);
    let entry = catalog.named("t").next().unwrap();
    let results = texts.iter().map(|text| {
        let arguments = RawJson::parse(text).unwrap();
        match entry.check(&arguments) {
            Ok(()) => Value::Null,
            Err(ToolError::InvalidArguments { problems, .. }) => {
                let arguments = arguments.value();
                let problems = problems.iter().map(|problem| {
                    let path = argument_pointer(&problem.argument, &arguments);
                    json!({"path": path, "message": problem.localize(Lang::En)})
                });
                problems.collect()
            }
            Err(other) => json!([{"path": "", "message": other.localize(Lang::En)}]),
        }
    });
    results.collect()
}

/// Shows the form of every schema. Fails if an instance changes or a message is missing.
fn round_trip(schemas: &[NamedSchema]) -> Totals {
    let mut hub = ConsoleHub::start(command_line(""));
    let mut batches = schemas.chunks(BATCH);
    let mut totals = Totals::default();
    hub.run_scenario_with_values("form_round_trip", json!({}), |_, request, value| match request {
        "schemas" => {
            let batch = batches.next().unwrap_or_default();
            batch.iter().map(|one| json!({"name": one.name, "schema": one.schema})).collect()
        }
        "check" => {
            let requests: Vec<(String, Vec<String>)> = serde_json::from_value(value.clone()).unwrap();
            requests.iter().map(|(schema, texts)| check(schema, texts)).collect()
        }
        "totals" => {
            totals = serde_json::from_value(value.clone()).unwrap();
            Value::Null
        }
        other => panic!("unexpected request `{other}`"),
    });
    assert_eq!(totals.schemas, schemas.len());
    assert_eq!(totals.without_valid, [""; 0], "no valid instance");
    assert_eq!(totals.without_invalid, [""; 0], "no invalid instance");
    assert!(totals.valid > 5 * schemas.len() && totals.invalid > 5 * schemas.len(), "{totals:?}");
    assert!(totals.beside >= totals.invalid, "{totals:?}");
    totals
}

#[test]
fn form_returns_valid_instances_and_shows_messages_for_others() {
    let lines = include_str!("schemas.jsonl").lines();
    let schemas: Vec<NamedSchema> = lines
        .map(|line| {
            #[derive(Deserialize)]
            struct Line<'a> {
                name: String,
                #[serde(borrow)]
                schema: &'a RawValue,
            }
            let line: Line<'_> = serde_json::from_str(line).unwrap();
            NamedSchema { name: line.name, schema: line.schema.get().to_owned() }
        })
        .collect();
    assert!(schemas.len() >= 40, "{}", schemas.len());
    let totals = round_trip(&schemas);
    // Two arguments are missing whose names contain a dot or a bracket: their paths are ambiguous.
    assert_eq!(totals.below, 2, "other messages are beside a field");
}

/// The schemas of the tools of real servers.
fn catalogue() -> Vec<NamedSchema> {
    let data = std::env::var_os("TOOLHUB_DATA").map(PathBuf::from).unwrap();
    let file = File::open(data.join("retrieval/toucan_catalogue/tools.jsonl.gz")).unwrap();
    let lines = BufReader::new(flate2::read::GzDecoder::new(file)).lines();
    let schemas = lines.map(|line| {
        #[derive(Deserialize)]
        struct Line<'a> {
            id: Value,
            #[serde(borrow)]
            parameters: &'a RawValue,
        }
        let line = line.unwrap();
        let line: Line<'_> = serde_json::from_str(&line).unwrap();
        // Many entries of the data set have no schema.
        let schema = match line.parameters.get() {
            "null" => r#"{"type":"object"}"#,
            schema => schema,
        };
        NamedSchema { name: line.id.to_string(), schema: schema.to_owned() }
    });
    schemas.collect()
}

#[test]
#[ignore = "needs data: set `TOOLHUB_DATA` and run `cargo xtask test`"]
fn form_returns_valid_instances_for_tools_of_real_servers() {
    let schemas = catalogue();
    assert_eq!(schemas.len(), 14_982);
    let totals = round_trip(&schemas);
    assert_eq!(totals.below, 0, "every message is beside a field");
}
