//! Which names the service answers to, and which pages may write: this keeps a web site that is
//! open in a browser nearby away from it. The window checks the same for its own pages.
//!
//! A site can have its own name resolve to this address. Its requests then carry that name in
//! `Host`. It can also send a request to this address as it is. That carries the site in `Origin`.

use std::net::IpAddr;
use std::str::FromStr;

use axum::http::header::{HOST, HeaderMap, HeaderValue, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{Method, StatusCode, Uri};

use crate::api::Refused;

/// A name of the service, in lower case and without a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host(pub(crate) String);

/// Checks the `Host` of a request, and its `Origin` if it is a write. `names` are the names of the
/// service other than `localhost` and addresses.
pub(crate) fn check(
    names: &[Host],
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), Refused> {
    let bad = || Refused::input("one Host header has to name this service");
    let mut values = headers.get_all(HOST).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(bad());
    };
    let text = value.to_str().map_err(|_| bad())?;
    // A target such as `http://name/path` takes precedence over the header.
    let target = uri.authority().map(Authority::as_str);
    for named in [Some(text), target].into_iter().flatten() {
        let Host(name) = host(named).ok_or_else(bad)?;
        // A site can rebind its name to this address, but not make a browser send an address.
        let is_address = name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        if !is_address && name != "localhost" && !names.iter().any(|own| own.0 == name) {
            let why = "this service has no such name: start it with --host NAME to give it one";
            return Err(Refused::new(StatusCode::MISDIRECTED_REQUEST, why));
        }
    }
    let is_read = [Method::GET, Method::HEAD].contains(method);
    let mut origins = headers.get_all(ORIGIN).iter();
    if is_read || origins.all(|origin| is_same(origin, text)) {
        return Ok(());
    }
    let why = "a page from another origin may not change anything here";
    Err(Refused::new(StatusCode::FORBIDDEN, why))
}

/// Returns whether an `Origin` is the page that this `Host` serves. A proxy in front may add TLS.
fn is_same(origin: &HeaderValue, host: &str) -> bool {
    let name = origin.to_str().ok().and_then(|text| text.split_once("://"));
    name.is_some_and(|(_, name)| name.eq_ignore_ascii_case(host))
}

/// Reads a name with a port or without.
fn host(text: &str) -> Option<Host> {
    let authority: Authority = text.parse().ok()?;
    let name = authority.host();
    let port = authority.port().map_or(0, |port| port.as_str().len() + 1);
    // Anything else is a user, or a port that is none.
    let is_plain = !name.is_empty() && name.len() + port == text.len();
    is_plain.then(|| Host(name.to_ascii_lowercase()))
}

impl FromStr for Host {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = host(text).filter(|host| host.0.len() == text.len());
        found.ok_or("no host name without a port")
    }
}
