//! The consent check before a server's program is started or its URL contacted. Transports require a [`Permitted`] spec, and
//! only this file creates one.

use std::ops::Deref;

use toolhub_core::Consent;

use super::spec::{HttpSpec, StdioSpec};
use crate::error::McpError;

/// A transport spec with expanded variables, to which the owner has consented.
#[derive(Debug, Clone)]
pub(crate) struct Permitted<T>(T);

impl<T> Deref for Permitted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl StdioSpec {
    /// Checks `consent`, then expands the variables. They are not read without consent.
    pub(crate) fn permitted(&self, consent: &Consent) -> Result<Permitted<Self>, McpError> {
        let permit = consent.permit().map_err(McpError::hopeless)?;
        let mut spec = self.expanded()?;
        if let Some(folder) = permit.folder()
            && spec.cwd.is_none()
        {
            spec.cwd = Some(folder.to_owned());
        }
        Ok(Permitted(spec))
    }
}

impl HttpSpec {
    /// Checks `consent`, then expands the variables.
    pub(crate) fn permitted(&self, consent: &Consent) -> Result<Permitted<Self>, McpError> {
        let _permit = consent.permit().map_err(McpError::hopeless)?;
        self.expanded().map(Permitted)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn rejects_a_start_without_consent_before_variables_are_read() {
        let spec = StdioSpec { command: "${TOOLHUB_TEST_UNSET}".to_owned(), ..StdioSpec::default() };
        let refused = spec.permitted(&Consent::default()).unwrap_err().to_string();
        assert!(refused.contains("toolhub trust"), "{refused}");
        let unset = spec.permitted(&Consent::of_owner()).unwrap_err().to_string();
        assert!(unset.contains("TOOLHUB_TEST_UNSET"), "{unset}");
        let spec = StdioSpec { command: "x".to_owned(), ..StdioSpec::default() };
        let elsewhere = Consent::of_owner_in(Path::new("/neutral").into());
        assert_eq!(spec.permitted(&elsewhere).unwrap().cwd.as_deref(), Some(Path::new("/neutral")));
        let own = StdioSpec { cwd: Some("/own".into()), ..spec };
        assert_eq!(own.permitted(&elsewhere).unwrap().cwd.as_deref(), Some(Path::new("/own")));
        let spec = HttpSpec { url: "http://127.0.0.1:1".to_owned(), headers: Vec::new() };
        assert!(spec.permitted(&Consent::default()).is_err());
        assert!(spec.permitted(&Consent::of_owner()).is_ok());
    }
}
