//! An etcd of the test's own, on loopback.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Names the program, if that is not in `PATH`.
const ETCD: &str = "ETCD";

/// A server of one node, stopped when this is dropped.
pub struct Etcd {
    child: Child,
    _folder: tempfile::TempDir,
    pub url: String,
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
        let mut child = Command::new(program)
            .args(["--name", "test", "--data-dir"])
            .arg(folder.path().join("data"))
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
        Ok(Self {
            child,
            _folder: folder,
            url: url.clone(),
        })
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program() -> Option<PathBuf> {
    let named = std::env::var_os(ETCD).map(PathBuf::from);
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&paths).map(|folder| folder.join("etcd"));
    named.into_iter().chain(in_path).find(|path| path.is_file())
}
