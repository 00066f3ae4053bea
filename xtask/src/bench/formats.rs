//! The benchmark of tool call parsing: passes every text of the sets to `toolhub parse --jsonl` and counts the correctly parsed
//! ones, beside the figures of other parsers.
mod judge;
mod sets;

use std::{
    collections::BTreeMap,
    io::{BufWriter, Write as _},
    path::Path,
    process::Stdio,
    time::Instant,
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use self::sets::Sample;
use crate::{
    commands::unknown,
    run::{Profile, build, program},
    table::Table,
    workspace::Workspace,
};

/// The supported files, with their content and its origin.
const SETS: &[(&str, &str)] = &[
    (
        "rendered_formats.jsonl",
        "`format, variant, text, calls`: one call in each of the formats that models write",
    ),
    ("repair_cases.jsonl", "`kind, text, gold`: malformed JSON and what it means"),
    (
        "model_outputs.jsonl.gz, tasks.jsonl.gz",
        "`model, task, family, text, expected` and `task, tools`: outputs of the Berkeley Function Calling Leaderboard",
    ),
];

pub(super) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let folder = match args {
        [] => {
            println!("No data: name a folder with `--data DIR`. In it, as far as it is there:");
            for (files, what) in SETS {
                println!("  {files}: {what}");
            }
            return Ok(());
        }
        [flag, folder] if flag == "--data" => std::path::absolute(folder)?,
        [other, ..] => return Err(unknown("argument", other, ["--data"])),
    };
    let toolhub = build(workspace, "toolhub-cli", "toolhub", Profile::Dist)?;
    let mut seen = 0;
    for set in sets::all() {
        let samples = (set.load)(&folder).with_context(|| format!("`{}` cannot be read", set.name))?;
        let Some(samples) = samples else { continue };
        seen += 1;
        measure(&toolhub, set.name, &samples)?;
    }
    ensure!(seen > 0, "none of the known files is in `{}`", folder.display());
    Ok(())
}

/// Number of correctly parsed texts of a group.
#[derive(Default, Clone, Copy)]
struct Share {
    right: usize,
    all: usize,
}

impl Share {
    fn count(&mut self, right: bool) {
        self.right += usize::from(right);
        self.all += 1;
    }

    fn render(self) -> String {
        format!("{:.1} %", 100.0 * self.right as f64 / self.all.max(1) as f64)
    }
}

fn measure(toolhub: &Path, name: &str, samples: &[Sample]) -> Result<()> {
    let started = Instant::now();
    let answers = read_all(toolhub, samples)?;
    let took = started.elapsed();
    let mut total = Share::default();
    let mut groups: BTreeMap<&str, Share> = BTreeMap::new();
    for (sample, answer) in samples.iter().zip(&answers) {
        let right = sample.expect.is_satisfied(&answer["calls"]);
        if sample.counts {
            total.count(right);
        }
        for group in &sample.groups {
            groups.entry(group).or_default().count(right);
        }
    }
    println!("\n{name}: {} of {} texts ({:.1} s)", total.render(), total.all, took.as_secs_f64());
    let mut table = Table::default();
    for (group, share) in groups {
        let baseline = sets::BASELINES.iter().find(|(known, _)| *known == group);
        let beside = baseline.map(|(_, text)| (*text).to_owned()).unwrap_or_default();
        table.row([format!("  {group}"), format!("{}/{}", share.right, share.all), share.render(), beside]);
    }
    print!("{table}");
    Ok(())
}

/// The parse result of each text.
fn read_all(toolhub: &Path, samples: &[Sample]) -> Result<Vec<Value>> {
    let mut command = program(toolhub);
    command.args(["parse", "--jsonl"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().context("the program did not start")?;
    let input = child.stdin.take().context("the program takes no input")?;
    let output = std::thread::scope(|scope| {
        let writer = scope.spawn(move || -> Result<()> {
            let mut input = BufWriter::new(input);
            for (id, sample) in samples.iter().enumerate() {
                let mut line = json!({"id": id, "text": sample.text});
                if let Some(tools) = &sample.tools {
                    line["tools"] = Value::clone(tools);
                }
                writeln!(input, "{line}")?;
            }
            Ok(input.flush()?)
        });
        let output = child.wait_with_output().context("its answers cannot be read")?;
        match writer.join() {
            Ok(written) => written.map(|()| output),
            Err(_) => bail!("the texts could not be handed over"),
        }
    })?;
    let lines = String::from_utf8(output.stdout).context("an answer is no UTF-8")?;
    let answers: Vec<Value> = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    ensure!(answers.len() == samples.len(), "{} texts, but {} answers", samples.len(), answers.len());
    Ok(answers)
}
