//! TLS settings.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use switchboard_core::callback::BoxError;

use crate::model::{RealtimeModelError, RealtimeModelErrorKind};

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
pub(super) fn config(file: Option<&Path>) -> Result<Arc<ClientConfig>, RealtimeModelError> {
    let configuration =
        |message| RealtimeModelError::new(RealtimeModelErrorKind::Configuration, message);
    let mut roots = SYSTEM.clone();
    if let Some(file) = file {
        add_certificates(&mut roots, file).map_err(|error| {
            configuration(format!("{} holds no certificates: {error}", file.display()))
        })?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| configuration(format!("no TLS: {error}")))?;
    Ok(Arc::new(
        builder.with_root_certificates(roots).with_no_client_auth(),
    ))
}

fn add_certificates(roots: &mut RootCertStore, file: &Path) -> Result<(), BoxError> {
    for certificate in CertificateDer::pem_file_iter(file)? {
        roots.add(certificate?)?;
    }
    Ok(())
}
