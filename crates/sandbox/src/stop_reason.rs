//! Why a confined process was stopped or denied an operation, in both languages.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Why a confined process was stopped or denied an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Used more than this many bytes of memory.
    Memory(u64),
    /// Used more CPU time.
    Cpu(Duration),
    /// Started more than this many processes and threads.
    Processes(u64),
    /// Opened more than this many files at once.
    OpenFiles(u64),
    /// Wrote a file longer than this many bytes.
    FileSize(u64),
    /// Wrote more than this many bytes to its private folder.
    Disk(u64),
    /// Accessed a file that is not granted; the path if its messages contain it.
    File(Option<PathBuf>),
    /// Tried to change a read-only file or folder; the path if its messages contain it.
    ReadOnly(Option<PathBuf>),
    /// Tried to use the network.
    Network,
    /// Made a denied system call.
    Call,
}

impl StopReason {
    /// The message in English.
    pub fn english(&self) -> String {
        let grant = "grant it if that is right";
        match self {
            Self::Memory(bytes) => format!("it used more memory than the {} it may", size(*bytes)),
            Self::Cpu(time) => format!("it used more processor time than the {} s it may", time.as_secs()),
            Self::Processes(count) => {
                format!("it started more processes and threads than the {count} it may")
            }
            Self::OpenFiles(count) => format!("it opened more files at once than the {count} it may"),
            Self::FileSize(bytes) => format!("it wrote a file longer than the {} it may", size(*bytes)),
            Self::Disk(bytes) => {
                format!("it put more into its private folder than the {} it may", size(*bytes))
            }
            Self::File(Some(path)) => {
                format!("the sandbox kept it from `{}`, which was not granted: {grant}", path.display())
            }
            Self::File(None) => format!("the sandbox kept it from a file that was not granted: {grant}"),
            Self::ReadOnly(Some(path)) => {
                format!(
                    "the sandbox kept it from changing `{}`, which it may only read: {grant}",
                    path.display()
                )
            }
            Self::ReadOnly(None) => {
                format!("the sandbox kept it from changing a file that it may only read: {grant}")
            }
            Self::Network => format!("the sandbox kept it from the network, which was not granted: {grant}"),
            Self::Call => "the sandbox kept it from a system call that leads out of it".to_owned(),
        }
    }

    /// The message in Chinese.
    pub fn chinese(&self) -> String {
        let grant = "如确有需要，请授权";
        match self {
            Self::Memory(bytes) => format!("它使用的内存超过了允许的 {}", size(*bytes)),
            Self::Cpu(time) => format!("它使用的 CPU 时间超过了允许的 {} 秒", time.as_secs()),
            Self::Processes(count) => format!("它启动的进程和线程超过了允许的 {count} 个"),
            Self::OpenFiles(count) => format!("它同时打开的文件超过了允许的 {count} 个"),
            Self::FileSize(bytes) => format!("它写入的单个文件超过了允许的 {}", size(*bytes)),
            Self::Disk(bytes) => format!("它写入私有目录的内容超过了允许的 {}", size(*bytes)),
            Self::File(Some(path)) => format!("沙箱不允许它访问未授权的 `{}`：{grant}", path.display()),
            Self::File(None) => format!("沙箱不允许它访问未授权的文件：{grant}"),
            Self::ReadOnly(Some(path)) => format!("沙箱不允许它修改只读的 `{}`：{grant}", path.display()),
            Self::ReadOnly(None) => format!("沙箱不允许它修改只读的文件：{grant}"),
            Self::Network => format!("沙箱不允许它访问网络：{grant}"),
            Self::Call => "沙箱拒绝了它的越界系统调用".to_owned(),
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.english())
    }
}

/// Formats a size.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}
