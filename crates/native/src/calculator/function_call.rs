//! Plans the call of a function with its arguments.

use toolhub_core::lang::LocalizedText;

use super::planner::Planner;
use super::steps::{Direction, Operation};

/// Adds the steps of a call. Returns the variable of its value. The arguments are single operands.
pub(super) fn apply(
    planner: &mut Planner<'_>,
    name: &'static str,
    arguments: &[String],
) -> Result<String, LocalizedText> {
    if let Some(operation) = operation(name, arguments) {
        return Ok(planner.operation(operation));
    }
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
        ("gcd", [_, ..]) => return Ok(common_divisor(planner, arguments)),
        ("lcm", [first, rest @ ..]) => {
            let mut multiple = first.clone();
            for other in rest {
                let divisor = common_divisor(planner, &[multiple.clone(), other.clone()]);
                let product = planner.assign(format!("{multiple} * {other}"))?;
                multiple = planner.assign(format!("{product} / {divisor}"))?;
            }
            format!("abs {multiple}")
        }
        ("round", [number, places]) => {
            let scale = planner.assign(format!("10 ^ {places}"))?;
            let scaled = planner.assign(format!("{number} * {scale}"))?;
            let rounded = planner.operation(Operation::Round(Direction::Nearest, scaled));
            format!("{rounded} / {scale}")
        }
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
        (_, []) => {
            return Err(LocalizedText::new(
                format!("`{name}()` needs an argument"),
                format!("`{name}()` 需要参数"),
            ));
        }
        _ => {
            return Err(LocalizedText::new(
                format!("`{name}` does not take {count} arguments"),
                format!("`{name}` 不接受 {count} 个参数"),
            ));
        }
    };
    planner.assign(text)
}

/// Work that fend does not do itself.
fn operation(name: &str, arguments: &[String]) -> Option<Operation> {
    let fixed = |text: &str| text.to_owned();
    Some(match (name, arguments) {
        ("pow" | "power", [base, exponent]) => Operation::Power(base.clone(), exponent.clone()),
        ("exp", [exponent]) => Operation::Power(fixed("e"), exponent.clone()),
        ("mod", [dividend, divisor]) => Operation::Remainder(dividend.clone(), divisor.clone()),
        ("log", [number, base]) => Operation::Logarithm(base.clone(), number.clone()),
        ("log" | "log10", [number]) => Operation::Logarithm(fixed("10"), number.clone()),
        ("log2", [number]) => Operation::Logarithm(fixed("2"), number.clone()),
        ("ln", [number]) => Operation::Logarithm(fixed("e"), number.clone()),
        ("sqrt", [operand]) => Operation::SquareRoot(operand.clone()),
        ("tan", [operand]) => Operation::Tangent(operand.clone()),
        ("round", [operand]) => Operation::Round(Direction::Nearest, operand.clone()),
        ("floor", [operand]) => Operation::Round(Direction::Down, operand.clone()),
        ("ceil", [operand]) => Operation::Round(Direction::Up, operand.clone()),
        _ => return None,
    })
}

/// Joins all values by an operator, twelve at a time.
fn chain(planner: &mut Planner<'_>, values: &[String], sign: &str) -> Result<String, LocalizedText> {
    let mut total: Option<String> = None;
    for part in values.chunks(12) {
        let text =
            total.iter().chain(part).map(String::as_str).collect::<Vec<_>>().join(&format!(" {sign} "));
        total = Some(planner.assign(text)?);
    }
    total.ok_or_else(|| LocalizedText::new("there are no values", "没有数值"))
}

/// The maximum of two values is (a + b + |a - b|) / 2, exactly; the minimum has the other sign. fend has no comparison.
fn extreme(
    planner: &mut Planner<'_>,
    first: &str,
    rest: &[String],
    sign: &str,
) -> Result<String, LocalizedText> {
    let mut best = planner.assign(first.to_owned())?;
    for other in rest {
        let difference = planner.assign(format!("{best} - {other}"))?;
        let distance = planner.assign(format!("abs {difference}"))?;
        let twice = planner.assign(format!("{best} + {other} {sign} {distance}"))?;
        best = planner.assign(format!("{twice} / 2"))?;
    }
    Ok(best)
}

fn common_divisor(planner: &mut Planner<'_>, values: &[String]) -> String {
    let join = |one, other: &String| planner.operation(Operation::CommonDivisor(one, other.clone()));
    values.iter().fold("0".to_owned(), join)
}
