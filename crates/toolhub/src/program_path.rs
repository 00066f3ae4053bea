//! The path of the running program, for entries in the files of MCP clients.

use std::path::PathBuf;

/// The path of this program: the symbolic link that it was started by, if there is one, since the link stays valid when an
/// upgrade replaces its target.
pub fn program_path() -> std::io::Result<PathBuf> {
    let current_program = std::env::current_exe()?;
    let invoked_as = PathBuf::from(std::env::args_os().next().unwrap_or_default());
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut ways: Vec<PathBuf> = match invoked_as.components().count() {
        0 | 1 => std::env::split_paths(&paths).map(|folder| folder.join(&invoked_as)).collect(),
        _ => vec![std::path::absolute(&invoked_as)?],
    };
    ways.retain(|way| {
        way.is_absolute()
            && way.canonicalize().is_ok_and(|end| Some(end) == current_program.canonicalize().ok())
    });
    Ok(ways.into_iter().next().unwrap_or(current_program))
}
