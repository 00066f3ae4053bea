//! Reads lines of bounded length: an overlong line is reported as soon as it exceeds the limit, and is not buffered.

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// Maximum length of a line in bytes.
pub(crate) const MAX_LINE_BYTES: usize = 16 << 20;
/// How much of an overlong line is kept, to identify the message.
const OVERLONG_PREFIX_BYTES: usize = 4096;

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadLine {
    /// A complete line, without its newline.
    Whole(Vec<u8>),
    /// The start of an overlong line. The rest of it is skipped.
    TooLong(Vec<u8>),
    /// The stream ended.
    End,
}

/// Splits a stream into lines.
#[derive(Debug)]
pub(crate) struct LineReader<R> {
    reader: R,
    max_bytes: usize,
    line: Vec<u8>,
    skipping: bool,
}

impl<R: AsyncBufRead + Unpin> LineReader<R> {
    pub(crate) fn new(reader: R, max_bytes: usize) -> Self {
        Self { reader, max_bytes, line: Vec::new(), skipping: false }
    }

    /// Returns the next line. Cancel safe.
    pub(crate) async fn next(&mut self) -> ReadLine {
        loop {
            let buffer = match self.reader.fill_buf().await {
                Ok(buffer) if !buffer.is_empty() => buffer,
                // A partial line at the end of the stream is discarded.
                _ => return ReadLine::End,
            };
            // `read_until` uses memchr, and reading from memory cannot fail.
            let mut rest = buffer;
            let used = if self.skipping {
                std::io::BufRead::skip_until(&mut rest, b'\n')
            } else {
                std::io::BufRead::read_until(&mut rest, b'\n', &mut self.line)
            };
            let used = used.unwrap_or_default();
            let complete = buffer.get(..used).is_some_and(|part| part.ends_with(b"\n"));
            self.reader.consume(used);
            if complete && !self.skipping {
                self.line.pop();
            }
            if complete && std::mem::take(&mut self.skipping) {
                continue;
            }
            if self.line.len() > self.max_bytes {
                self.skipping = !complete;
                let mut start = std::mem::take(&mut self.line);
                start.truncate(OVERLONG_PREFIX_BYTES);
                return ReadLine::TooLong(start);
            }
            if complete && !self.skipping {
                let mut line = std::mem::take(&mut self.line);
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return ReadLine::Whole(line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn splits_lines_and_reports_overlong_ones() {
        let text = b"one\r\n\nlonger than ten\nnext\nhalf";
        let mut lines = LineReader::new(&text[..], 10);
        let complete = |text: &str| ReadLine::Whole(text.as_bytes().to_vec());
        assert_eq!(lines.next().await, complete("one"));
        assert_eq!(lines.next().await, complete(""));
        assert_eq!(lines.next().await, ReadLine::TooLong(b"longer than ten".to_vec()));
        assert_eq!(lines.next().await, complete("next"));
        assert_eq!(lines.next().await, ReadLine::End);
    }

    #[tokio::test]
    async fn does_not_buffer_an_endless_line() {
        let endless = tokio::io::AsyncReadExt::take(tokio::io::repeat(b'x'), 64 << 20);
        let mut lines = LineReader::new(tokio::io::BufReader::new(endless), 1000);
        assert!(matches!(lines.next().await, ReadLine::TooLong(_)));
        assert_eq!(lines.next().await, ReadLine::End);
        assert!(lines.line.capacity() < 1 << 20);
    }
}
