//! etcd: one node or several, as processes.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use requeue_shards::etcd_client::{Client, ConnectOptions};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// The nodes.
pub(crate) struct Cluster {
    program: PathBuf,
    folder: PathBuf,
    access: Access,
    nodes: Vec<Node>,
}

/// How clients reach the nodes.
pub(crate) struct Access {
    pub(crate) scheme: &'static str,
    pub(crate) options: ConnectOptions,
    /// The arguments of each node.
    pub(crate) arguments: Vec<String>,
}

struct Node {
    client: SocketAddr,
    peer: SocketAddr,
    process: Option<Child>,
}

impl Access {
    /// Open to every client.
    pub(crate) fn open(arguments: impl IntoIterator<Item = String>) -> Self {
        Self {
            scheme: "http",
            options: ConnectOptions::new(),
            arguments: arguments.into_iter().collect(),
        }
    }
}

impl Cluster {
    /// Starts nodes, and waits until they have a leader.
    pub(crate) async fn start(program: &Path, folder: &Path, count: usize) -> io::Result<Self> {
        Self::start_with(program, folder, count, Access::open([])).await
    }

    /// The same, for nodes that not every client may reach.
    pub(crate) async fn start_with(
        program: &Path,
        folder: &Path,
        count: usize,
        access: Access,
    ) -> io::Result<Self> {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder)?;
        let mut ports = Vec::new();
        let mut nodes = Vec::new();
        for _ in 0..count {
            // Kept open until all ports are chosen, so that no two are the same.
            let pair = [free_port()?, free_port()?];
            nodes.push(Node {
                client: pair[0].local_addr()?,
                peer: pair[1].local_addr()?,
                process: None,
            });
            ports.push(pair);
        }
        drop(ports);
        let mut cluster = Self {
            program: program.to_owned(),
            folder: folder.to_owned(),
            access,
            nodes,
        };
        for index in 0..count {
            cluster.begin(index)?;
        }
        cluster.elect().await?;
        Ok(cluster)
    }

    /// Waits for a leader.
    async fn elect(&self) -> io::Result<()> {
        for _ in 0..100 {
            if self.leader().await.is_some() {
                return Ok(());
            }
            sleep(Duration::from_millis(100)).await;
        }
        Err(io::Error::other("etcd has no leader after ten seconds"))
    }

    /// Kills a node, starts it and waits for a leader.
    pub(crate) async fn restart(&mut self, index: usize) -> io::Result<()> {
        self.kill(index).await?;
        self.begin(index)?;
        self.elect().await
    }

    /// Kills the only node, and starts it without any data.
    pub(crate) async fn empty(&mut self) -> io::Result<()> {
        self.kill(0).await?;
        fs::remove_dir_all(self.data())?;
        self.begin(0)?;
        self.elect().await
    }

    /// Kills the only node, copies its data as a backup, and starts it again.
    pub(crate) async fn back_up(&mut self) -> io::Result<()> {
        self.kill(0).await?;
        copy(&self.data(), &self.folder.join("backup"))?;
        self.begin(0)?;
        self.elect().await
    }

    /// Kills the only node, and starts it with the data of the backup.
    pub(crate) async fn restore(&mut self) -> io::Result<()> {
        self.kill(0).await?;
        fs::remove_dir_all(self.data())?;
        copy(&self.folder.join("backup"), &self.data())?;
        self.begin(0)?;
        self.elect().await
    }

    /// The data folder of the first node.
    fn data(&self) -> PathBuf {
        self.folder.join("n0")
    }

    /// Starts a node that does not run.
    pub(crate) fn begin(&mut self, index: usize) -> io::Result<()> {
        let url = |address: SocketAddr| format!("http://{address}");
        let peers = self.nodes.iter().enumerate();
        let peers: Vec<String> = peers
            .map(|(index, node)| format!("n{index}={}", url(node.peer)))
            .collect();
        let (folder, program, access) = (&self.folder, &self.program, &self.access);
        let client_url = |address: SocketAddr| format!("{}://{address}", access.scheme);
        let Some(node) = self.nodes.get_mut(index) else {
            return Ok(());
        };
        let log = folder.join(format!("n{index}.log"));
        let log = fs::File::options().create(true).append(true).open(log)?;
        let mut command = Command::new(program);
        command
            .args(["--name", &format!("n{index}")])
            .arg("--data-dir")
            .arg(folder.join(format!("n{index}")))
            .args(["--listen-client-urls", &client_url(node.client)])
            .args(["--advertise-client-urls", &client_url(node.client)])
            .args(["--listen-peer-urls", &url(node.peer)])
            .args(["--initial-advertise-peer-urls", &url(node.peer)])
            .args(["--initial-cluster", &peers.join(",")])
            .args(["--initial-cluster-state", "new"])
            .args(&access.arguments)
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true);
        node.process = Some(command.spawn()?);
        Ok(())
    }

    pub(crate) async fn kill(&mut self, index: usize) -> io::Result<()> {
        let node = self.nodes.get_mut(index);
        match node.and_then(|node| node.process.take()) {
            Some(mut process) => process.kill().await,
            None => Ok(()),
        }
    }

    pub(crate) async fn signal(&self, index: usize, signal: &str) -> io::Result<()> {
        let node = self.nodes.get(index);
        match node.and_then(|node| node.process.as_ref()) {
            Some(process) => send(process, signal).await,
            None => Ok(()),
        }
    }

    /// The leading node, according to the nodes that reply.
    pub(crate) async fn leader(&self) -> Option<usize> {
        for (index, endpoint) in self.endpoints().into_iter().enumerate() {
            let status = async {
                let options = Some(self.access.options.clone());
                let mut client = Client::connect([endpoint], options).await?;
                client.status().await
            };
            let status = timeout(Duration::from_millis(500), status).await;
            let Ok(Ok(status)) = status else { continue };
            let itself = status.header().map(|header| header.member_id());
            if status.leader() != 0 && itself == Some(status.leader()) {
                return Some(index);
            }
        }
        None
    }

    pub(crate) fn options(&self) -> ConnectOptions {
        self.access.options.clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(|node| node.client).collect()
    }

    pub(crate) fn endpoints(&self) -> Vec<String> {
        let addresses = self.addresses().into_iter();
        addresses
            .map(|address| format!("{}://{address}", self.access.scheme))
            .collect()
    }
}

/// Sends a signal, such as `-STOP`, to a process of ours.
pub(crate) async fn send(process: &Child, signal: &str) -> io::Result<()> {
    let Some(id) = process.id() else {
        return Ok(());
    };
    let mut kill = Command::new("kill");
    kill.args([signal, &id.to_string()]).status().await?;
    Ok(())
}

/// Copies a folder to a new one.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let status = std::process::Command::new("cp")
        .arg("-r")
        .args([from, to])
        .status()?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other("the data cannot be copied")),
    }
}

fn free_port() -> io::Result<std::net::TcpListener> {
    std::net::TcpListener::bind("127.0.0.1:0")
}
