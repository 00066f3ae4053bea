//! The interpreter that the first line of a script names (`#!`, execve(2)).

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The part of the first line that is read; the kernel reads less.
const MAX_LINE_BYTES: u64 = 4_096;

/// The words after `#!`; `None` if the file has no such line.
pub(super) fn words(file: &Path) -> Option<Vec<String>> {
    let mut start = Vec::new();
    let metadata = std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file)?;
    if metadata.len() < 3 {
        return None;
    }
    File::open(file).ok()?.take(MAX_LINE_BYTES).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    (!words.is_empty()).then_some(words)
}
