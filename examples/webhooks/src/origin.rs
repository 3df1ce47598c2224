//! Which names the service answers to, and which pages may write: what keeps a web site that is
//! open in a browser nearby away from it.
//!
//! A site can have its own name resolve to this address; its requests then carry that name in
//! `Host`. It can also send a request to this address as it is; that carries the site in `Origin`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use hyper::header::{HOST, HeaderValue, ORIGIN};
use hyper::http::uri::Authority;
use hyper::{Method, Request};

/// A host as a URL names it, with a port or without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    /// In lower case; an IPv6 address in brackets.
    name: String,
    port: Option<u16>,
}

/// The names of the service other than its address and `localhost`.
#[derive(Debug)]
pub(crate) struct Hosts(pub(crate) Vec<Host>);

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Foreign {
    /// There is not exactly one `Host`, or it is malformed.
    NoHost,
    /// The service has no such name.
    Host,
    /// A page from elsewhere asks for a change.
    Origin,
}

/// The port that a `Host` without one means.
const DEFAULT_PORT: u16 = 80;

impl Hosts {
    /// Checks the `Host` of a request that came in at `local`, and its `Origin` if it is a write.
    pub(crate) fn check<B>(&self, local: SocketAddr, request: &Request<B>) -> Result<(), Foreign> {
        let mut values = request.headers().get_all(HOST).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err(Foreign::NoHost);
        };
        let text = value.to_str().map_err(|_| Foreign::NoHost)?;
        // A target such as `http://name/path` takes precedence over the header.
        let target = request.uri().authority().map(Authority::as_str);
        for named in [Some(text), target].into_iter().flatten() {
            let host: Host = named.parse().map_err(|_| Foreign::NoHost)?;
            if !self.is_own(&host, local) {
                return Err(Foreign::Host);
            }
        }
        let is_read = [Method::GET, Method::HEAD].contains(request.method());
        let mut origins = request.headers().get_all(ORIGIN).iter();
        if is_read || origins.all(|origin| is_same(origin, text)) {
            Ok(())
        } else {
            Err(Foreign::Origin)
        }
    }

    fn is_own(&self, host: &Host, local: SocketAddr) -> bool {
        // A site can rebind its name to this address, but not make a browser send the address.
        let here = match local.ip().to_canonical() {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        let is_here = host.port.unwrap_or(DEFAULT_PORT) == local.port()
            && ["localhost", &here].contains(&&*host.name);
        let is_given = |given: &Host| {
            given.name == host.name && given.port.is_none_or(|port| host.port == Some(port))
        };
        is_here || self.0.iter().any(is_given)
    }
}

/// Returns whether an `Origin` is the page that this `Host` serves. A proxy in front may add TLS.
fn is_same(origin: &HeaderValue, host: &str) -> bool {
    let rest = origin.to_str().ok().and_then(|origin| {
        let schemes = ["http://", "https://"];
        schemes
            .iter()
            .find_map(|scheme| origin.strip_prefix(scheme))
    });
    rest.is_some_and(|rest| rest.eq_ignore_ascii_case(host))
}

impl FromStr for Host {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "no host name, with or without a port";
        let authority: Authority = text.parse().map_err(|_| WRONG)?;
        let (name, port) = (authority.host(), authority.port_u16());
        let len = name.len() + authority.port().map_or(0, |port| port.as_str().len() + 1);
        // What is more than that is a user, or a port that is none.
        if name.is_empty() || len != text.len() {
            return Err(WRONG);
        }
        let name = name.to_ascii_lowercase();
        Ok(Self { name, port })
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoHost => "one Host header has to name this service",
            Self::Host => "this service has no such name: start it with --host NAME to give it one",
            Self::Origin => "a page from another origin may not change anything here",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(hosts: &[&str], local: &str, host: &str) -> Result<(), Foreign> {
        let hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
        let request = Request::builder().header(HOST, host).body(()).unwrap();
        Hosts(hosts).check(local.parse().unwrap(), &request)
    }

    #[test]
    fn the_address_that_was_reached_is_a_name() {
        for (local, host) in [
            ("10.1.2.3:8080", "10.1.2.3:8080"),
            ("10.1.2.3:80", "10.1.2.3"),
            ("[::ffff:10.1.2.3]:80", "10.1.2.3"),
            ("[2606:4700::1]:81", "[2606:4700::1]:81"),
            ("[::1]:81", "localhost:81"),
        ] {
            assert_eq!(check(&[], local, host), Ok(()), "{local} {host}");
        }
        for (local, host) in [
            ("10.1.2.3:8080", "10.1.2.4:8080"),
            ("10.1.2.3:8080", "10.1.2.3"),
            ("[::1]:81", "[::1]:80"),
            ("[::1]:81", "a.example:81"),
        ] {
            assert_eq!(
                check(&[], local, host),
                Err(Foreign::Host),
                "{local} {host}"
            );
        }
    }

    #[test]
    fn a_given_name_has_its_port_or_any() {
        let hosts = ["A.example", "b.example:81"];
        for host in ["a.example", "a.example:9", "B.example:81"] {
            assert_eq!(check(&hosts, "127.0.0.1:1", host), Ok(()), "{host}");
        }
        for host in ["b.example", "b.example:9", "x.a.example"] {
            let checked = check(&hosts, "127.0.0.1:1", host);
            assert_eq!(checked, Err(Foreign::Host), "{host}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in [
            "", ":80", "a:", "a:x", "a:65536", "me@a", "a/b", "a b", "[::1", "http://a",
        ] {
            assert!(text.parse::<Host>().is_err(), "{text:?}");
        }
    }
}
