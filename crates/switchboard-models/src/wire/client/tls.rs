//! Whom to trust.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use crate::wire::error::{ModelError, ModelErrorKind};

/// What the system trusts; reading it takes a while.
static SYSTEM: LazyLock<RootCertStore> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    for problem in &system.errors {
        tracing::warn!(%problem, "certificates of the system could not be read");
    }
    roots.add_parsable_certificates(system.certs);
    roots
});

/// Trusts what the system trusts, or what `SSL_CERT_FILE` and `SSL_CERT_DIR` name, and the
/// certificates of `file`.
pub(super) fn config(file: Option<&Path>) -> Result<ClientConfig, ModelError> {
    let mut roots = SYSTEM.clone();
    if let Some(file) = file {
        let unreadable = |error: &dyn std::fmt::Display| {
            let message = format!("{} holds no certificates: {error}", file.display());
            ModelError::new(ModelErrorKind::Configuration, message)
        };
        let found = CertificateDer::pem_file_iter(file).map_err(|error| unreadable(&error))?;
        for certificate in found {
            let certificate = certificate.map_err(|error| unreadable(&error))?;
            roots.add(certificate).map_err(|error| unreadable(&error))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let versions = versions.map_err(|error| {
        ModelError::new(ModelErrorKind::Configuration, format!("no TLS: {error}"))
    })?;
    Ok(versions.with_root_certificates(roots).with_no_client_auth())
}
