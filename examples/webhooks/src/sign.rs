//! Signatures, by which a receiver knows who sent a delivery, and when: the symmetric ones of
//! [Standard Webhooks](https://www.standardwebhooks.com), for which receivers have libraries.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use sha2::{Digest, Sha256};

/// What the service and a receiver share. It has no `Debug`, and is never shown again.
#[derive(Clone)]
pub(crate) struct Secret(Hmac<Sha256>);

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

const PREFIX: &str = "whsec_";

/// How many bytes of the id are of the hash.
const ID_BYTES: usize = 16;

impl Secret {
    /// Parses `whsec_` and 24 to 64 bytes in base64. The error says nothing of the text.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        const WRONG: &str = "a secret is whsec_ and 24 to 64 bytes in base64";
        let encoded = text.strip_prefix(PREFIX).ok_or(WRONG)?;
        let bytes = BASE64_STANDARD.decode(encoded).map_err(|_| WRONG)?;
        if !(24..=64).contains(&bytes.len()) {
            return Err(WRONG);
        }
        let key = Hmac::new_from_slice(&bytes).map_err(|_| WRONG)?;
        Ok(Self(key))
    }

    fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        let mut mac = self.0.clone();
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        let signature = mac.finalize().into_bytes();
        format!("v1,{}", BASE64_STANDARD.encode(signature))
    }
}

/// Adds the headers of a delivery that is made at `timestamp`, in seconds since 1970. Without a
/// secret there is no signature.
pub(crate) fn add_headers(
    headers: &mut HeaderMap,
    secret: Option<&Secret>,
    timestamp: u64,
    body: &[u8],
) {
    let id = id(body);
    let signature = secret.map(|secret| secret.sign(&id, timestamp, body));
    headers.insert(TIMESTAMP, HeaderValue::from(timestamp));
    for (name, value) in [(ID, Some(id)), (SIGNATURE, signature)] {
        // All of these are visible ASCII.
        if let Some(Ok(value)) = value.map(HeaderValue::try_from) {
            headers.insert(name, value);
        }
    }
}

/// The same for every attempt to deliver one version of an object, and different for any other: a
/// receiver that has seen it has seen the delivery.
fn id(body: &[u8]) -> String {
    let hash = Sha256::digest(body);
    let some = hash.get(..ID_BYTES).unwrap_or_default();
    format!("msg_{}", BASE64_URL_SAFE_NO_PAD.encode(some))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    #[test]
    fn signatures_are_those_of_standard_webhooks() {
        // The example that its libraries are tested with.
        let secret = Secret::parse(SECRET).unwrap();
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        let signature = secret.sign(id, 1_614_265_330, br#"{"test": 2432232314}"#);
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(signature, expected);
    }

    #[test]
    fn without_a_secret_there_is_no_signature() {
        let mut headers = HeaderMap::new();
        add_headers(&mut headers, None, 7, b"{}");
        assert_eq!(headers[TIMESTAMP], "7");
        assert!(!headers.contains_key(SIGNATURE));
        add_headers(&mut headers, Secret::parse(SECRET).ok().as_ref(), 7, b"{}");
        assert!(headers.contains_key(SIGNATURE));
    }

    #[test]
    fn an_id_is_the_same_for_the_same_delivery() {
        assert_eq!(id(b"{}"), id(b"{}"));
        assert_ne!(id(b"{}"), id(b"[]"));
        // What is signed is separated by full stops.
        assert!(!id(b"{}").contains('.'));
    }

    #[test]
    fn what_is_no_secret_is_refused() {
        for text in [
            "",
            "whsec_",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa==",
            &format!("whsec_{}", "A".repeat(88)),
        ] {
            assert!(Secret::parse(text).is_err(), "{text}");
        }
        let longest = format!("whsec_{}==", "A".repeat(86));
        assert!(Secret::parse(&longest).is_ok());
    }
}
