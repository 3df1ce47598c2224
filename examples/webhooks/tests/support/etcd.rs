//! An etcd of the test's own, on loopback.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Names the program, if that is not in `PATH`.
const ETCD: &str = "ETCD";

/// A server of one node, stopped when this is dropped.
pub struct Etcd {
    program: PathBuf,
    child: Child,
    folder: tempfile::TempDir,
    pub url: String,
    peer: String,
}

impl Etcd {
    /// Starts a server. The error says why that cannot be on this machine.
    pub fn start() -> Result<Self, String> {
        let program = program().ok_or(format!(
            "there is no etcd: neither in PATH, nor where {ETCD} says"
        ))?;
        let folder = tempfile::tempdir().unwrap();
        // Both ports are free until the program takes them.
        let ports: Vec<TcpListener> = (0..2)
            .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
            .collect();
        let urls: Vec<String> = ports
            .iter()
            .map(|port| format!("http://{}", port.local_addr().unwrap()))
            .collect();
        drop(ports);
        let [url, peer] = [&urls[0], &urls[1]];
        Ok(Self {
            child: spawn(&program, &folder.path().join("data"), url, peer),
            program,
            folder,
            url: url.clone(),
            peer: peer.clone(),
        })
    }

    /// Kills the server, and starts it without any data.
    pub fn empty(&mut self) {
        self.kill();
        fs::remove_dir_all(self.data()).unwrap();
        self.restart();
    }

    /// Kills the server, copies its data as a backup, and starts it again.
    pub fn back_up(&mut self) {
        self.kill();
        copy(&self.data(), &self.backup());
        self.restart();
    }

    /// Kills the server, and starts it with the data of the backup.
    pub fn restore(&mut self) {
        self.kill();
        fs::remove_dir_all(self.data()).unwrap();
        copy(&self.backup(), &self.data());
        self.restart();
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn backup(&self) -> PathBuf {
        self.folder.path().join("backup")
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn restart(&mut self) {
        self.child = spawn(&self.program, &self.data(), &self.url, &self.peer);
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts the program, and waits until it serves.
fn spawn(program: &Path, data: &Path, url: &str, peer: &str) -> Child {
    let mut child = Command::new(program)
        .args(["--name", "test", "--data-dir"])
        .arg(data)
        .args(["--listen-client-urls", url, "--advertise-client-urls", url])
        .args([
            "--listen-peer-urls",
            peer,
            "--initial-advertise-peer-urls",
            peer,
        ])
        .args(["--initial-cluster", &format!("test={peer}")])
        // Newer versions have that one only, and make it the default.
        .args(["--logger", "zap"])
        .env("ETCD_UNSUPPORTED_ARCH", std::env::consts::ARCH)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = String::new();
    while !said.contains("serving insecure client requests")
        && !said.contains("serving client traffic insecurely")
    {
        let line = lines.next().unwrap_or_else(|| panic!("{said}"));
        said = said + &line.unwrap() + "\n";
    }
    std::thread::spawn(move || lines.for_each(drop));
    child
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn program() -> Option<PathBuf> {
    let named = std::env::var_os(ETCD).map(PathBuf::from);
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&paths).map(|folder| folder.join("etcd"));
    named.into_iter().chain(in_path).find(|path| path.is_file())
}
