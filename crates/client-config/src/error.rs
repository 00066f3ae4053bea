//! Errors of configuration files, with their position.

use std::fmt;
use std::path::{Path, PathBuf};

use toolhub_core::lang::{Lang, Localize, LocalizedText};

/// A configuration file that cannot be used. It is never overwritten because of the error.
#[derive(Debug, Clone)]
pub struct ConfigError {
    /// The file.
    pub file: PathBuf,
    /// Line and column, from 1, if the error has a position.
    pub position: Option<(usize, usize)>,
    /// The problem, and what to do about it.
    pub message: LocalizedText,
}

impl ConfigError {
    /// An error at a byte offset of the text.
    pub fn at(file: &Path, text: &str, byte: usize, message: LocalizedText) -> Self {
        Self { file: file.to_owned(), position: Some(line_and_column(text, byte)), message }
    }

    /// A syntax error of JSON with comments.
    pub fn jsonc(file: &Path, text: &str, error: &jsonc_parser::errors::ParseError) -> Self {
        let message = error.kind().to_string();
        let zh = format!("不是有效的 JSON：{message}");
        Self::at(
            file,
            text,
            error.range().start,
            LocalizedText::new(format!("not valid JSON: {message}"), zh),
        )
    }

    /// An error of the whole file.
    pub fn whole(file: &Path, message: LocalizedText) -> Self {
        Self { file: file.to_owned(), position: None, message }
    }

    /// An I/O error.
    pub fn io(file: &Path, error: &std::io::Error) -> Self {
        Self::whole(file, io_text(error))
    }
}

/// The text of an I/O error, with the next step if there is one.
fn io_text(error: &std::io::Error) -> LocalizedText {
    match error.kind() {
        std::io::ErrorKind::StorageFull => LocalizedText::new(
            "the disk is full: free some space and try again",
            "磁盘已满：请释放空间后重试",
        ),
        std::io::ErrorKind::ReadOnlyFilesystem => LocalizedText::new(
            "the file system is read-only: use `--home` or `--config` to choose another place",
            "文件系统只读：请用 `--home` 或 `--config` 指定其他位置",
        ),
        _ => LocalizedText::new(error.to_string(), error.to_string()),
    }
}

/// The line and column, in characters, of a byte offset.
fn line_and_column(text: &str, byte: usize) -> (usize, usize) {
    let mut end = byte.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

impl Localize for ConfigError {
    fn localize(&self, lang: Lang) -> String {
        let file = self.file.display();
        let message = self.message.localize(lang);
        match self.position {
            Some((line, column)) => lang.choose(
                format!("`{file}`, line {line}, column {column}: {message}"),
                format!("`{file}` 第 {line} 行第 {column} 列：{message}"),
            ),
            None => lang.choose(format!("`{file}`: {message}"), format!("`{file}`：{message}")),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.localize(Lang::En))
    }
}

impl std::error::Error for ConfigError {}
