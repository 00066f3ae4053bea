//! Errors of opening a store. Later errors are `StoreError` of `toolhub_core`.

use std::path::PathBuf;

use toolhub_core::lang::{Lang, Localize as _, LocalizedText};

use crate::private_file::PrivateError;

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder could not be created.
    #[error("the folder `{}` could not be made", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The folder or a file in it does not belong to the user.
    #[error(transparent)]
    Private(#[from] PrivateError),
    /// The database was written by a newer version of toolhub.
    #[error(
        "the database has version {found}, this toolhub supports up to {known}: use a newer toolhub, or another `--home`"
    )]
    Newer {
        /// The version of the database.
        found: usize,
        /// The newest version that this program supports.
        known: usize,
    },
    /// The file is damaged or not a database.
    #[error(
        "`{}` is damaged, or not a database: it was left as it is; move it away to start afresh", file.display()
    )]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The error of SQLite.
        #[source]
        source: rusqlite::Error,
    },
    /// Another error of SQLite.
    #[error("the database could not be opened: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The database thread could not be started.
    #[error("the database's thread could not be started")]
    Thread(#[source] std::io::Error),
    /// The URL is invalid.
    #[error("the database's URL is not usable: {0}")]
    Url(String),
    /// The program was built without the feature `postgres`.
    #[error(
        "this toolhub was built without PostgreSQL, which `[store] url` asks for: install a package, which has it, or build with `--features postgres`; without `[store] url` calls are recorded in the data folder"
    )]
    WithoutPostgres,
    /// PostgreSQL could not be reached, or rejected the connection.
    #[error("PostgreSQL at `{location}` could not be used: {cause}")]
    Postgres {
        /// The location without the password.
        location: String,
        /// The cause.
        cause: String,
    },
    /// The signing key of the audit log cannot be used.
    #[error("the audit key `{}` cannot be used: {}", path.display(), why.localize(Lang::En))]
    AuditKey {
        /// The file.
        path: PathBuf,
        /// The cause.
        why: LocalizedText,
    },
    /// The TLS certificate of PostgreSQL could not be verified.
    #[error(
        "PostgreSQL at `{location}` did not prove by TLS who it is, which a server on another machine must (`sslmode=verify-full`): {cause}; give a certificate of your own authority with `sslrootcert=FILE` in the URL, or write `sslmode=disable` to send password and data in plain text"
    )]
    Unverified {
        /// The location without the password.
        location: String,
        /// The cause.
        cause: String,
    },
}

impl OpenError {
    /// The message in Chinese, if there is one.
    pub fn chinese(&self) -> Option<String> {
        match self {
            Self::Private(error) => Some(error.localize(Lang::Zh)),
            Self::Unverified { location, cause } => Some(format!(
                "`{location}` 的 PostgreSQL 未能通过 TLS 证明身份，而其他机器上的服务器必须如此（`sslmode=verify-full`）：{cause}；自建证书颁发机构请在 URL 中加 `sslrootcert=文件`；若确实要明文传输密码和数据，请写 `sslmode=disable`"
            )),
            Self::AuditKey { path, why } => {
                Some(format!("无法使用审计密钥 `{}`：{}", path.display(), why.localize(Lang::Zh)))
            }
            Self::WithoutPostgres => Some(
                "`[store] url` 需要 PostgreSQL，但本 toolhub 编译时未包含它：请安装软件包版本（已包含），或用 `--features postgres` 重新编译；不写 `[store] url` 时，调用记录保存在数据目录中"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}
