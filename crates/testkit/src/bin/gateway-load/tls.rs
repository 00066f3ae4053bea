//! TLS on both sides of the baseline, with a certificate from a file.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// A server configuration with that certificate and key, for HTTP/1.1.
pub(crate) fn server(certificate: &str, key: &str) -> Result<Arc<ServerConfig>> {
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?.with_no_client_auth();
    let mut config = builder.with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// A client configuration that trusts that certificate.
pub(crate) fn client(certificate: &str) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for entry in CertificateDer::pem_file_iter(certificate)? {
        roots.add(entry?).context("the certificate cannot be trusted")?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    Ok(builder.with_safe_default_protocol_versions()?.with_root_certificates(roots).with_no_client_auth())
}
