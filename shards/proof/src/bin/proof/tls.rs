//! Certificates for a node with TLS that checks its clients' certificates.

use std::fs;
use std::io;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use requeue_shards::etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};

use crate::cluster::Access;

/// An authority, and its signed certificates.
pub(crate) struct Certificates {
    authority: String,
    client: (String, String),
}

impl Certificates {
    /// Writes the files of a node to a folder.
    pub(crate) fn write(folder: &Path) -> io::Result<Self> {
        let (authority, server, client) = signed().map_err(io::Error::other)?;
        fs::create_dir_all(folder)?;
        fs::write(folder.join("authority.pem"), &authority)?;
        fs::write(folder.join("server.pem"), server.0)?;
        fs::write(folder.join("server.key"), server.1)?;
        Ok(Self { authority, client })
    }

    /// The options to connect to a node with the files of a folder.
    pub(crate) fn access(&self, folder: &Path) -> Access {
        let file = |name: &str| folder.join(name).display().to_string();
        let arguments = [
            ("--cert-file", "server.pem"),
            ("--key-file", "server.key"),
            ("--trusted-ca-file", "authority.pem"),
        ];
        let arguments = arguments.map(|(option, name)| format!("{option}={}", file(name)));
        let required = "--client-cert-auth".to_owned();
        Access {
            scheme: "https",
            options: self.options(),
            arguments: arguments.into_iter().chain([required]).collect(),
        }
    }

    fn options(&self) -> ConnectOptions {
        let identity = Identity::from_pem(&self.client.0, &self.client.1);
        ConnectOptions::new().with_tls(self.trusted().identity(identity))
    }

    /// The options of a client without a certificate.
    pub(crate) fn strangers_options(&self) -> ConnectOptions {
        ConnectOptions::new().with_tls(self.trusted())
    }

    fn trusted(&self) -> TlsOptions {
        TlsOptions::new().ca_certificate(Certificate::from_pem(&self.authority))
    }
}

/// A certificate and its key, as text.
type Pair = (String, String);

fn signed() -> Result<(String, Pair, Pair), rcgen::Error> {
    let mut params = CertificateParams::new([])?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    let sign = |purposes: &[ExtendedKeyUsagePurpose]| {
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, "proof");
        params.extended_key_usages = purposes.to_vec();
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &authority)?;
        Ok::<Pair, rcgen::Error>((certificate.pem(), key.serialize_pem()))
    };
    let [of_client, of_server] = [
        ExtendedKeyUsagePurpose::ClientAuth,
        ExtendedKeyUsagePurpose::ServerAuth,
    ];
    let client = sign(std::slice::from_ref(&of_client))?;
    // A node is its own client too.
    let server = sign(&[of_client, of_server])?;
    Ok((authority.pem(), server, client))
}
