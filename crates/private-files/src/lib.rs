//! Files and folders that only their owner can read, and atomic replacement of files.
//!
//! - [`create_private_dir`] and [`create_private_parent`] create folders with mode 0700.
//! - [`open_private_file`] opens a file of the program itself. A symbolic link or a file of another user is an error.
//! - [`replace_private`] and [`create_private`] write a file of the program itself as a whole. A symbolic link at its path is
//!   replaced, not followed.
//! - [`UserFile`] replaces a file that the user has named, such as a configuration file. Symbolic links are followed, and devices
//!   are written in place.
//!
//! Every atomic write creates a temporary file with mode 0600 in the folder of the file, writes the content, and renames the
//! temporary file. At no time can another user read it, unless the existing file was readable and its mode is kept
//! ([`FileMode::Existing`]). A failed write removes the temporary file; a killed process leaves it, under a name that begins with
//! [`TEMPORARY_PREFIX`].
//!
//! On other systems than Unix, files and folders have default permissions: the user's profile folder is private there.

mod atomic;
mod private;
mod user_file;

pub use atomic::{SyncMode, TEMPORARY_PREFIX, create_private, replace_private};
pub use private::{create_private_dir, create_private_parent, open_private_file};
pub use user_file::{FileMode, UserFile};
