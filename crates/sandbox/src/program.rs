//! A program that runs in the sandbox, and the reasons for refusing one. `linux/installation.rs` decides what it may
//! read.

use std::fmt;
use std::path::{Component, Path, PathBuf};

/// Folders that contain no programs: their content depends on the reading process.
const KERNEL_FOLDERS: [&str; 3] = ["/proc", "/sys", "/dev"];

/// A program and the origin of its path. It may read its own file and, within a recognised installation (a virtual
/// environment, pyenv, nvm), the program and library folders of that installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxProgram {
    /// The absolute path of its file.
    pub path: PathBuf,
    /// Whether the origin of the path is trusted.
    pub named_by: NamedBy,
    /// Further installations that it needs, such as `sys.base_prefix` of Python.
    pub prefixes: Vec<PathBuf>,
}

/// The origin of a program's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedBy {
    /// The user, in the configuration or by `PATH`.
    Owner,
    /// The shebang line of a script. Stricter rules apply: see [`ProgramRefusal`].
    Script,
}

impl SandboxProgram {
    /// A program chosen by the user.
    pub fn of_owner(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), named_by: NamedBy::Owner, prefixes: Vec::new() }
    }

    /// A program named in the shebang line of a script.
    pub fn of_script(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), named_by: NamedBy::Script, prefixes: Vec::new() }
    }

    /// Checks the path without access to the file system.
    pub fn check_name(path: &Path) -> Result<(), ProgramRefusal> {
        if !path.is_absolute() {
            return Err(ProgramRefusal::Relative);
        }
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(ProgramRefusal::ParentFolder);
        }
        if KERNEL_FOLDERS.iter().any(|folder| path.starts_with(folder)) {
            return Err(ProgramRefusal::KernelFolder);
        }
        Ok(())
    }
}

/// Why a program is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramRefusal {
    /// Its path is relative.
    Relative,
    /// Its path has `..` in it.
    ParentFolder,
    /// It is below `/proc`, `/sys` or `/dev`.
    KernelFolder,
    /// It cannot be opened; contains the system error.
    Missing(String),
    /// It is a folder, a device or a socket.
    NotFile,
    /// It may not be executed.
    NotExecutable,
    /// It, or a folder of its installation, can be replaced by other users.
    Replaceable,
    /// It is a script outside a recognised installation.
    NotNative,
    /// It is below a folder that holds data of toolhub.
    Protected,
    /// It was replaced during the check.
    Changed,
}

impl ProgramRefusal {
    /// The message in English.
    pub fn english(&self) -> String {
        match self {
            Self::Relative => "its path is relative: write the absolute path".into(),
            Self::ParentFolder => "its path contains `..`: write the path without it".into(),
            Self::KernelFolder => {
                "`/proc`, `/sys` and `/dev` hold no interpreters: name the installed program".into()
            }
            Self::Missing(why) => format!("it cannot be opened ({why}): install it, or correct the path"),
            Self::NotFile => "it is not a regular file: name the program itself".into(),
            Self::NotExecutable => "it is not executable: name a program, or set its executable bit".into(),
            Self::Replaceable => {
                "other users can replace it: install it where only you or the administrator can write".into()
            }
            Self::NotNative => {
                "it is a script outside a recognised installation (a virtual environment, pyenv, nvm, Homebrew): name the interpreter of that script".into()
            }
            Self::Protected => "it is inside toolhub's data folder: move it elsewhere".into(),
            Self::Changed => "it was replaced while it was being checked: try again".into(),
        }
    }

    /// The message in Chinese.
    pub fn chinese(&self) -> String {
        match self {
            Self::Relative => "路径是相对路径：请写绝对路径".into(),
            Self::ParentFolder => "路径中含有 `..`：请去掉后重写".into(),
            Self::KernelFolder => "`/proc`、`/sys`、`/dev` 下没有解释器：请指定已安装的程序".into(),
            Self::Missing(why) => format!("无法打开（{why}）：请安装，或更正路径"),
            Self::NotFile => "不是普通文件：请指定程序本身".into(),
            Self::NotExecutable => "不可执行：请指定程序，或设置可执行权限".into(),
            Self::Replaceable => "其他用户可以替换它：请安装到只有你或管理员可写的位置".into(),
            Self::NotNative => {
                "它是脚本，且不在可识别的安装目录（虚拟环境、pyenv、nvm、Homebrew）中：请直接指定该脚本的解释器".into()
            }
            Self::Protected => "位于 toolhub 的数据目录中：请移到别处".into(),
            Self::Changed => "检查期间它被替换：请重试".into(),
        }
    }
}

impl fmt::Display for ProgramRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.english())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn rejects_program_paths_that_lead_elsewhere() {
        for (path, expect) in [
            ("/tmp/../bin/sh", ProgramRefusal::ParentFolder),
            ("/usr/bin/..", ProgramRefusal::ParentFolder),
            ("bin/sh", ProgramRefusal::Relative),
            ("", ProgramRefusal::Relative),
            ("/proc/self/root/bin/sh", ProgramRefusal::KernelFolder),
            ("/dev/fd/3", ProgramRefusal::KernelFolder),
            ("//proc/1/exe", ProgramRefusal::KernelFolder),
            ("/./sys/x", ProgramRefusal::KernelFolder),
        ] {
            assert_eq!(SandboxProgram::check_name(Path::new(path)), Err(expect), "{path}");
        }
        assert_eq!(SandboxProgram::check_name(Path::new("/usr/bin/python3")), Ok(()));
    }
}
