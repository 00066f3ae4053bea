//! Runs the transcripts of the READMEs and the tutorial and compares the output.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use toolhub_testkit::CommandLine;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The commands of all `console` blocks, each with the output that follows it.
fn transcript(text: &str) -> Vec<(String, String)> {
    let mut steps: Vec<(String, String)> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        if line.starts_with("```") {
            is_open = line == "```console";
        } else if is_open && let Some(command) = line.strip_prefix("$ ") {
            steps.push((command.to_owned(), String::new()));
        } else if is_open {
            let (_, output) = steps.last_mut().unwrap();
            output.push_str(line);
            output.push('\n');
        }
    }
    steps
}

/// Replaces the home folder by `~`, and the number of every duration in milliseconds by `N`.
fn normalized(text: &str, home: &str) -> String {
    [" ms", " 毫秒"].iter().fold(text.replace(home, "~"), |text, unit| {
        let mut parts: Vec<&str> = text.split(unit).collect();
        let last = parts.pop().unwrap();
        let is_digit = |letter: char| letter.is_ascii_digit();
        let before = parts.iter().map(|part| format!("{}N{unit}", part.trim_end_matches(is_digit)));
        before.collect::<String>() + last
    })
}

/// Runs the commands of a document one after another, with an empty home folder and without a model.
fn check(document: &str, lang: &str) {
    let cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    let home = cli.folder().display().to_string();
    let program = Path::new(env!("CARGO_BIN_EXE_toolhub")).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([program].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let steps = transcript(&fs::read_to_string(root().join(document)).unwrap());
    assert!(steps.len() > 3, "{document}: {steps:?}");
    for (command, expected) in steps {
        let ran = Command::new("bash")
            .args(["-c", &format!("{command} 2>&1")])
            .current_dir(root())
            .env_clear()
            .env("PATH", &path)
            .env("HOME", &home)
            .env("LANG", lang)
            .output()
            .unwrap();
        let output = String::from_utf8(ran.stdout).unwrap();
        assert_eq!(normalized(&output, &home), normalized(&expected, &home), "{document}: {command}");
    }
}

#[test]
fn readme_shows_real_output() {
    check("README.md", "en_US.UTF-8");
}

#[test]
fn chinese_readme_shows_real_output() {
    check("README.zh-CN.md", "zh_CN.UTF-8");
}

#[test]
fn tutorial_shows_real_output() {
    check("docs/tutorial/first-steps.md", "en_US.UTF-8");
}

#[test]
fn chinese_tutorial_shows_real_output() {
    check("docs/zh/tutorial/first-steps.md", "zh_CN.UTF-8");
}

#[test]
fn readmes_are_short() {
    for document in ["README.md", "README.zh-CN.md"] {
        let lines = fs::read_to_string(root().join(document)).unwrap().lines().count();
        assert!(lines < 150, "{document} has {lines} lines");
    }
}

#[test]
fn normalizes_durations_and_home_directory() {
    assert_eq!(normalized("/h/a, 12 ms, 3 s", "/h"), "~/a, N ms, 3 s");
    assert_eq!(normalized("293 毫秒\n4 ms\n", "/h"), "N 毫秒\nN ms\n");
}
