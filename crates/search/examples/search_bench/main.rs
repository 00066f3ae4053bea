//! The search benchmark: ranking quality beside baselines, cost by number of tools, names with typos, detection of requests
//! without a fitting tool, and the gain of a sentence encoder.
#![expect(clippy::print_stdout, reason = "the benchmark prints its measurements")]

mod bm25;
mod calibrate;
mod cases;
mod columns;
mod meaning;
mod names;
mod none_fits;
mod quality;
mod scale;
mod servers;
mod sets;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use toolhub_search::RankingSettings;

struct Options {
    data: PathBuf,
    json: bool,
    /// Measures only the cost of an index of this many tools.
    cost: Option<usize>,
    /// Only fits the weights of the confidence again.
    calibrate: bool,
    /// Measures only the ranking quality, over whole sets and over a few servers.
    quality: bool,
    /// Measures only the gain of the model in this folder.
    model: Option<PathBuf>,
    settings: RankingSettings,
}

fn main() -> Result<()> {
    let options = options(std::env::args().skip(1))?;
    let sets = sets::read_all(&options.data)?;
    if sets.is_empty() {
        bail!("`{}` has no folder with tools.jsonl in it", options.data.display());
    }
    if let Some(size) = options.cost {
        println!("{}", serde_json::to_string(&scale::measure_one(&sets, size, &options.settings))?);
        return Ok(());
    }
    if options.calibrate {
        let cases = cases::gather(&sets, &options.settings);
        println!("{}", none_fits::table(&none_fits::measure(&cases, &options.settings), &options.settings));
        println!("{}", calibrate::report(&cases));
        return Ok(());
    }
    if let Some(folder) = &options.model {
        let rows = meaning::measure(&sets, folder, &options.settings)?;
        match options.json {
            true => println!("{:#}", json!({"meaning": rows})),
            false => println!("With a model, in percent as R@10 / nDCG@10\n\n{}", meaning::table(&rows)),
        }
        return Ok(());
    }
    let quality = quality::measure(&sets, &options.settings)?;
    let servers = servers::measure(&sets, &options.settings);
    if options.quality {
        match options.json {
            true => println!("{:#}", json!({"sets": quality, "servers": servers})),
            false => println!("{}\n{}", quality::table(&quality), servers::table(&servers)),
        }
        return Ok(());
    }
    let scale = scale::measure(&options.data, &sets)?;
    let largest = sets.iter().max_by_key(|set| set.tools.len()).context("no set")?;
    let names = names::measure(largest, &options.settings);
    let cases = cases::gather(&sets, &options.settings);
    let none_fits = none_fits::measure(&cases, &options.settings);
    let broken = names.broken();
    if options.json {
        let all = json!({"sets": quality, "servers": servers, "scale": scale, "names": names, "none_fits": none_fits});
        println!("{all:#}");
        return broken;
    }
    println!("Quality, in percent; the baselines are R@10 / nDCG@10\n\n{}", quality::table(&quality));
    if !servers.is_empty() {
        println!("With few servers, in percent\n\n{}", servers::table(&servers));
    }
    println!("Cost by number of tools\n\n{}", scale::table(&scale));
    println!("Found by its name\n\n{}", names::table(&names));
    println!("Does any tool fit?\n\n{}", none_fits::table(&none_fits, &options.settings));
    println!("Its weights, fitted again\n\n{}", calibrate::report(&cases));
    broken
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options> {
    let (mut data, mut json, mut calibrate, mut cost, mut model) = (None, false, false, None, None);
    let mut quality = false;
    let mut settings = RankingSettings::default();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--data" => data = Some(PathBuf::from(arguments.next().context("`--data` needs a folder")?)),
            "--model" => model = Some(PathBuf::from(arguments.next().context("`--model` needs a folder")?)),
            "--settings" => {
                let path = arguments.next().context("`--settings` needs a file")?;
                let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
                settings = serde_json::from_str(&text).with_context(|| path.clone())?;
            }
            "--cost" => cost = Some(arguments.next().context("`--cost` needs a number")?.parse()?),
            "--json" => json = true,
            "--calibrate" => calibrate = true,
            "--quality" => quality = true,
            other => bail!(
                "unknown argument `{other}`; there are --data DIR, --model DIR, --settings FILE, --quality, --calibrate and --json"
            ),
        }
    }
    Ok(Options {
        data: data.context("`--data DIR` is needed")?,
        json,
        cost,
        calibrate,
        quality,
        model,
        settings,
    })
}
