//! The command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lexopt::prelude::*;

use crate::key::parse_id;
use crate::origin::Host;
use crate::server::Limits;
use crate::store::Database;

const HELP: &str = "\
Posts the current state of objects to subscribers over HTTP.

Usage: webhooks [OPTIONS]

Options:
  -l, --listen ADDR     where to serve [default: 127.0.0.1:8080]; there is no
                        authentication: every client that reaches it may use it
      --host NAME       a name that clients use for this service, with or
                        without a port; may be repeated. Its address and
                        localhost need not be given, all others are refused
  -d, --database FILE   the SQLite file, made if it is not there
                        [default: webhooks.sqlite], or the URL of a PostgreSQL,
                        postgres://USER@HOST/NAME; PGPASSWORD is used if it
                        holds no password
  -j, --workers N       how many deliveries at once [default: 32]; at most
                        a quarter of them to one host
      --secret-file F   a file with the secret that signs deliveries of
                        subscriptions that have none: whsec_ and 24 to 64
                        bytes in base64
      --allow-private   deliver to loopback and private addresses as well
      --tries N         how often a version is tried before it is listed as
                        failed [default: 8]
      --pause MILLIS    how long after the first failure; each pause is twice as
                        long as the one before, up to 5 minutes [default: 500];
                        a host that does not answer rests as long
      --timeout MILLIS  how long one delivery may take [default: 10000]
      --idle SECONDS    how long a client may take for the head of its next
                        request, or to read some of an answer [default: 10]
      --connections N   how many connections at once; at the limit the one that
                        was silent longest makes room [default: 512]
      --per-client N    how many of these from one address [default: 128]
      --grace SECONDS   how long after Ctrl-C or SIGTERM what is ready may still
                        be delivered [default: 10]
      --etcd URL[,URL]  share the deliveries with other processes that have the
                        same PostgreSQL; these are the nodes of an etcd, which
                        knows who delivers to which subscriptions
      --name REPLICA    what this process is called there [default: made from
                        the names of host and process]
      --shards N        into how many parts the subscriptions are divided, the
                        same for all, and for good [default: 64]
      --ttl SECONDS     how long the subscriptions of a process that died stay
                        with it [default: 5]
      --reset-fences    accept writes after a clock was far ahead and etcd was
                        emptied, and exit; no replica may run meanwhile
  -h, --help            say this
  -V, --version         say the version

Ctrl-C (or SIGTERM) delivers what is ready, until the grace is over. It has
ended 15 seconds later, also if the database or etcd hangs. A second one stops
at once. However it was stopped, the next start goes on from there.

Exit code: 0 if a signal stopped it, 2 if it could not start or etcd refuses it.
";

/// What is asked for.
#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    Serve(Box<Options>),
    /// Forget the fences of this database.
    ResetFences(Database),
    Say(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) listen: SocketAddr,
    pub(crate) hosts: Vec<Host>,
    pub(crate) database: Database,
    pub(crate) workers: NonZeroUsize,
    pub(crate) secret_file: Option<PathBuf>,
    pub(crate) allow_private: bool,
    pub(crate) tries: NonZeroU32,
    pub(crate) pause: Duration,
    pub(crate) timeout: Duration,
    pub(crate) grace: Duration,
    pub(crate) limits: Limits,
    /// `None` if this process alone delivers.
    pub(crate) replicas: Option<Replicas>,
}

/// How several processes share the subscriptions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Replicas {
    /// The nodes of etcd.
    pub(crate) etcd: Vec<String>,
    /// What this process is called, unless it makes up a name.
    pub(crate) name: Option<String>,
    pub(crate) shards: NonZeroU32,
    pub(crate) ttl: Duration,
}

impl Default for Replicas {
    fn default() -> Self {
        Self {
            etcd: Vec::new(),
            name: None,
            shards: NonZeroU32::MIN.saturating_add(63),
            ttl: Duration::from_secs(5),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            hosts: Vec::new(),
            database: Database::File("webhooks.sqlite".into()),
            workers: NonZeroUsize::MIN.saturating_add(31),
            secret_file: None,
            allow_private: false,
            tries: NonZeroU32::MIN.saturating_add(7),
            pause: Duration::from_millis(500),
            timeout: Duration::from_secs(10),
            grace: Duration::from_secs(10),
            limits: Limits::default(),
            replicas: None,
        }
    }
}

/// Reads the arguments. The error is one line for the user.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, String> {
    parse_args(lexopt::Parser::from_args(args)).map_err(|error| format!("{error}; see --help"))
}

