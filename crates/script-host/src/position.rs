//! Finds the place in the script that a stack trace of the engine names.

/// The name of the script in stack traces.
pub(crate) const FILE_NAME: &str = "script.js";

/// Line and column of the innermost frame inside the script, each from 1. `skipped_lines` precede the script in its
/// source text.
pub(crate) fn of_stack(stack: &str, skipped_lines: u32) -> Option<(u32, u32)> {
    let frame = stack.lines().find_map(|line| {
        let (_, place) = line.rsplit_once(FILE_NAME)?;
        let mut numbers = place.strip_prefix(':')?.trim_end().trim_end_matches(')').split(':');
        let line = numbers.next()?.parse::<u32>().ok()?;
        let column = numbers.next().and_then(|column| column.parse().ok()).unwrap_or(1);
        Some((line, column))
    });
    frame.and_then(|(line, column)| Some((line.checked_sub(skipped_lines).filter(|line| *line > 0)?, column)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_innermost_frame_of_the_script() {
        for (stack, skipped, expect) in [
            ("    at inner (script.js:3:15)\n    at <eval> (script.js:9:1)\n", 0, Some((3, 15))),
            (
                "    at parse (native)\n    at invoke (host.js:90:2)\n    at <anonymous> (script.js:4:7)",
                0,
                Some((4, 7)),
            ),
            ("    at script.js:2:5\n", 0, Some((2, 5))),
            ("    at script.js:2:5\n", 1, Some((1, 5))),
            ("    at script.js:1:5\n", 1, None),
            ("    at host.js:1:5\n", 0, None),
            ("    at script.js:x:5\n    at script.js:7\n", 0, Some((7, 1))),
            ("", 0, None),
        ] {
            assert_eq!(of_stack(stack, skipped), expect, "{stack}");
        }
    }
}
