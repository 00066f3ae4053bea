//! Runs the examples of `docs/reference/http.md` unchanged.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::serving::{Serving, hub};

/// The code blocks of this kind, in order, each with its offset in the text.
fn blocks<'t>(text: &'t str, kind: &str) -> Vec<(usize, &'t str)> {
    let fence = format!("```{kind}\n");
    let begins = text.match_indices(&fence).map(|(position, _)| position + fence.len());
    begins.map(|begin| (begin, text[begin..].split("```").next().unwrap())).collect()
}

#[test]
fn documented_curl_examples_return_documented_responses() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/http.md");
    let text = fs::read_to_string(file).unwrap();
    let text = text.split("## Requests by hand").nth(1).unwrap();
    let text = text.split("## Sessions").next().unwrap();
    let cli = hub(blocks(text, "toml")[0].1);
    let skill = cli.folder().join("skills/greeting");
    fs::create_dir_all(&skill).unwrap();
    fs::write(skill.join("SKILL.md"), "---\nname: greeting\ndescription: How to greet.\n---\nSay hello.\n")
        .unwrap();
    assert_eq!(cli.run(&["skills", "approve", "--all", "--yes"]).code, Some(0));
    let serving = Serving::start(cli);

    // Each block with an expected output runs after the preceding blocks that have none, as on a terminal.
    let (commands, answers) = (blocks(text, "sh"), blocks(text, "text"));
    let mut before = String::new();
    let mut seen = 0;
    for (number, (position, block)) in commands.iter().enumerate() {
        let block = block.replace("http://127.0.0.1:7460", &serving.root);
        let next = commands.get(number + 1).map_or(usize::MAX, |(next, _)| *next);
        let expected = answers.iter().find(|(answer, _)| answer > position && *answer < next);
        let script = format!("{{ {before}\n}} > /dev/null\n{block}");
        if let Some((_, expected)) = expected {
            let ran = Command::new("bash").args(["-c", &script]).env("no_proxy", "*").output().unwrap();
            assert_eq!(String::from_utf8_lossy(&ran.stdout), *expected, "{block}");
            seen += 1;
        } else {
            before.push_str(&block);
        }
        // Variable assignments are kept; requests need not be repeated.
        let sets = block.lines().filter(|line| line.starts_with("META="));
        sets.for_each(|line| before.push_str(&format!("{line}\n")));
    }
    assert_eq!(seen, answers.len());
}
