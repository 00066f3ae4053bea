//! Replacement for PostgreSQL in builds without the feature `postgres`: rejects every URL, with the next step.

use std::convert::Infallible;
use std::str::FromStr;

use crate::error::OpenError;

/// The URL of a PostgreSQL database. In builds without PostgreSQL this type has no values.
#[cfg_attr(feature = "postgres", expect(unreachable_pub, reason = "only the test below uses it then"))]
#[derive(Debug, Clone)]
pub struct PgUrl(Infallible);

impl PgUrl {
    #[cfg(not(feature = "postgres"))]
    pub(crate) fn absurd<T>(&self) -> T {
        match self.0 {}
    }
}

impl FromStr for PgUrl {
    type Err = OpenError;

    fn from_str(_: &str) -> Result<Self, OpenError> {
        Err(OpenError::WithoutPostgres)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The URL may contain a password, and the next step must not depend on the language.
    #[test]
    fn rejects_urls_without_printing_them_and_names_the_missing_feature() {
        let error = "postgres://ann:s3cret@db/hub".parse::<PgUrl>().unwrap_err();
        for text in [error.to_string(), error.chinese().unwrap()] {
            assert!(text.contains("--features postgres") && text.contains("[store] url"), "{text}");
            assert!(!text.contains("s3cret"), "{text}");
        }
    }
}
