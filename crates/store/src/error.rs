//! Why a store could not be opened. What fails later is core's `StoreError`.

use std::path::PathBuf;

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder could not be made.
    #[error("the folder `{}` could not be made", folder.display())]
    Folder {
        /// Which.
        folder: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It was written by a newer program.
    #[error(
        "the database has version {found}, this toolhub knows {known}: use a newer toolhub, or another `--home`"
    )]
    Newer {
        /// Its version.
        found: usize,
        /// The newest this program knows.
        known: usize,
    },
    /// The file is damaged, or something else.
    #[error(
        "`{}` is damaged, or not a database: it was left as it is; move it away to start afresh", file.display()
    )]
    Damaged {
        /// Which.
        file: PathBuf,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// SQLite complained.
    #[error("the database could not be opened: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// Its thread could not be started.
    #[error("the database's thread could not be started")]
    Thread(#[source] std::io::Error),
    /// The URL makes no sense.
    #[error("the database's URL is not usable: {0}")]
    Url(String),
    /// PostgreSQL could not be reached, or turned us away.
    #[error("PostgreSQL at `{place}` could not be used: {cause}")]
    Postgres {
        /// Where, without the password.
        place: String,
        /// What went wrong.
        cause: String,
    },
}
