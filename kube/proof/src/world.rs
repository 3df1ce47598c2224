//! Objects and controllers.

use std::future::Future;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use crate::server::{Server, log};

/// What went wrong.
pub type Problem = Box<dyn std::error::Error + Send + Sync>;

/// A `Web` as this program sees it: it does not share types with the controller.
pub type Web = DynamicObject;

/// A server, and the program of the controller.
pub struct World {
    /// The server.
    pub server: Server,
    /// The program of `examples/web-controller`.
    pub program: PathBuf,
    started: u16,
}

/// A process of the controller. It is killed with this value.
pub struct Controller {
    child: Child,
    /// The field manager of this process.
    pub manager: String,
    /// The address of its probes.
    pub probes: String,
}

impl World {
    /// The server, and the program that is run as its controller.
    pub fn new(server: Server, program: PathBuf) -> Self {
        Self {
            server,
            program,
            started: 0,
        }
    }

    /// Starts a controller, whose lease lasts for so many seconds.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub fn start_controller(&mut self, lease: u64) -> Result<Controller, Problem> {
        self.started += 1;
        let manager = format!("controller-{}", self.started);
        let probes = format!("127.0.0.1:{}", 28_000 + self.started);
        let mut command = Command::new(&self.program);
        command
            .env("KUBECONFIG", self.server.kubeconfig())
            .env("WEB_CONTROLLER_MANAGER", &manager)
            .env("WEB_CONTROLLER_PROBES", &probes)
            .env("WEB_CONTROLLER_LEASE", lease.to_string())
            .env("NO_COLOR", "1");
        let log_file = self.server.folder().join(format!("{manager}.log"));
        let child = log(&mut command, &log_file)?.spawn()?;
        Ok(Controller {
            child,
            manager,
            probes,
        })
    }

    /// Installs the kind.
    ///
    /// # Errors
    ///
    /// The server refuses it.
    pub async fn install(&self) -> Result<(), Problem> {
        let output = Command::new(&self.program).arg("crd").output()?;
        let crd: DynamicObject = serde_json::from_slice(&output.stdout)?;
        let client = self.server.client().await?;
        let group = "apiextensions.k8s.io";
        let kind = GroupVersionKind::gvk(group, "v1", "CustomResourceDefinition");
        let crds = Api::<DynamicObject>::all_with(client, &ApiResource::from_gvk(&kind));
        let name = crd.metadata.name.clone().unwrap_or_default();
        let params = PatchParams::apply("proof").force();
        crds.patch(&name, &params, &Patch::Apply(&crd)).await?;
        let webs = self.webs().await?;
        let listed = until(seconds(60), Duration::from_millis(100), || async {
            webs.list(&ListParams::default()).await.ok()
        });
        listed.await.ok_or("the kind is not served")?;
        Ok(())
    }

    /// The objects of the controller.
    ///
    /// # Errors
    ///
    /// None in practice.
    pub async fn webs(&self) -> Result<Api<Web>, Problem> {
        let kind = GroupVersionKind::gvk("example.requeue.dev", "v1", "Web");
        let client = self.server.client().await?;
        Ok(Api::namespaced_with(
            client,
            "default",
            &ApiResource::from_gvk(&kind),
        ))
    }

    /// Makes `web-FROM` to `web-(TO-1)` want this page.
    ///
    /// # Errors
    ///
    /// The server refuses it.
    pub async fn want(&self, from: usize, to: usize, page: &str) -> Result<(), Problem> {
        let webs = self.webs().await?;
        let wishes = stream::iter((from..to).map(|number| {
            let (webs, name) = (webs.clone(), format!("web-{number}"));
            let web = json!({
                "apiVersion": "example.requeue.dev/v1", "kind": "Web",
                "metadata": {"name": name}, "spec": {"page": page, "replicas": 2},
            });
            async move {
                let params = PatchParams::apply("person").force();
                webs.patch(&name, &params, &Patch::Apply(&web))
                    .await
                    .map(drop)
            }
        }));
        wishes.buffer_unordered(16).try_collect::<()>().await?;
        Ok(())
    }

    /// How many of the first `count` are as wanted: page, deployment, service, and the status.
    ///
    /// # Errors
    ///
    /// The server cannot be reached.
    pub async fn as_wanted(&self, count: usize, page: &str) -> Result<usize, Problem> {
        let client = self.server.client().await?;
        let all = ListParams::default();
        let maps = names(
            Api::<ConfigMap>::namespaced(client.clone(), "default"),
            |map| {
                let data = map.data.as_ref().and_then(|data| data.get("index.html"));
                data.is_some_and(|is| is == page)
            },
        );
        let deployments = names(
            Api::<Deployment>::namespaced(client.clone(), "default"),
            |it| it.spec.replicas == Some(2),
        );
        let services = names(Api::<Service>::namespaced(client, "default"), |_| true);
        let (maps, deployments, services) = (maps.await?, deployments.await?, services.await?);
        let webs = self.webs().await?.list(&all).await?;
        let is_current = |web: &&Web| {
            let observed = &web.data["status"]["observedGeneration"];
            *observed == json!(web.metadata.generation)
        };
        let numbered = |name: &str| {
            let number = name
                .strip_prefix("web-")
                .and_then(|number| number.parse().ok());
            number.is_some_and(|number: usize| number < count)
        };
        let names = webs
            .items
            .iter()
            .filter(is_current)
            .filter_map(|web| web.metadata.name.clone());
        let right = names.filter(|name| {
            let parts = [&maps, &deployments, &services];
            numbered(name) && parts.iter().all(|part| part.contains(name))
        });
        Ok(right.count())
    }

    /// Waits until all are as wanted.
    ///
    /// # Errors
    ///
    /// They are not in time.
    pub async fn converged(
        &self,
        count: usize,
        page: &str,
        patience: Duration,
    ) -> Result<Duration, Problem> {
        let began = Instant::now();
        let done = until(patience, Duration::from_millis(250), || async {
            let right = self.as_wanted(count, page).await.ok()?;
            (right == count).then_some(())
        });
        if done.await.is_none() {
            let right = self.as_wanted(count, page).await?;
            return Err(format!("{right} of {count} are as wanted after {patience:?}").into());
        }
        Ok(began.elapsed())
    }
}

