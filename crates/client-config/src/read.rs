//! Reads the servers of a client's file.

use crate::entry::ReadResult;
use crate::environment::ClientEnvironment;
use crate::error::ConfigError;
use crate::format::strip_bom;
use crate::locations::ConfigLocation;
use crate::reading::ReadContext;

/// Reads the servers from the text of a client's file, in its order. An invalid entry does not affect the others.
pub fn read_servers(
    location: &ConfigLocation,
    text: &str,
    environment: &ClientEnvironment,
) -> Result<Vec<ReadResult>, ConfigError> {
    let document = location.client.format().syntax.parse(&location.file, strip_bom(text))?;
    Ok(location.client.program().read(&document, &ReadContext::new(&location.scope, environment)))
}
