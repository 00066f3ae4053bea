//! Reads the servers of a client's file.

use crate::entry::ReadResult;
use crate::environment::ClientEnvironment;
use crate::error::ConfigError;
use crate::format::strip_bom;
use crate::places::Place;
use crate::reading::Context;

/// Reads the servers from the text of a client's file, in its order. An invalid entry does not affect the others.
pub fn read(
    place: &Place,
    text: &str,
    environment: &ClientEnvironment,
) -> Result<Vec<ReadResult>, ConfigError> {
    let document = place.client.format().syntax.parse(&place.file, strip_bom(text))?;
    Ok(place.client.program().read(&document, &Context::new(&place.scope, environment)))
}
