//! Functions with names that people use and fend lacks, or that take several arguments.

use super::plan::Planner;
use super::steps::{Direction, Step};

/// Functions that take their arguments in parentheses: fend's, and those that are made here.
const NAMES: &str = "abs acos acosh arg asin asinh atan atanh average avg binomial cbrt ceil comb conjugate cos cosh \
     exp factorial fib fibonacci floor hypot imag ln log log10 log2 max mean min mod ncr not npr perm pow power prod \
     product real round sin sinh sqrt sum tan tanh";

/// The names of all functions.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    NAMES.split_whitespace()
}

/// The name of a function as it is known here.
pub(super) fn known(word: &str) -> Option<&'static str> {
    let word = match word {
        "arcsin" => "asin",
        "arccos" => "acos",
        "arctan" => "atan",
        "ceiling" => "ceil",
        "lg" => "log10",
        "re" => "real",
        "im" => "imag",
        "平均" => "avg",
        "choose" => "comb",
        "permute" => "perm",
        other => other,
    };
    names().find(|name| *name == word)
}

/// Whether commas separate the function's arguments.
pub(super) fn takes_several(name: &str) -> bool {
    matches!(
        name,
        "average"
            | "avg"
            | "binomial"
            | "comb"
            | "hypot"
            | "log"
            | "max"
            | "mean"
            | "min"
            | "mod"
            | "ncr"
            | "npr"
            | "perm"
            | "pow"
            | "power"
            | "prod"
            | "product"
            | "round"
            | "sum"
    )
}

/// Whether a function may stand before its argument without parentheses, as in `sqrt 2`. `min` is a minute then.
pub(super) fn is_prefix(word: &str) -> bool {
    known(word).is_some_and(|name| !takes_several(name) || name == "log") && word != "factorial"
}

/// Adds the steps of one call; the answer is the variable that holds its value. The arguments are single operands.
pub(super) fn apply(
    planner: &mut Planner<'_>,
    name: &'static str,
    arguments: &[String],
) -> Result<String, String> {
    let count = arguments.len();
    let text = match (name, arguments) {
        ("sum", [_, ..]) => return chain(planner, arguments, "+"),
        ("prod" | "product", [_, ..]) => return chain(planner, arguments, "*"),
        ("avg" | "average" | "mean", [_, ..]) => {
            let sum = chain(planner, arguments, "+")?;
            format!("{sum} / {count}")
        }
        ("max", [first, rest @ ..]) => return extreme(planner, first, rest, "+"),
        ("min", [first, rest @ ..]) => return extreme(planner, first, rest, "-"),
        ("pow" | "power", [base, exponent]) => return Ok(power(planner, base, exponent)),
        ("exp", [exponent]) => return Ok(power(planner, "e", exponent)),
        // For any sign and any fraction, as fend's own is for whole numbers alone.
        ("mod", [a, b]) => {
            let ratio = planner.assign(format!("{a} / {b}"))?;
            let floor = round(planner, &ratio, Direction::Down);
            format!("{a} - {b} * {floor}")
        }
        ("log", [number, base]) => {
            let number = planner.assign(format!("ln {number}"))?;
            let base = planner.assign(format!("ln {base}"))?;
            format!("{number} / {base}")
        }
        ("round", [number, places]) => {
            let scale = planner.assign(format!("10 ^ {places}"))?;
            let scaled = planner.assign(format!("{number} * {scale}"))?;
            let rounded = round(planner, &scaled, Direction::Nearest);
            format!("{rounded} / {scale}")
        }
        ("round", [number]) => return Ok(round(planner, number, Direction::Nearest)),
        ("floor", [number]) => return Ok(round(planner, number, Direction::Down)),
        ("ceil", [number]) => return Ok(round(planner, number, Direction::Up)),
        ("hypot", [_, ..]) => {
            let squares = arguments.iter().map(|side| planner.assign(format!("{side} ^ 2")));
            let squares = squares.collect::<Result<Vec<_>, _>>()?;
            let sum = chain(planner, &squares, "+")?;
            format!("sqrt {sum}")
        }
        ("comb" | "binomial" | "ncr", [n, k]) => format!("{n} nCr {k}"),
        ("perm" | "npr", [n, k]) => format!("{n} nPr {k}"),
        ("factorial", [number]) => format!("{number} !"),
        (_, [argument]) => format!("{name} {argument}"),
        (_, []) => return Err(format!("`{name}()` needs an argument")),
        _ => return Err(format!("`{name}` does not take {count} arguments")),
    };
    planner.assign(text)
}

/// All values joined by one operator, a dozen at a time.
fn chain(planner: &mut Planner<'_>, values: &[String], sign: &str) -> Result<String, String> {
    let mut total: Option<String> = None;
    for part in values.chunks(12) {
        let text =
            total.iter().chain(part).map(String::as_str).collect::<Vec<_>>().join(&format!(" {sign} "));
        total = Some(planner.assign(text)?);
    }
    total.ok_or_else(|| "there are no values".to_owned())
}

/// The larger of two is (a + b + |a - b|) / 2, exactly; the smaller has the other sign. fend has no comparison.
fn extreme(planner: &mut Planner<'_>, first: &str, rest: &[String], sign: &str) -> Result<String, String> {
    let mut best = planner.assign(first.to_owned())?;
    for other in rest {
        let difference = planner.assign(format!("{best} - {other}"))?;
        let distance = planner.assign(format!("abs {difference}"))?;
        let twice = planner.assign(format!("{best} + {other} {sign} {distance}"))?;
        best = planner.assign(format!("{twice} / 2"))?;
    }
    Ok(best)
}

/// A power, with the care that [`Step::Power`] takes.
pub(super) fn power(planner: &mut Planner<'_>, base: &str, exponent: &str) -> String {
    let name = planner.name();
    planner.steps.push(Step::Power {
        name: name.clone(),
        base: base.to_owned(),
        exponent: exponent.to_owned(),
    });
    name
}

fn round(planner: &mut Planner<'_>, operand: &str, direction: Direction) -> String {
    let name = planner.name();
    planner.steps.push(Step::Round { name: name.clone(), direction, operand: operand.to_owned() });
    name
}
