//! The command line.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize, ParseIntError};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Parser};

use crate::key::parse_id;
use crate::origin::Host;
use crate::server::Limits;
use crate::store::Database;

/// Posts the current state of objects to subscribers over HTTP.
#[derive(Clone, Debug, PartialEq, Parser)]
#[command(version, after_help = END)]
pub(crate) struct Options {
    /// Where to serve. There is no authentication: every client that reaches it may use it
    #[arg(short, long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// A name that clients use for this service, on any port. Addresses and localhost need not be
    /// given. All other names are refused
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<Host>,
    /// The SQLite file, made if it is not there, or the URL of a PostgreSQL. PGPASSWORD is used if
    /// the URL holds no password
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "webhooks.sqlite",
        value_parser = OsStringValueParser::new().map(|text| Database::parse(text.as_ref()))
    )]
    pub(crate) database: Database,
    /// How many deliveries at once; at most a quarter of them to one host
    #[arg(short = 'j', long, value_name = "N", default_value = "32")]
    pub(crate) workers: NonZeroUsize,
    /// A file with the secret that signs deliveries of subscriptions that have none: whsec_ and 24
    /// to 64 bytes in base64
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    /// Deliver to loopback and private addresses as well
    #[arg(long)]
    pub(crate) allow_private: bool,
    /// How often a version is tried before it is listed as failed
    #[arg(long, value_name = "N", default_value = "8")]
    pub(crate) tries: NonZeroU32,
    /// How long after the first failure. Each pause is twice as long as the one before, up to 5
    /// minutes. A host that does not answer rests as long
    #[arg(long, value_name = "MILLIS", default_value = "500", value_parser = millis)]
    pub(crate) pause: Duration,
    /// How long one delivery may take
    #[arg(long, value_name = "MILLIS", default_value = "10000", value_parser = millis)]
    pub(crate) timeout: Duration,
    /// How long after Ctrl-C or SIGTERM keys that are ready may still be delivered
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub(crate) grace: Duration,
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(flatten)]
    pub(crate) replicas: Replicas,
    /// Accept writes after a clock was far ahead and etcd was emptied, and exit. No replica may run
    /// meanwhile
    #[arg(long)]
    pub(crate) reset_fences: bool,
}

/// How several processes share the subscriptions.
#[derive(Clone, Debug, PartialEq, Args)]
pub(crate) struct Replicas {
    /// Share the deliveries with other processes that have the same PostgreSQL. These are the nodes
    /// of an etcd, which knows who delivers to which subscriptions
    #[arg(long, value_name = "URL,URL", value_delimiter = ',')]
    pub(crate) etcd: Vec<String>,
    /// What this process is called there [default: made from the names of host and process]
    #[arg(long, value_name = "REPLICA", value_parser = name, requires = "etcd")]
    pub(crate) name: Option<String>,
    /// Into how many parts the subscriptions are divided, the same for all, and for good
    #[arg(long, value_name = "N", default_value = "64", requires = "etcd")]
    pub(crate) shards: NonZeroU32,
    /// How long the subscriptions of a process that died stay with it
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds, requires = "etcd")]
    pub(crate) ttl: Duration,
}

const END: &str = "\
Ctrl-C (or SIGTERM) delivers the keys that are ready, until the grace is over. The process has ended
15 seconds later, also if the database or etcd hangs. A second one stops at once. However it was
stopped, the next start continues from there.

Exit code: 0 if a signal stopped it, 2 if it could not start or etcd refuses it.";

impl Replicas {
    /// Returns whether this process shares the deliveries with others.
    pub(crate) fn is_one(&self) -> bool {
        !self.etcd.is_empty()
    }
}

fn millis(text: &str) -> Result<Duration, ParseIntError> {
    text.parse().map(Duration::from_millis)
}

pub(crate) fn seconds(text: &str) -> Result<Duration, ParseIntError> {
    text.parse().map(Duration::from_secs)
}

fn name(text: &str) -> Result<String, &'static str> {
    parse_id(text).ok_or("a name is 1 to 128 letters, digits, dots, dashes and underscores")?;
    Ok(text.to_owned())
}

#[cfg(test)]
impl Default for Options {
    fn default() -> Self {
        Self::parse_from(["webhooks"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused_with_the_reason() {
        for (args, because) in [
            (["--workers", "0"], "'0'"),
            (["--host", "http://a"], "no host name"),
            (["--shards=3", "--ttl=2"], "--etcd"),
            (["--etcd=http://a:1", "--name=a b"], "a name is"),
        ] {
            let args = ["webhooks"].into_iter().chain(args);
            let error = Options::try_parse_from(args).unwrap_err().to_string();
            assert!(error.contains(because), "{error}");
        }
    }
}
