//! A bounded ring buffer of a child's stderr.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use toolhub_private_files::{SyncMode, create_private_parent, replace_private};

/// Maximum size in bytes.
const MAX_TAIL_BYTES: usize = 64 << 10;
/// How many lines an error shows.
const TAIL_LINES: usize = 8;
/// How many characters of a line an error shows.
const TAIL_LINE_CHARS: usize = 300;

/// The last bytes that a child wrote to stderr.
#[derive(Debug, Clone, Default)]
pub(crate) struct StderrRing(Arc<Mutex<VecDeque<u8>>>);

impl StderrRing {
    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = &bytes[bytes.len().saturating_sub(MAX_TAIL_BYTES)..];
        let overflow = (ring.len() + bytes.len()).saturating_sub(MAX_TAIL_BYTES).min(ring.len());
        ring.drain(..overflow);
        ring.extend(bytes);
    }

    /// Replaces a file, readable by the owner only, with the buffer's content; does nothing if it is empty.
    pub(crate) fn save(&self, file: &Path) -> std::io::Result<()> {
        let bytes: Vec<u8> = {
            let ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            ring.iter().copied().collect()
        };
        if bytes.is_empty() {
            return Ok(());
        }
        create_private_parent(file)?;
        replace_private(file, &bytes, SyncMode::None)
    }

    /// The last lines.
    pub(crate) fn tail(&self) -> Vec<String> {
        let bytes: Vec<u8> = {
            let ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            ring.iter().copied().collect()
        };
        last_lines(&bytes)
    }
}

/// The last non-empty lines of a program's output, limited in number and length, for error messages.
pub fn last_lines(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let tail = &lines[lines.len().saturating_sub(TAIL_LINES)..];
    tail.iter().map(|line| line.chars().take(TAIL_LINE_CHARS).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_only_the_last_bytes() {
        let ring = StderrRing::default();
        for _ in 0..100 {
            ring.push(&[b'x'; 4096]);
        }
        ring.push("\n最后\nlast\n".as_bytes());
        assert_eq!(ring.tail()[1..], ["最后", "last"]);
        assert!(ring.0.lock().unwrap().len() <= MAX_TAIL_BYTES);
    }
}
