//! The URL of a PostgreSQL database. Its password is never displayed.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::error::OpenError;
use crate::postgres::security::{Security, WrittenMode};

/// The URL of a PostgreSQL database: `postgres://user:password@host:5432/name?sslmode=…`.
///
/// `sslmode` is `verify-full` by default; `require` and `verify-ca` mean the same: the server's certificate and host name
/// are verified against the system's certificate authorities or those in the file `sslrootcert`. For a server on this
/// machine the default is `prefer`: TLS if the server supports it, without verification. For remote servers, `prefer` and
/// `allow` mean `verify-full`. Only `disable` connects to a remote server without TLS.
#[derive(Clone)]
pub struct PgUrl {
    pub(crate) config: Box<Config>,
    pub(crate) root_certificates: Option<PathBuf>,
    pub(crate) security: Security,
}

impl FromStr for PgUrl {
    type Err = OpenError;

    fn from_str(url: &str) -> Result<Self, OpenError> {
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(OpenError::Url("it must begin with `postgres://`".to_owned()));
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        // `sslmode` and `sslrootcert` are parsed here: the library supports neither all modes nor the file.
        let mut written = None;
        let mut root_certificates = None;
        let mut others = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("sslmode", mode_name) => {
                    let mode = ssl_mode(mode_name)?;
                    if written.is_some_and(|before| before != mode) {
                        return Err(OpenError::Url("it has two different `sslmode`".to_owned()));
                    }
                    written = Some(mode);
                }
                ("sslrootcert", file) => root_certificates = Some(PathBuf::from(decoded(file))),
                _ => others.push(pair),
            }
        }
        let rest = if others.is_empty() { base.to_owned() } else { format!("{base}?{}", others.join("&")) };
        // The library's error names only keys, but it is not guaranteed to omit secrets.
        let mut config = Config::from_str(&rest).map_err(|_| {
            let form = "postgres://USER:PASSWORD@HOST:PORT/NAME";
            OpenError::Url(format!("write it as `{form}`, with `%40` for an `@` in the password"))
        })?;
        if config.get_hosts().is_empty() {
            return Err(OpenError::Url("it names no host".to_owned()));
        }
        let security = Security::of(&config, written);
        config.ssl_mode(security.ssl_mode());
        Ok(Self { config: Box::new(config), root_certificates, security })
    }
}

fn ssl_mode(written: &str) -> Result<WrittenMode, OpenError> {
    WrittenMode::parse(written).ok_or_else(|| {
        OpenError::Url(
            "`sslmode` is one of `disable`, `prefer`, `require`, `verify-ca`, `verify-full`".to_owned(),
        )
    })
}

/// Decodes percent-encoding.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        let code = match others {
            [high, low, ..] if *first == b'%' => {
                std::str::from_utf8(&[*high, *low]).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok())
            }
            _ => None,
        };
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &others[2..] } else { others };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Displays host, port and name: enough to identify the database, without secrets.
impl fmt::Display for PgUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        for (index, host) in self.config.get_hosts().iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match host {
                // With an unescaped `@` in the password, a part of it would be parsed as the host.
                Host::Tcp(name) if name.contains(['@', '/', '?', '#', '%']) => write!(f, "{comma}…")?,
                Host::Tcp(name) => write!(f, "{comma}{name}")?,
                #[cfg(unix)]
                Host::Unix(path) => write!(f, "{comma}{}", path.display())?,
            }
            if let Some(port) = self.config.get_ports().get(index).or_else(|| self.config.get_ports().first())
            {
                write!(f, ":{port}")?;
            }
        }
        write!(f, "/{}", self.config.get_dbname().unwrap_or_default())
    }
}

impl fmt::Debug for PgUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PgUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::location::StoreLocation;

    #[test]
    fn never_prints_passwords() {
        for (url, redacted) in [
            ("postgres://ann:s3cret@db.example:5433/hub", "postgres://db.example:5433/hub"),
            (
                "postgresql://ann:s3cret@db/hub?sslmode=verify-full&sslrootcert=a%20b",
                "postgres://db:5432/hub",
            ),
            ("postgres://ann:s3cret@one,two:5/hub", "postgres://one:5432,two:5/hub"),
        ] {
            let url: PgUrl = url.parse().unwrap();
            assert_eq!(url.to_string(), redacted);
            assert!(!format!("{url:?}{:?}", StoreLocation::Postgres(url.clone())).contains("s3cret"));
        }
        for bad in [
            "postgres://ann:s3cret@x@db/hub",
            "postgres://ann:s3cret@db:s3cret/hub",
            "postgres://ann:s3cret@db/hub?sslmode=s3cret",
            "postgres://ann:s3cret@db/hub?s3cret=1",
            "mysql://ann:s3cret@db/hub",
        ] {
            let redacted = match bad.parse::<PgUrl>() {
                Ok(url) => format!("{url} {url:?}"),
                Err(error) => format!("{error} {error:?}"),
            };
            assert!(!redacted.contains("s3cret"), "{bad}: {redacted}");
        }
    }

    #[test]
    fn parses_ssl_mode_and_certificate_path() {
        let url: PgUrl =
            "postgres://h/n?sslmode=verify-full&sslrootcert=a%20b%2Fc&connect_timeout=3".parse().unwrap();
        assert_eq!(url.security, Security::Verified);
        assert_eq!(url.root_certificates, Some(PathBuf::from("a b/c")));
        assert!(url.config.get_connect_timeout().is_some());
    }
}