async fn names<T>(api: Api<T>, right: impl Fn(&T) -> bool) -> Result<Vec<String>, Problem>
where
    T: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let list = api.list(&ListParams::default()).await?;
    let right = list.items.iter().filter(|object| right(object));
    let mut names: Vec<String> = right
        .filter_map(|object| object.meta().name.clone())
        .collect();
    names.sort_unstable();
    Ok(names)
}

impl Controller {
    /// `kill -9`.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// `kill -TERM`, and how long it took to end.
    ///
    /// # Errors
    ///
    /// There is no `kill`.
    pub fn stop(&mut self) -> Result<Duration, Problem> {
        let began = Instant::now();
        self.signal("-TERM")?;
        self.child.wait()?;
        Ok(began.elapsed())
    }

    /// Sends a signal.
    ///
    /// # Errors
    ///
    /// There is no `kill`.
    pub fn signal(&self, signal: &str) -> Result<(), Problem> {
        let pid = self.child.id().to_string();
        Command::new("kill").args([signal, &pid]).status()?;
        Ok(())
    }

    /// Waits until everything is listed: a replica judges a lease by what it has seen since.
    ///
    /// # Errors
    ///
    /// It is not in time.
    pub async fn ready(&self) -> Result<(), Problem> {
        let ready = until(seconds(60), Duration::from_millis(50), || async {
            let ready = self.probe("/readyz").ok()?;
            ready.contains("readyz check passed").then_some(())
        });
        ready.await.ok_or("a controller is not ready")?;
        // The first look at the lease.
        tokio::time::sleep(seconds(1)).await;
        Ok(())
    }

    /// What a path of the probes says.
    ///
    /// # Errors
    ///
    /// There is no `curl`.
    pub fn probe(&self, path: &str) -> Result<String, Problem> {
        let url = format!("http://{}{path}", self.probes);
        let output = Command::new("curl").args(["-s", &url]).output()?;
        Ok(String::from_utf8(output.stdout)?)
    }

    /// A figure of Prometheus, or zero.
    ///
    /// # Errors
    ///
    /// There is no `curl`.
    pub fn metric(&self, name: &str) -> Result<f64, Problem> {
        let page = self.probe("/metrics")?;
        let lines = page.lines().filter(|line| line.starts_with(name));
        Ok(lines
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
            .sum())
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.kill();
    }
}

/// So many seconds.
pub fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Asks again and again, until there is something or patience ends.
pub async fn until<T, F: Future<Output = Option<T>>>(
    patience: Duration,
    pause: Duration,
    ask: impl Fn() -> F,
) -> Option<T> {
    let began = Instant::now();
    loop {
        if let Some(found) = ask().await {
            return Some(found);
        }
        if began.elapsed() > patience {
            return None;
        }
        tokio::time::sleep(pause).await;
    }
}

/// Who wrote an object, and when: manager and time, of each manager the last.
pub fn writers(object: &Value) -> Vec<(String, String)> {
    let fields = object["metadata"]["managedFields"].as_array();
    let fields = fields.into_iter().flatten().filter_map(|field| {
        Some((
            field["manager"].as_str()?.to_owned(),
            field["time"].as_str()?.to_owned(),
        ))
    });
    fields.collect()
}