fn parse_args(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut options = Options::default();
    let (mut replicas, mut resets_fences) = (Replicas::default(), false);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('l') | Long("listen") => options.listen = parser.value()?.parse()?,
            Long("host") => options.hosts.push(parser.value()?.parse()?),
            Short('d') | Long("database") => {
                options.database = Database::parse(Path::new(&parser.value()?))
            }
            Short('j') | Long("workers") => options.workers = parser.value()?.parse()?,
            Long("secret-file") => options.secret_file = Some(parser.value()?.into()),
            Long("allow-private") => options.allow_private = true,
            Long("tries") => options.tries = parser.value()?.parse()?,
            Long("pause") => options.pause = Duration::from_millis(parser.value()?.parse()?),
            Long("timeout") => options.timeout = Duration::from_millis(parser.value()?.parse()?),
            Long("idle") => {
                options.limits.idle = Duration::from_secs(parser.value()?.parse()?);
            }
            Long("connections") => options.limits.connections = count(&mut parser)?,
            Long("per-client") => options.limits.per_client = count(&mut parser)?,
            Long("grace") => options.grace = Duration::from_secs(parser.value()?.parse()?),
            Long("etcd") => replicas.etcd = nodes(&parser.value()?.string()?),
            Long("name") => replicas.name = Some(name(parser.value()?.string()?)?),
            Long("shards") => replicas.shards = parser.value()?.parse()?,
            Long("ttl") => replicas.ttl = Duration::from_secs(parser.value()?.parse()?),
            Long("reset-fences") => resets_fences = true,
            Short('h') | Long("help") => return Ok(Command::Say(HELP.into())),
            Short('V') | Long("version") => {
                let version = concat!("webhooks ", env!("CARGO_PKG_VERSION"), "\n");
                return Ok(Command::Say(version.into()));
            }
            _ => return Err(arg.unexpected()),
        }
    }
    if resets_fences {
        return Ok(Command::ResetFences(options.database));
    }
    if !replicas.etcd.is_empty() {
        options.replicas = Some(replicas);
    } else if replicas != Replicas::default() {
        return Err("--name, --shards and --ttl need --etcd".into());
    }
    Ok(Command::Serve(options.into()))
}

fn nodes(text: &str) -> Vec<String> {
    text.split(',').map(String::from).collect()
}

fn name(text: String) -> Result<String, lexopt::Error> {
    parse_id(&text).ok_or("a name is 1 to 128 letters, digits, dots, dashes and underscores")?;
    Ok(text)
}

fn count(parser: &mut lexopt::Parser) -> Result<usize, lexopt::Error> {
    let count: NonZeroUsize = parser.value()?.parse()?;
    Ok(count.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Command, String> {
        parse(args.iter().map(OsString::from))
    }

    #[test]
    fn every_flag_has_a_default() {
        assert_eq!(parsed(&[]), Ok(Command::Serve(Box::default())));
    }

    #[test]
    fn flags_are_heard() {
        let args = [
            "--listen=[::1]:0",
            "--host=a.example",
            "--host",
            "b.example:81",
            "-d",
            "x.db",
            "-j3",
            "--secret-file=key",
            "--allow-private",
            "--tries",
            "2",
            "--pause=7",
            "--timeout=70",
            "--grace=700",
            "--idle=7000",
            "--connections=70",
            "--per-client=7",
            "--etcd=http://a:1,http://b:2",
            "--name",
            "r1",
            "--shards=3",
            "--ttl=4",
        ];
        let expected = Options {
            listen: "[::1]:0".parse().unwrap(),
            hosts: ["a.example", "b.example:81"]
                .map(|host| host.parse().unwrap())
                .into(),
            database: Database::File("x.db".into()),
            workers: NonZeroUsize::new(3).unwrap(),
            secret_file: Some("key".into()),
            allow_private: true,
            tries: NonZeroU32::new(2).unwrap(),
            pause: Duration::from_millis(7),
            timeout: Duration::from_millis(70),
            grace: Duration::from_secs(700),
            limits: Limits {
                idle: Duration::from_secs(7000),
                connections: 70,
                per_client: 7,
                ..Limits::default()
            },
            replicas: Some(Replicas {
                etcd: vec!["http://a:1".into(), "http://b:2".into()],
                name: Some("r1".into()),
                shards: NonZeroU32::new(3).unwrap(),
                ttl: Duration::from_secs(4),
            }),
        };
        assert_eq!(parsed(&args), Ok(Command::Serve(expected.into())));
    }

    #[test]
    fn nonsense_gets_one_line() {
        for (args, because) in [
            (["--workers", "0"], "\"0\""),
            (["--listen", "localhost"], "\"localhost\""),
            (["--host", "http://a"], "no host name"),
            (["--tries", "many"], "\"many\""),
            (["--per-client", "0"], "\"0\""),
            (["--database=a", "b"], "\"b\""),
            (["--what", "b"], "--what"),
            (["--shards=3", "--ttl=2"], "need --etcd"),
            (["--etcd=http://a:1", "--name=a b"], "a name is"),
            (["--etcd=http://a:1", "--shards=0"], "\"0\""),
        ] {
            let message = parsed(&args).unwrap_err();
            assert!(message.contains(because), "{message}");
            assert_eq!(message.lines().count(), 1);
        }
    }

    #[test]
    fn fences_are_reset_instead() {
        let database = Database::parse(Path::new("postgres:///d"));
        let args = ["--reset-fences", "--database", "postgres:///d"];
        assert_eq!(parsed(&args), Ok(Command::ResetFences(database)));
    }

    #[test]
    fn help_tells_every_option_and_its_default() {
        let defaults = Options::default();
        for text in [
            format!(
                "--listen ADDR     where to serve [default: {}]",
                defaults.listen
            ),
            "[default: webhooks.sqlite]".into(),
            format!("at once [default: {}]", defaults.workers),
            "--allow-private".into(),
            format!("failed [default: {}]", defaults.tries),
            format!("5 minutes [default: {}]", defaults.pause.as_millis()),
            format!("may take [default: {}]", defaults.timeout.as_millis()),
            format!("be delivered [default: {}]", defaults.grace.as_secs()),
            format!("of an answer [default: {}]", defaults.limits.idle.as_secs()),
            format!("makes room [default: {}]", defaults.limits.connections),
            format!("one address [default: {}]", defaults.limits.per_client),
        ] {
            assert!(HELP.contains(&text), "{text}");
        }
        assert!(HELP.lines().all(|line| line.len() <= 80));
    }
}
