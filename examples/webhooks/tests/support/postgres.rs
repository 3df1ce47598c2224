//! A PostgreSQL of the test's own, on a socket in a folder.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::proxy::Proxy;

/// Names the program, with `initdb` beside it, if that is not in `PATH`.
const POSTGRES: &str = "POSTGRES";

/// Users that a server may run as in place of root, which it refuses.
const USERS: [&str; 2] = ["postgres", "daemon"];

/// A server, stopped when this is dropped.
pub struct Server {
    child: Child,
    folder: tempfile::TempDir,
    databases: AtomicUsize,
}

impl Server {
    /// Starts a server that does not wait for the disk. The error says why that cannot be on this
    /// machine.
    pub fn start() -> Result<Self, String> {
        Self::start_with("fsync=off")
    }

    /// Starts a server as it is meant to be.
    pub fn durable() -> Result<Self, String> {
        Self::start_with("fsync=on")
    }

    fn start_with(setting: &str) -> Result<Self, String> {
        let bin = programs().ok_or(format!(
            "there is no PostgreSQL: neither in PATH, nor where {POSTGRES} says"
        ))?;
        let folder = tempfile::tempdir().unwrap();
        let user = user()?;
        if let Some((user, group)) = user {
            chown(folder.path(), Some(user), Some(group)).unwrap();
        }
        let command = |program: &str| {
            let mut command = Command::new(bin.join(program));
            command.current_dir(folder.path()).stdin(Stdio::null());
            if let Some((user, group)) = user {
                command.uid(user).gid(group);
            }
            command
        };
        let data = folder.path().join("data");
        let made = command("initdb")
            .args(["--auth=trust", "--username=webhooks", "--no-sync"])
            .args(["--encoding=UTF8", "--locale=C", "--pgdata"])
            .arg(&data)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "{said}");
        let mut child = command("postgres")
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(folder.path())
            .args(["-c", "listen_addresses=", "-c", "max_connections=200"])
            .args(["-c", setting])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = String::new();
        while !said.contains("ready to accept connections") {
            let line = lines.next().unwrap_or_else(|| panic!("{said}"));
            said = said + &line.unwrap() + "\n";
        }
        // What it says later is read, so that it can go on.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Self {
            child,
            folder,
            databases: AtomicUsize::new(0),
        })
    }

    /// Makes a database. Returns its URL.
    pub async fn database(&self) -> String {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.run("postgres", &format!("CREATE DATABASE {name}"))
            .await;
        self.url(&name)
    }

    /// Makes a database that is reached through a proxy. Returns its URL there.
    pub async fn proxied(&self) -> (String, Proxy) {
        let url = self.database().await;
        let (_, name) = url.rsplit_once('/').unwrap();
        let proxy = Proxy::new(self.folder.path().join(".s.PGSQL.5432")).await;
        let url = format!("postgres://webhooks@127.0.0.1:{}/{name}", proxy.port);
        (url, proxy)
    }

    /// Runs SQL in the database with this URL or name. Returns the first column of its last row.
    pub async fn run(&self, database: &str, sql: &str) -> Option<String> {
        let url = match database.contains("://") {
            true => database.to_owned(),
            false => self.url(database),
        };
        let sql = sql.to_owned();
        let run = move || {
            let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
            let messages = client.simple_query(&sql).unwrap();
            messages.iter().rev().find_map(|message| match message {
                postgres::SimpleQueryMessage::Row(row) => row.get(0).map(String::from),
                _ => None,
            })
        };
        tokio::task::spawn_blocking(run).await.unwrap()
    }

    /// Runs SQL that begins a transaction. It is committed when something is sent, and then the
    /// task that is returned ends.
    pub async fn transaction(
        &self,
        url: &str,
        sql: &str,
        may_commit: std::sync::mpsc::Receiver<()>,
    ) -> tokio::task::JoinHandle<()> {
        let (url, sql) = (url.to_owned(), sql.to_owned());
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let task = tokio::task::spawn_blocking(move || {
            let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
            client.batch_execute(&sql).unwrap();
            begun.send(()).unwrap();
            may_commit.recv().unwrap();
            client.batch_execute("COMMIT").unwrap();
        });
        has_begun.await.unwrap();
        task
    }

    fn url(&self, database: &str) -> String {
        let folder = self.folder.path().display().to_string();
        let host = folder.replace('/', "%2F");
        format!("postgres://webhooks@{host}/{database}")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Ends its connections and stops.
        let command = format!("kill -INT {}", self.child.id());
        let _ = Command::new("sh").args(["-c", &command]).status();
        let _ = self.child.wait();
    }
}

/// Where `initdb` and `postgres` are.
fn programs() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let named = std::env::var_os(POSTGRES).map(PathBuf::from);
    let named = named.and_then(|program| Some(program.parent()?.to_owned()));
    // Debian keeps them out of the way.
    let debian = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let debian = debian.filter_map(|version| Some(version.ok()?.path().join("bin")));
    let mut folders = named
        .into_iter()
        .chain(std::env::split_paths(&paths))
        .chain(debian);
    folders.find(|folder| is_there(folder))
}

fn is_there(folder: &Path) -> bool {
    ["initdb", "postgres"]
        .iter()
        .all(|program| folder.join(program).is_file())
}

/// The user and group that the server has to run as, `None` if those of this process will do.
pub fn user() -> Result<Option<(u32, u32)>, String> {
    use std::os::unix::fs::MetadataExt;

    // A folder that is made here belongs to the user of the process.
    let owner = tempfile::tempdir()
        .unwrap()
        .path()
        .metadata()
        .unwrap()
        .uid();
    if owner != 0 {
        return Ok(None);
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let find = |name: &&str| {
        let line = users
            .lines()
            .find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2).map(str::parse);
        Some((fields.next()?.ok()?, fields.next()?.ok()?))
    };
    let found = USERS.iter().find_map(find);
    found
        .map(Some)
        .ok_or("no PostgreSQL runs as root, and there is no other user".into())
}
