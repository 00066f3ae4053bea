//! Converts paths to C strings.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::error::SandboxError;

pub(super) fn c_string(path: &Path) -> Result<CString, SandboxError> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| SandboxError::ZeroByte(path.to_string_lossy().into_owned()))
}
