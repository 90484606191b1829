//! TLS settings.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use crate::wire::error::{ModelError, ModelErrorKind};

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
        let invalid = |error: &dyn std::fmt::Display| {
            let message = format!("{} holds no certificates: {error}", file.display());
            ModelError::new(ModelErrorKind::Configuration, message)
        };
        for certificate in CertificateDer::pem_file_iter(file).map_err(|error| invalid(&error))? {
            let certificate = certificate.map_err(|error| invalid(&error))?;
            roots.add(certificate).map_err(|error| invalid(&error))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| {
            ModelError::new(ModelErrorKind::Configuration, format!("no TLS: {error}"))
        })?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
