//! A receiver's URL: which ones are valid, and what may be shown of them.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use reqwest::Url;

use crate::address::is_public;

/// Where to deliver.
///
/// User, password, path and query may be secrets. Its `Display` and `Debug` leave them out, in
/// errors and answers as well as in logs.
#[derive(Clone)]
pub(crate) struct Target(Url);

pub(crate) const URL_LEN_MAX: usize = 2048;

impl Target {
    /// Parses a URL. The error says what is wrong, and quotes nothing of the URL.
    ///
    /// An address is checked here, however it is written. A name is checked whenever a connection is
    /// made.
    pub(crate) fn parse(url: &str, allow_private: bool) -> Result<Self, &'static str> {
        const WRONG: &str = "this is no URL that begins with http:// or https://";
        if url.len() > URL_LEN_MAX {
            return Err("the URL is too long: 2048 bytes at most");
        }
        let url = Url::parse(url).map_err(|_| WRONG)?;
        let is_http = ["http", "https"].contains(&url.scheme());
        let host = url.host_str().filter(|_| is_http).ok_or(WRONG)?;
        if url.port() == Some(0) {
            return Err("the URL's port is none");
        }
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        if !allow_private && address.is_ok_and(|address| !is_public(address)) {
            return Err("the URL's address is not public");
        }
        Ok(Self(url))
    }

    pub(crate) fn url(&self) -> &Url {
        &self.0
    }

    /// Returns host and port in one spelling. Two names for one address are two hosts.
    pub(crate) fn host(&self) -> Arc<str> {
        let host = self.0.host_str().unwrap_or_default();
        let port = self.0.port_or_known_default().unwrap_or_default();
        format!("{host}:{port}").into()
    }

    /// Returns whether scheme, host and port are the same.
    pub(crate) fn has_origin_of(&self, other: &Self) -> bool {
        self.0.origin() == other.0.origin()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = self.0.path() == "/" && self.0.query().is_none();
        let rest = if is_plain { "" } else { "…" };
        write!(f, "{}/{rest}", self.0.origin().ascii_serialization())
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

#[cfg(test)]
#[path = "../tests/unit/target.rs"]
mod tests;
