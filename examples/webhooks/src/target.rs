//! A receiver's URL: which ones are valid, and what may be shown of them.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::Uri;
use hyper::header::HeaderValue;
use hyper::http::uri::{Authority, Parts, Scheme};

use crate::address::is_public;

/// Where to deliver.
///
/// User, password, path and query may be secrets. Its `Display` and `Debug` leave them out, in
/// errors and answers as well as in logs.
#[derive(Clone)]
pub(crate) struct Target {
    /// Without user and password.
    uri: Uri,
    /// Of user and password, if there are any.
    authorization: Option<HeaderValue>,
}

pub(crate) const URL_LEN_MAX: usize = 2048;

impl Target {
    /// Parses a URL. The error says what is wrong, and quotes nothing of the URL.
    ///
    /// An address is checked here, a name cannot be: what it stands for is checked whenever a
    /// connection is made.
    pub(crate) fn parse(url: &str, allow_private: bool) -> Result<Self, &'static str> {
        if url.len() > URL_LEN_MAX {
            return Err("the URL is too long: 2048 bytes at most");
        }
        let uri: Uri = url.parse().map_err(|_| "this is no URL")?;
        let mut parts: Parts = uri.into_parts();
        if ![Some(Scheme::HTTP), Some(Scheme::HTTPS)].contains(&parts.scheme) {
            return Err("the URL has to begin with http:// or https://");
        }
        let authority = parts.authority.take().ok_or("the URL names no host")?;
        let (login, place) = match authority.as_str().rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, authority.as_str()),
        };
        let authorization = login.map(basic).transpose()?;
        let place: Authority = place.parse().map_err(|_| "the URL names no host")?;
        let has_port = place.as_str() != place.host();
        if has_port && place.port_u16().is_none_or(|port| port == 0) {
            return Err("the URL's port is none");
        }
        let host = bare(place.host());
        if host.is_empty() {
            return Err("the URL names no host");
        }
        let address = host.parse::<IpAddr>();
        if !allow_private && address.is_ok_and(|address| !is_public(address)) {
            return Err("the URL's address is not public");
        }
        parts.authority = Some(place);
        let uri = Uri::from_parts(parts).map_err(|_| "this is no URL")?;
        Ok(Self { uri, authorization })
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Returns host and port in one spelling. Two names for one address are two hosts.
    pub(crate) fn host(&self) -> Arc<str> {
        let host = self.uri.host().unwrap_or_default().to_ascii_lowercase();
        let is_https = self.uri.scheme() == Some(&Scheme::HTTPS);
        let port = self
            .uri
            .port_u16()
            .unwrap_or(if is_https { 443 } else { 80 });
        format!("{host}:{port}").into()
    }

    /// Returns whether scheme, host and port are the same.
    pub(crate) fn has_origin_of(&self, other: &Self) -> bool {
        self.uri.scheme() == other.uri.scheme() && self.host() == other.host()
    }

    pub(crate) fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.uri.scheme_str().unwrap_or_default();
        let authority = self.uri.authority().map_or("", Authority::as_str);
        write!(f, "{scheme}://{authority}")?;
        let path_and_query = self.uri.path_and_query();
        match path_and_query.is_none_or(|rest| rest.as_str() == "/") {
            true => f.write_str("/"),
            false => f.write_str("/…"),
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

/// A host without the brackets that a URL has around an IPv6 address.
pub(crate) fn bare(host: &str) -> &str {
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    inner.unwrap_or(host)
}

/// Converts `user:password@` into the header that a browser sends.
fn basic(login: &str) -> Result<HeaderValue, &'static str> {
    const WRONG: &str = "the URL's user or password is wrongly encoded";
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let mut plain = percent_decoded(user).ok_or(WRONG)?;
    plain.push(b':');
    plain.extend(percent_decoded(password).ok_or(WRONG)?);
    let encoded = BASE64_STANDARD.encode(plain);
    let mut value = HeaderValue::from_str(&format!("Basic {encoded}")).map_err(|_| WRONG)?;
    value.set_sensitive(true);
    Ok(value)
}

fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('%');
    let mut decoded = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        decoded.push(u8::from_str_radix(digits, 16).ok()?);
        decoded.extend_from_slice(rest.as_bytes());
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(url: &str, because: &str) {
        let why = Target::parse(url, false).unwrap_err();
        assert!(why.contains(because), "{url}: {why}");
    }

    #[test]
    fn only_the_origin_is_shown() {
        let cases = [
            ("http://a.example", "http://a.example/"),
            ("http://a.example/", "http://a.example/"),
            (
                "https://me:pass@a.example:99/hush",
                "https://a.example:99/…",
            ),
            ("https://a.example/?token=hush", "https://a.example/…"),
            (
                "http://[2606:4700::1]:81/#hush",
                "http://[2606:4700::1]:81/",
            ),
        ];
        for (url, shown) in cases {
            let target = Target::parse(url, false).unwrap();
            assert_eq!(target.to_string(), shown);
            assert_eq!(format!("{target:?}"), format!("Target({shown})"));
            assert!(!target.uri().to_string().contains('@'));
        }
    }

    #[test]
    fn a_host_has_one_name() {
        for (url, host) in [
            ("http://a.example/x", "a.example:80"),
            ("https://me@A.Example?y", "a.example:443"),
            ("http://a.example:8080/", "a.example:8080"),
            ("https://[2606:4700::1]/", "[2606:4700::1]:443"),
        ] {
            assert_eq!(&*Target::parse(url, false).unwrap().host(), host);
        }
    }

    #[test]
    fn errors_tell_nothing_of_the_url() {
        for url in [
            "hush",
            "ftp://hush/",
            "http://hush:0/",
            "http://%zz:hush@a/",
        ] {
            let why = Target::parse(url, false).unwrap_err();
            assert!(!why.contains("hush"));
        }
    }

    #[test]
    fn what_is_no_receiver_is_refused() {
        refused(
            &format!("http://a.example/{}", "x".repeat(2048)),
            "too long",
        );
        for url in ["", "a b", "http://", "http://a b/", "http://a.example/\n"] {
            refused(url, "URL");
        }
        for url in [
            "ftp://a.example/",
            "file://a/etc/passwd",
            "//a.example/",
            "/x",
        ] {
            refused(url, "http://");
        }
        for url in [
            "http://a.example:0/",
            "http://a.example:/",
            "http://a.example:65536/",
        ] {
            refused(url, "URL");
        }
        refused("http://user@/", "URL");
        for login in ["%", "%2", "%zz", "%+1", "a:%"] {
            refused(&format!("http://{login}@a.example/"), "URL");
        }
    }

    #[test]
    fn private_addresses_are_refused_unless_allowed() {
        for url in [
            "http://127.0.0.1/",
            "http://me@10.0.0.1:80/",
            "https://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://169.254.169.254/latest/meta-data",
        ] {
            refused(url, "not public");
            assert!(Target::parse(url, true).is_ok());
        }
    }

    #[test]
    fn user_and_password_become_a_header() {
        let header = |url| {
            let target = Target::parse(url, false).unwrap();
            let header = target.authorization().cloned();
            assert!(header.as_ref().is_none_or(HeaderValue::is_sensitive));
            header.map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(header("http://a.example/"), None);
        // The example of RFC 7617.
        let expected = Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==".to_owned());
        assert_eq!(header("http://Aladdin:open%20sesame@a.example/"), expected);
        assert_eq!(header("http://a@a.example/"), Some("Basic YTo=".into()));
    }
}
