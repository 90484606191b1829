//! TLS settings.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use switchboard_core::callback::BoxError;

use crate::wire::model_error::ModelError;

/// The system's certificates, loaded once per process.
static SYSTEM: LazyLock<RootCertStore> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    for problem in &system.errors {
        tracing::warn!(%problem, "some of the system's certificates could not be loaded");
    }
    roots.add_parsable_certificates(system.certs);
    roots
});

/// A TLS configuration that trusts the system's certificates, or those of `SSL_CERT_FILE` and
/// `SSL_CERT_DIR`, and the certificates of `file`.
pub(super) fn config(file: Option<&Path>) -> Result<ClientConfig, ModelError> {
    let mut roots = SYSTEM.clone();
    if let Some(file) = file {
        add_certificates(&mut roots, file).map_err(|error| {
            let message = format!("{} holds no certificates: {error}", file.display());
            ModelError::configuration(message)
        })?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| ModelError::configuration(format!("no TLS: {error}")))?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    // A server that speaks HTTP/2 alone refuses the connection, instead of answering in another protocol.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn add_certificates(roots: &mut RootCertStore, file: &Path) -> Result<(), BoxError> {
    for certificate in CertificateDer::pem_file_iter(file)? {
        roots.add(certificate?)?;
    }
    Ok(())
}
