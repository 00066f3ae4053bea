//! Keeps `docs/reference/toolhub.schema.json` equal to the schema of the settings, and the schema consistent with the accepted
//! contents of `toolhub.toml`. `WRITE_DOCS=1 cargo test -p toolhub-cli --test config_schema` regenerates the file.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolhub::settings::schema;
use toolhub_testkit::CommandLine;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn refusals(text: &str) -> Vec<String> {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let value: Value = toml_edit::de::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    validator.iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn published_schema_matches_settings() {
    let file = root().join("docs/reference/toolhub.schema.json");
    let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("WRITE_DOCS").is_some() {
        fs::write(&file, &text).unwrap();
    }
    let published = fs::read_to_string(&file).unwrap_or_default();
    assert!(published == text, "run `WRITE_DOCS=1 cargo test -p toolhub-cli --test config_schema`");
    jsonschema::meta::validate(&schema()).unwrap();
}

/// The `toml` blocks of a page.
fn examples(text: &str) -> Vec<String> {
    let blocks = text.split("```toml\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn accepts_documented_examples() {
    let mut checked = 0;
    let mut folders = vec![root().join("docs"), root().join("examples")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap_or_default();
            let texts = match path.extension().and_then(|ending| ending.to_str()) {
                Some("md") => examples(&text),
                Some("toml") if path.file_name().is_some_and(|name| name == "toolhub.toml") => vec![text],
                _ => continue,
            };
            for text in texts.iter().filter(|text| is_settings(text)) {
                // `hints = …` alone is a key of `[[servers]]`.
                let document = match text.starts_with("hints")
                    || text.starts_with("oauth")
                    || text.starts_with("sandbox")
                {
                    true => format!("[[servers]]\nid = \"a\"\n{text}"),
                    false => text.clone(),
                };
                // Documents abbreviate a hash.
                let document = document.replace("\"…\"", &format!("\"{}\"", "0".repeat(64)));
                let refusals = refusals(&document);
                assert!(refusals.is_empty(), "{}: {refusals:?}\n{document}", path.display());
                checked += 1;
            }
        }
    }
    assert!(checked >= 6, "{checked} examples were found");
}

/// Whether a block belongs to `toolhub.toml`, not to a file of another program.
fn is_settings(text: &str) -> bool {
    !["[mcp_servers", "[package", "[dependencies", "[profile."].iter().any(|head| text.contains(head))
}

/// The string literals of a Rust file, with the escapes used in configs.
fn literals(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('"') {
        rest = &rest[start + 1..];
        let mut literal = String::new();
        let mut letters = rest.char_indices();
        let mut end = rest.len();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => {
                    end = at + 1;
                    break;
                }
                '\\' => match letters.next() {
                    Some((_, 'n')) => literal.push('\n'),
                    Some((_, 't')) => literal.push('\t'),
                    Some((_, '\n')) => {}
                    Some((_, other)) => literal.push(other),
                    None => {}
                },
                other => literal.push(other),
            }
        }
        rest = rest.get(end..).unwrap_or_default();
        found.push(literal);
    }
    found
}

/// The schema accepts every text in the tests that the program reads without a warning.
#[test]
fn accepts_settings_of_the_tests() {
    let tables: Vec<String> = schema()["properties"].as_object().unwrap().keys().cloned().collect();
    let mut checked = 0;
    let mut folders = vec![root().join("crates/cli/tests"), root().join("crates/toolhub/src")];
    let mut candidates = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                candidates.extend(literals(&fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let is_config = |text: &String| {
        let head = |table: &String| {
            [format!("[{table}]\n"), format!("[[{table}]]\n"), format!("[{table}."), format!("[[{table}.")]
                .iter()
                .any(|head| text.starts_with(head))
        };
        text.contains('\n') && text.contains('=') && tables.iter().any(head)
    };
    let cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    candidates.retain(is_config);
    candidates.sort();
    candidates.dedup();
    for text in candidates {
        // The program decides whether a text is valid; texts with a warning or an error are skipped.
        fs::write(cli.folder().join("toolhub.toml"), &text).unwrap();
        let ran = cli.run(&["servers", "list", "--no-hub"]);
        let is_right = ran.code == Some(0)
            && !ran.stderr.contains("means nothing")
            && !ran.stderr.contains("toolhub.toml");
        if is_right {
            let refusals = refusals(&text);
            assert!(refusals.is_empty(), "{refusals:?}\n{text}");
            checked += 1;
        }
    }
    assert!(checked >= 30, "{checked} configs were found");
}

#[test]
fn rejects_unknown_keys_and_invalid_values() {
    for text in [
        "lang = \"en\"\n",
        "[limit]\n",
        "[limits]\ncal = \"5s\"\n",
        "[limits]\ncall = \"soon\"\n",
        "[limits]\nstarts = 0\n",
        "[routing]\norder = []\n",
        "[routing]\norder = [\"web\"]\n",
        "[[servers]]\ntools = []\n",
        "[[servers]]\nid = \"a\"\nsandbox = { reed = [] }\n",
        "[[servers]]\nid = \"a\"\nhints = { x = { readonly = true } }\n",
        "[[auth.tokens]]\nname = \"a\"\nsha256 = \"12\"\n",
        "[telemetry]\nsampling = 2\n",
        "[store]\nmax_size = \"big\"\n",
        "[profiles.a]\nexposes = \"all\"\n",
        "[web_search]\nurl = \"x\"\n",
    ] {
        assert!(!refusals(text).is_empty(), "{text}");
    }
}

/// `cargo xtask tidy` keeps the page complete: it lists every key and no other.
#[test]
fn has_every_key_of_the_reference_and_no_other() {
    fn collect(schema: &Value, keys: &mut BTreeSet<String>) {
        match schema {
            Value::Object(members) => {
                for (name, member) in members {
                    if name == "properties" {
                        keys.extend(member.as_object().unwrap().keys().cloned());
                    }
                    collect(member, keys);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, keys)),
            _ => {}
        }
    }
    let mut keys = BTreeSet::new();
    collect(&schema(), &mut keys);
    let page = fs::read_to_string(root().join("docs/reference/config.md")).unwrap();
    let page = page.split("\n## `mcp.json`").next().unwrap();
    let mut named = BTreeSet::new();
    for line in page.lines() {
        if let Some((key, _)) = line.strip_prefix("| `").and_then(|rest| rest.split_once("` |")) {
            named.insert(key.to_owned());
        }
        let heading = line.strip_prefix("## `[").or_else(|| line.strip_prefix("### `["));
        named.extend(
            heading
                .into_iter()
                .flat_map(|rest| {
                    rest.trim_matches(['`', '[', ']'])
                        .split('.')
                        .filter(|part| part.chars().all(|c| !c.is_uppercase()))
                })
                .map(str::to_owned),
        );
    }
    named.remove("toolhub.toml");
    named.remove("mcp.json");
    // The page mentions the MCP annotations in a sentence.
    keys.retain(|key| !key.ends_with("Hint"));
    assert_eq!(keys, named);
}
