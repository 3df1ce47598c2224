//! Signatures, by which a receiver knows who sent a delivery, and when: the symmetric ones of
//! [Standard Webhooks](https://www.standardwebhooks.com), for which receivers have libraries.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use standardwebhooks::Webhook;

/// What the service and a receiver share. It has no `Debug`, and is never shown again.
pub(crate) struct Secret(Webhook);

/// How many bytes of the id are of the hash.
const ID_BYTES: usize = 16;

impl Secret {
    /// Parses `whsec_` and 24 to 64 bytes in base64. The error says nothing of the text.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        const WRONG: &str = "a secret is whsec_ and 24 to 64 bytes in base64";
        let encoded = text.strip_prefix("whsec_").ok_or(WRONG)?;
        let bytes = BASE64_STANDARD.decode(encoded).map_err(|_| WRONG)?;
        if !(24..=64).contains(&bytes.len()) {
            return Err(WRONG);
        }
        Webhook::from_bytes(bytes).map(Self).map_err(|_| WRONG)
    }

    /// Returns the signature of a delivery that is made at `timestamp`, in seconds since 1970.
    /// `None` if the body is not text.
    pub(crate) fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> Option<String> {
        self.0.sign(id, timestamp, body).ok()
    }
}

/// Returns the id of a delivery: the same for every attempt to deliver one version of an object, and
/// different for any other. A receiver that has seen it has seen the delivery.
pub(crate) fn id(body: &[u8]) -> String {
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
        // The example of the specification.
        let secret = Secret::parse(SECRET).ok().unwrap();
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        let signature = secret.sign(id, 1_614_265_330, br#"{"test": 2432232314}"#);
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(signature.as_deref(), Some(expected));
    }

    #[test]
    fn an_id_is_the_same_for_the_same_delivery() {
        assert_eq!(id(b"{}"), id(b"{}"));
        assert_ne!(id(b"{}"), id(b"[]"));
        // What is signed is separated by full stops.
        assert!(!id(b"{}").contains('.'));
    }

    #[test]
    fn a_secret_has_24_to_64_bytes() {
        let longest = format!("whsec_{}==", "A".repeat(86));
        assert!(Secret::parse(SECRET).is_ok() && Secret::parse(&longest).is_ok());
        let too_long = format!("whsec_{}", "A".repeat(88));
        for text in ["", "whsec_", &SECRET[6..], &SECRET[..36], &too_long] {
            assert!(Secret::parse(text).is_err(), "{text}");
        }
    }
}
