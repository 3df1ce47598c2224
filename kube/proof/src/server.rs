//! etcd and kube-apiserver, on loopback.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::world::{Problem, seconds, until};

const ETCD: u16 = 23_790;
const PORT: u16 = 26_443;

/// An API server with nothing in it. It ends with this value.
pub struct Server {
    folder: PathBuf,
    program: PathBuf,
    etcd: Child,
    apiserver: Option<Child>,
}

impl Server {
    /// Starts etcd and kube-apiserver, with their files in a folder that is emptied before.
    ///
    /// # Errors
    ///
    /// A program cannot be started, or is not ready in time: the folder has its log.
    pub async fn start(folder: &Path, apiserver: &Path, etcd: &Path) -> Result<Self, Problem> {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder)?;
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let (clients, peers) = (url(ETCD), url(ETCD + 10));
        let mut command = Command::new(etcd);
        command.current_dir(folder).args(["--data-dir", "etcd"]);
        command.args([
            "--listen-client-urls",
            &clients,
            "--advertise-client-urls",
            &clients,
        ]);
        command.args([
            "--listen-peer-urls",
            &peers,
            "--initial-advertise-peer-urls",
            &peers,
        ]);
        command.args(["--initial-cluster", &format!("default={peers}")]);
        // What is written is not to survive this machine.
        let etcd = command.arg("--unsafe-no-fsync");
        let etcd = log(etcd, &folder.join("etcd.log"))?.spawn()?;

        fs::write(
            folder.join("tokens.csv"),
            "secret,admin,admin,\"system:masters\"\n",
        )?;
        let mut openssl = Command::new("openssl");
        openssl.args(["genrsa", "-out", "accounts.key", "2048"]);
        let made = openssl.current_dir(folder).stderr(Stdio::null()).status()?;
        if !made.success() {
            return Err("openssl genrsa failed".into());
        }
        fs::write(folder.join("kubeconfig"), kubeconfig())?;
        let mut server = Self {
            folder: folder.to_owned(),
            program: apiserver.to_owned(),
            etcd,
            apiserver: None,
        };
        server.start_apiserver().await?;
        Ok(server)
    }

    /// Starts kube-apiserver again after [`kill`](Self::kill).
    ///
    /// # Errors
    ///
    /// It cannot be started, or is not ready in time.
    pub async fn start_apiserver(&mut self) -> Result<(), Problem> {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder).args([
            &format!("--etcd-servers=http://127.0.0.1:{ETCD}"),
            &format!("--secure-port={PORT}"),
            "--bind-address=127.0.0.1",
            "--cert-dir=certificates",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-account-key-file=accounts.key",
            "--service-account-signing-key-file=accounts.key",
            "--service-cluster-ip-range=10.0.0.0/12",
            "--endpoint-reconciler-type=none",
            "--disable-admission-plugins=ServiceAccount",
            "--token-auth-file=tokens.csv",
        ]);
        self.apiserver = Some(log(&mut command, &self.folder.join("apiserver.log"))?.spawn()?);
        let ready = until(seconds(120), Duration::from_millis(200), || async {
            let client = self.client().await.ok()?;
            let request = http::Request::get("/readyz").body(Vec::new()).ok()?;
            client.request_text(request).await.ok()
        });
        ready.await.ok_or("the API server is not ready")?;
        Ok(())
    }

    /// Starts the controllers that collect garbage and end namespaces. They end with what this
    /// returns.
    ///
    /// # Errors
    ///
    /// They cannot be started.
    pub fn start_controllers(&self, program: &Path) -> Result<Controllers, Problem> {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).args([
            "--kubeconfig=kubeconfig",
            "--controllers=garbagecollector,namespace",
            "--leader-elect=false",
            "--port=0",
            "--secure-port=0",
        ]);
        let child = log(&mut command, &self.folder.join("controllers.log"))?.spawn()?;
        Ok(Controllers(child))
    }

    /// Kills kube-apiserver, as `kill -9` does.
    pub fn kill(&mut self) {
        if let Some(mut apiserver) = self.apiserver.take() {
            let _ = apiserver.kill();
            let _ = apiserver.wait();
        }
    }

    /// Makes etcd forget its history.
    ///
    /// # Errors
    ///
    /// It cannot be reached.
    pub fn compact(&self) -> Result<(), Problem> {
        let post = |path: &str, body: &str| -> Result<serde_json::Value, Problem> {
            let url = format!("http://127.0.0.1:{ETCD}{path}");
            let output = Command::new("curl")
                .args(["-s", "-d", body, &url])
                .output()?;
            Ok(serde_json::from_slice(&output.stdout)?)
        };
        let newest = post("/v3/kv/range", r#"{"key": "AA=="}"#)?;
        let revision = newest["header"]["revision"]
            .as_str()
            .ok_or("etcd has no revision")?;
        post(
            "/v3/kv/compaction",
            &format!("{{\"revision\": \"{revision}\"}}"),
        )?;
        Ok(())
    }

    /// The file that leads programs here.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// A client with all rights.
    ///
    /// # Errors
    ///
    /// None in practice: the configuration is this program's own.
    pub async fn client(&self) -> Result<Client, Problem> {
        let file = Kubeconfig::read_from(self.kubeconfig())?;
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(file, &options).await?;
        Ok(Client::try_from(config)?)
    }

    /// Where the logs are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// The process of a kube-controller-manager.
pub struct Controllers(Child);

impl Drop for Controllers {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        let _ = self.etcd.kill();
        let _ = self.etcd.wait();
    }
}

pub(crate) fn log<'a>(command: &'a mut Command, file: &Path) -> Result<&'a mut Command, Problem> {
    let file = File::options().create(true).append(true).open(file)?;
    Ok(command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file))
}

fn kubeconfig() -> String {
    serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {
            "server": format!("https://127.0.0.1:{PORT}"), "insecure-skip-tls-verify": true,
        }}],
        "users": [{"name": "test", "user": {"token": "secret"}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    })
    .to_string()
}
