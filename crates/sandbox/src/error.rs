//! Errors of preparing a sandbox.

use std::io;
use std::path::PathBuf;

use crate::program::ProgramRefusal;
use crate::protection::MissingProtection;

/// Why a command could not be sandboxed. It was not started.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// Protections are missing that the policy does not allow to be missing.
    #[error(
        "this system lacks protections of the sandbox: {}; name them in `allow_missing` to go without them",
        names(.0)
    )]
    Missing(Vec<MissingProtection>),
    /// A granted path cannot be used.
    #[error("`{}` was granted but cannot be opened: correct the path, or take it off the grants", path.display())]
    Grant {
        /// The granted path.
        path: PathBuf,
        /// The system error.
        #[source]
        source: io::Error,
    },
    /// A symbolic link would make a grant wider than its path suggests.
    #[error(
        "`{}` was granted and is a link to `{}`, which contains more than that: grant the intended folder by its own path",
        path.display(), target.display()
    )]
    TooWide {
        /// The granted path.
        path: PathBuf,
        /// The target of the link.
        target: PathBuf,
    },
    /// A program is refused.
    #[error("`{}` cannot be the interpreter: {refusal}", path.display())]
    Program {
        /// The path of the program.
        path: PathBuf,
        /// The reason.
        refusal: ProgramRefusal,
    },
    /// The private folder could not be created.
    #[error("no private folder can be made in `{}`: see whether it is full, or set TMPDIR", path.display())]
    Temporary {
        /// The parent folder.
        path: PathBuf,
        /// The system error.
        #[source]
        source: io::Error,
    },
    /// A system call failed that the system should support.
    #[error("the sandbox could not be prepared: {step}")]
    Prepare {
        /// The failed step.
        step: &'static str,
        /// The system error.
        #[source]
        source: io::Error,
    },
    /// An argument, a variable or a path contains a NUL byte.
    #[error("`{0}` contains a zero byte: leave it out")]
    ZeroByte(String),
}

impl SandboxError {
    /// The message in Chinese.
    pub fn chinese(&self) -> String {
        match self {
            Self::Missing(missing) => {
                let parts =
                    missing.iter().map(|entry| format!("`{}`（{}）", entry.protection, entry.chinese));
                let parts: Vec<String> = parts.collect();
                format!("本系统缺少以下沙箱保护：{}；若可以不要，请写入 `allow_missing`", parts.join("、"))
            }
            Self::Grant { path, source } => {
                format!("已授权的 `{}` 无法打开（{source}）：请更正路径，或取消授权", path.display())
            }
            Self::TooWide { path, target } => format!(
                "已授权的 `{}` 是指向 `{}` 的链接，范围超出授权：请直接用所需目录的路径授权",
                path.display(),
                target.display()
            ),
            Self::Program { path, refusal } => {
                format!("`{}` 不能用作解释器：{}", path.display(), refusal.chinese())
            }
            Self::Temporary { path, source } => {
                format!(
                    "无法在 `{}` 中建立私有目录（{source}）：请检查磁盘空间，或设置 TMPDIR",
                    path.display()
                )
            }
            Self::Prepare { step, source } => format!("无法准备沙箱：{step}（{source}）"),
            Self::ZeroByte(text) => format!("`{text}` 含有零字节：请去掉"),
        }
    }
}

fn names(missing: &[MissingProtection]) -> String {
    missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
