//! Controllers under faults: plans drawn from seeds, properties, and the story of a failure.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::Duration;

use kube::Client;
use serde::Serialize;
use serde_json::Value;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep, sleep_until};

use crate::cluster::{Cluster, Request, Seen};
use crate::link::Link;

type Prepare = dyn Fn(&Cluster) + Send + Sync;
/// Its output is why it has failed.
type Task = Pin<Box<dyn Future<Output = Option<String>> + Send>>;
type Process = dyn Fn(Client) -> Task + Send + Sync;
type Holds = dyn Fn(&Cluster) -> Result<(), String> + Send + Sync;
type HoldsAfter = dyn Fn(&Cluster, &Request) -> Result<(), String> + Send + Sync;
type Cause = dyn Fn(&Request) -> Option<String> + Send + Sync;

/// Runs a controller through many histories, each drawn from a seed, on virtual time.
///
/// One history: an empty cluster; the replicas of the controller; the [steps](Self::step) in order,
/// at drawn times; [faults](Self::faults) in between. Then all faults end, and the controller has an
/// hour to make everything [as wanted](Self::finally) and come to rest. A controller that makes no
/// request, or panics, fails. A failure is repeated with fewer and fewer steps and faults, and told as a
/// [story](Failure).
///
/// The same seed gives the same steps, faults and times. A controller that draws numbers of its own
/// (`select!`, the order of a hash map) may do something else each time.
///
/// # Examples
///
/// This controller makes a secret for each config map. It lists the secrets first, and creates one if
/// there is none. A create that times out can land after the retry has listed the secrets. Then
/// there are two:
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use futures::StreamExt;
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use kube::api::{Api, ListParams, PostParams};
/// use kube::runtime::controller::{Action, Controller};
/// use kube::runtime::watcher;
/// use kube::{Client, ResourceExt};
/// use requeue_kube_testing::Simulation;
/// use serde_json::{from_value, json};
///
/// async fn controller(client: Client) {
///     let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
///     let retry = |_, _: &kube::Error, _| Action::requeue(Duration::from_secs(1));
///     Controller::new(maps, watcher::Config::default())
///         .run(reconcile, retry, Arc::new(client))
///         .for_each(async |_| {})
///         .await;
/// }
///
/// async fn reconcile(map: Arc<ConfigMap>, client: Arc<Client>) -> kube::Result<Action> {
///     let secrets: Api<Secret> = Api::default_namespaced((*client).clone());
///     let own = format!("{}-", map.name_any());
///     let listed = secrets.list(&ListParams::default()).await?;
///     if !listed.items.iter().any(|secret| secret.name_any().starts_with(&own)) {
///         let secret = from_value(json!({"metadata": {"generateName": own}})).unwrap();
///         secrets.create(&PostParams::default(), &secret).await?;
///     }
///     Ok(Action::await_change())
/// }
///
/// let failure = Simulation::new(controller)
///     .step("a person creates config map a", async |client: Client| {
///         let maps: Api<ConfigMap> = Api::default_namespaced(client);
///         let map = from_value(json!({"metadata": {"name": "a"}})).unwrap();
///         maps.create(&PostParams::default(), &map).await.unwrap();
///     })
///     .always("there is at most one secret", |cluster, _| {
///         match cluster.list::<Secret>().len() {
///             0 | 1 => Ok(()),
///             others => Err(format!("{others} secrets")),
///         }
///     })
///     .check()
///     .unwrap_err();
///
/// println!("{failure}"); // The seed, the steps, the faults, and every write with its time.
/// assert_eq!(failure.message, "2 secrets");
/// ```
#[must_use = "`check` runs it"]
pub struct Simulation {
    seeds: Range<u64>,
    replicas: usize,
    faults: Faults,
    definitions: Vec<Result<Value, String>>,
    prepare: Vec<Box<Prepare>>,
    process: Arc<Process>,
    steps: Vec<(String, Arc<Process>)>,
    always: Vec<(String, Arc<HoldsAfter>)>,
    finally: Vec<(String, Box<Holds>)>,
    once: Vec<(String, Arc<Cause>)>,
}

impl Simulation {
    /// Creates a simulation of a controller. The function is a process: it is called once per
    /// replica and again a second after it has returned or was killed. It may return a `Result`,
    /// whose error is told in the story.
    pub fn new<F>(controller: impl Fn(Client) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output: Outcome> + Send + 'static,
    {
        Self {
            seeds: 0..200,
            replicas: 1,
            faults: Faults::all(),
            definitions: Vec::new(),
            prepare: Vec::new(),
            process: process(controller),
            steps: Vec::new(),
            always: Vec::new(),
            finally: Vec::new(),
            once: Vec::new(),
        }
    }

    /// Sets the seeds. 0 to 200 by default.
    pub fn seeds(mut self, seeds: Range<u64>) -> Self {
        self.seeds = seeds;
        self
    }

    /// Sets how many replicas there are. 1 by default.
    pub fn replicas(mut self, replicas: usize) -> Self {
        self.replicas = replicas.max(1);
        self
    }

    /// Sets which faults are drawn. All by default.
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// Serves the kind of a `CustomResourceDefinition`.
    pub fn install(mut self, definition: &impl Serialize) -> Self {
        let value = serde_json::to_value(definition).map_err(|error| error.to_string());
        self.definitions.push(value);
        self
    }

    /// Prepares each cluster before the controller begins, as by [`Cluster::on_create`].
    pub fn prepare(mut self, prepare: impl Fn(&Cluster) + Send + Sync + 'static) -> Self {
        self.prepare.push(Box::new(prepare));
        self
    }

    /// Adds something that a person does. Its client has no faults. It may return a `Result`: an
    /// error fails the history, as a panic does.
    pub fn step<F>(mut self, name: &str, step: impl Fn(Client) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output: Outcome> + Send + 'static,
    {
        self.steps.push((name.to_owned(), process(step)));
        self
    }

    /// Adds a property that holds after every request that has changed an object. The function gets
    /// the cluster as it is then, and the [request](Request).
    ///
    /// # Examples
    ///
    /// No replica ever writes more than one secret, not even for a moment:
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Secret;
    /// use kube::Client;
    /// use requeue_kube_testing::Simulation;
    ///
    /// # async fn controller(client: Client) -> kube::Result<()> {
    /// #     client.apiserver_version().await.map(drop)
    /// # }
    /// let simulation = Simulation::new(controller)
    ///     .always("there is at most one secret", |cluster, request| {
    ///         match cluster.list::<Secret>().len() {
    ///             0 | 1 => Ok(()),
    ///             count => Err(format!("{count} secrets after {request}")),
    ///         }
    ///     });
    /// simulation.seeds(0..2).check().unwrap();
    /// ```
    pub fn always(
        mut self,
        name: &str,
        holds: impl Fn(&Cluster, &Request) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.always.push((name.to_owned(), Arc::new(holds)));
        self
    }

    /// Adds a property that holds in the end, within an hour after the last fault, once nothing has
    /// changed for ten minutes. Renewals of a Lease are no change.
    pub fn finally(
        mut self,
        name: &str,
        holds: impl Fn(&Cluster) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.finally.push((name.to_owned(), Box::new(holds)));
        self
    }

    /// Adds a side effect that happens once for one cause. The function returns the cause of a
    /// write that is such an effect. It is called for each write that has changed something.
    ///
    /// # Examples
    ///
    /// An object is told that it was created in one event, however often a run is repeated:
    ///
    /// ```
    /// use kube::Client;
    /// use requeue_kube_testing::{Simulation, Verb};
    ///
    /// # async fn controller(client: Client) -> kube::Result<()> {
    /// #     client.apiserver_version().await.map(drop)
    /// # }
    /// let simulation = Simulation::new(controller).once("one event per object", |request| {
    ///     let event = request.object.as_ref()?;
    ///     let is_creation = request.verb == Verb::Create && event["reason"] == "Created";
    ///     is_creation.then(|| event["regarding"]["uid"].to_string())
    /// });
    /// simulation.seeds(0..2).check().unwrap();
    /// ```
    pub fn once(
        mut self,
        name: &str,
        cause: impl Fn(&Request) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.once.push((name.to_owned(), Arc::new(cause)));
        self
    }

    /// Runs all seeds, on a thread of its own: also a test with a runtime may call it.
    ///
    /// # Errors
    ///
    /// The first history that breaks a property, made as short as it could be.
    pub fn check(&self) -> Result<Checked, Failure> {
        let outcome = thread::scope(|scope| {
            let thread = thread::Builder::new().stack_size(STACK);
            let thread = thread.spawn_scoped(scope, || self.check_here());
            thread.map(|thread| thread.join())
        });
        let failed = |message: String| Failure {
            seed: self.seeds.start,
            property: String::from("the simulation runs"),
            message,
            story: Vec::new(),
        };
        match outcome {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(failed("a property or a step panicked".to_owned())),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    fn check_here(&self) -> Result<Checked, Failure> {
        let mut checked = Checked::default();
        for seed in self.seeds.clone() {
            let plan = self.plan(seed);
            match self.live(seed, &plan) {
                Ok(requests) => {
                    checked.histories += 1;
                    checked.requests += requests;
                }
                Err(broken) => return Err(self.shrink(seed, plan, broken)),
            }
        }
        Ok(checked)
    }

    fn plan(&self, seed: u64) -> Plan {
        let mut random = fastrand::Rng::with_seed(seed);
        let kinds = self.faults.kinds();
        let mut plan = Plan::default();
        for step in 0..=self.steps.len() {
            for _ in 0..random.usize(0..=4) {
                let Some(kind) = random.choice(&kinds) else {
                    continue;
                };
                plan.events.push(Event {
                    after: Duration::from_millis(random.u64(0..3000)),
                    what: What::Fault {
                        kind: *kind,
                        replica: random.usize(0..self.replicas),
                        amount: random.u64(1..=100),
                        lasts: Duration::from_millis(random.u64(100..20_000)),
                    },
                });
            }
            if step < self.steps.len() {
                plan.events.push(Event {
                    after: Duration::from_millis(random.u64(0..5000)),
                    what: What::Step(step),
                });
            }
        }
        plan
    }

    /// Lives through one history. Returns how many requests there were.
    fn live(&self, seed: u64, plan: &Plan) -> Result<usize, Broken> {
        fastrand::seed(seed);
        // With signals, because many controllers wait for one.
        let runtime = Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build();
        let runtime = runtime.map_err(|error| Broken {
            property: String::from("the simulation runs"),
            message: error.to_string(),
            story: Vec::new(),
        })?;
        runtime.block_on(self.history(seed, plan))
    }

    async fn history(&self, seed: u64, plan: &Plan) -> Result<usize, Broken> {
        let cluster = Cluster::new();
        let record = Arc::new(Record::new(self));
        for definition in &self.definitions {
            let installed = match definition {
                Ok(definition) => cluster
                    .install(definition)
                    .map_err(|error| error.to_string()),
                Err(error) => Err(error.clone()),
            };
            if let Err(message) = installed {
                record.fail("every definition can be installed", message);
            }
        }
        for prepare in &self.prepare {
            prepare(&cluster);
        }
        {
            let record = Arc::clone(&record);
            cluster.observe(Arc::new(move |cluster, seen| match seen {
                Seen::Answered(request) => record.note_request(cluster, request),
                Seen::Lost(line) => record.note(cluster, line),
            }));
        }
        let replicas: Vec<_> = (0..self.replicas)
            .map(|replica| {
                let process = Arc::clone(&self.process);
                let (cluster, record) = (cluster.clone(), Arc::clone(&record));
                tokio::spawn(live_on(cluster, process, record, replica, seed))
            })
            .collect();
        let outcome = self.drive(&cluster, &record, plan).await;
        for replica in replicas {
            replica.abort();
        }
        // A controller that does nothing may have every property.
        let outcome = match record.requests() {
            0 => Err(silent(cluster.elapsed())),
            _ => outcome,
        };
        outcome.map_err(|(property, message)| Broken {
            property,
            message,
            story: record.story(),
        })?;
        Ok(cluster.requests().len())
    }

    async fn drive(
        &self,
        cluster: &Cluster,
        record: &Record,
        plan: &Plan,
    ) -> Result<(), (String, String)> {
        let person = Link::named("person");
        for event in &plan.events {
            self.pass(cluster, record, event.after).await?;
            match event.what {
                What::Step(step) => {
                    if let Some((name, step)) = self.steps.get(step) {
                        record.note(cluster, format!("== {name}"));
                        // As a task, because it may panic.
                        let ended = tokio::spawn(step(cluster.client(&person))).await;
                        if let Some(error) = ended.unwrap_or_else(|error| Some(error.to_string())) {
                            return Err((format!("the step succeeds: {name}"), error));
                        }
                    }
                }
                What::Fault {
                    kind,
                    replica,
                    amount,
                    lasts,
                } => {
                    record.note(cluster, kind.told(replica, amount, lasts));
                    let end = kind.begin(cluster, record.link(replica), amount);
                    tokio::spawn(async move {
                        sleep(lasts).await;
                        end();
                    });
                }
            }
        }
        self.pass(cluster, record, plan.rest).await?;
        for replica in 0..self.replicas {
            record.link(replica).heal();
        }
        record.note(cluster, String::from("== no more faults"));
        self.settle(cluster, record).await
    }

    /// Waits until everything is as wanted and nothing changes any more.
    async fn settle(&self, cluster: &Cluster, record: &Record) -> Result<(), (String, String)> {
        let ends = Instant::now() + PATIENCE;
        let mut quiet = Duration::ZERO;
        let mut seen = 0;
        loop {
            let tick = Duration::from_secs(1);
            self.pass(cluster, record, tick).await?;
            let changes = record.changes();
            quiet = if changes == seen {
                quiet + tick
            } else {
                Duration::ZERO
            };
            seen = changes;
            if quiet > Duration::ZERO && quiet < QUIET {
                continue;
            }
            let broken = self.finally.iter().find_map(|(name, holds)| {
                holds(cluster).err().map(|message| (name.clone(), message))
            });
            if quiet >= QUIET && broken.is_none() {
                return Ok(());
            }
            if Instant::now() >= ends {
                let restless = || {
                    let message =
                        format!("{changes} changes, the last one less than {QUIET:?} ago");
                    (COMES_TO_REST.to_owned(), message)
                };
                return Err(broken.unwrap_or_else(restless));
            }
        }
    }

    /// Lets time pass, unless something has gone wrong.
    async fn pass(
        &self,
        cluster: &Cluster,
        record: &Record,
        time: Duration,
    ) -> Result<(), (String, String)> {
        let until = Instant::now() + time;
        let mut news = cluster.news();
        loop {
            news.mark_unchanged();
            if let Some(failure) = record.failure() {
                return Err(failure);
            }
            if let Some(line) = cluster.unsupported().into_iter().next() {
                let property = "every request is one that this cluster does";
                return Err((property.to_owned(), line));
            }
            if record.changes() > CHANGES {
                let message = format!("more than {CHANGES} changes");
                return Err((COMES_TO_REST.to_owned(), message));
            }
            if Instant::now() >= until {
                return Ok(());
            }
            tokio::select! {
                biased;
                _ = news.changed() => {}
                () = sleep_until(until) => {}
            }
        }
    }

    /// Leaves out one event after the other as long as the same property breaks. The others stay
    /// where they are in time. A step stays if the property breaks without it although nothing goes
    /// wrong: such a story tells nothing.
    fn shrink(&self, seed: u64, plan: Plan, broken: Broken) -> Failure {
        let (mut plan, mut broken) = (plan, broken);
        let _quiet = Quiet::begin();
        let property = broken.property.clone();
        let fails = |plan: &Plan| {
            let other = self.live(seed, plan).err();
            other.filter(|other| other.property == property)
        };
        // If it breaks with all steps and without faults, no fault is to blame.
        let calm = fails(&plan.without_faults());
        let message = calm.as_ref().map(|calm| calm.message.clone());
        if let Some(calm) = calm {
            plan = plan.without_faults();
            broken = calm;
        }
        let mut index = 0;
        let mut is_shorter = false;
        for _ in 0..SHRINKS {
            if index == plan.events.len() {
                if plan.events.is_empty() || !std::mem::take(&mut is_shorter) {
                    break;
                }
                index = 0;
            }
            let (shorter, left_out) = plan.without(index);
            let tells_nothing = || {
                left_out.is_step()
                    && message.is_none()
                    && fails(&shorter.without_faults()).is_some()
            };
            let other = if tells_nothing() {
                None
            } else {
                fails(&shorter)
            };
            match other {
                Some(other)
                    if message
                        .as_ref()
                        .is_none_or(|message| *message == other.message) =>
                {
                    is_shorter = true;
                    plan = shorter;
                    broken = other;
                }
                _ => index += 1,
            }
        }
        Failure {
            seed,
            property: broken.property,
            message: broken.message,
            story: broken.story,
        }
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation")
            .field("seeds", &self.seeds)
            .field("replicas", &self.replicas)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

/// How long nothing has to change.
const QUIET: Duration = Duration::from_secs(600);
/// How long a controller has in the end.
const PATIENCE: Duration = Duration::from_secs(3600);
/// How many changes a history has at most.
const CHANGES: usize = 500;
const COMES_TO_REST: &str = "the controller comes to rest";
/// How often a failure is repeated at most.
const SHRINKS: usize = 40;
/// Without optimization the types of Kubernetes need more than the 2 MiB of other threads.
const STACK: usize = 32 << 20;

/// What a controller or a step may return: nothing, or a `Result`.
///
/// # Examples
///
/// ```
/// use kube::Client;
/// use requeue_kube_testing::Simulation;
///
/// async fn controller(client: Client) -> kube::Result<()> {
///     println!("{}", client.apiserver_version().await?.git_version);
///     Ok(())
/// }
///
/// Simulation::new(controller).seeds(0..2).check().unwrap();
/// ```
pub trait Outcome {
    /// Returns the error, if it is one.
    fn error(self) -> Option<String>;
}

impl Outcome for () {
    fn error(self) -> Option<String> {
        None
    }
}

impl<T, E: fmt::Display> Outcome for Result<T, E> {
    fn error(self) -> Option<String> {
        self.err().map(|error| error.to_string())
    }
}

/// A future that loops for ever.
#[expect(private_interfaces, reason = "the type is `!`, which is public")]
impl Outcome for Never {
    fn error(self) -> Option<String> {
        self
    }
}

/// The type `!`, which has no name outside of a function's signature yet.
type Never = <fn() -> ! as Returns>::Value;

trait Returns {
    type Value;
}

impl<T> Returns for fn() -> T {
    type Value = T;
}

fn process<F>(run: impl Fn(Client) -> F + Send + Sync + 'static) -> Arc<Process>
where
    F: Future<Output: Outcome> + Send + 'static,
{
    Arc::new(move |client| {
        let run = run(client);
        Box::pin(async move { run.await.error() })
    })
}

/// A process that is started again whenever it ends.
async fn live_on(
    cluster: Cluster,
    process: Arc<Process>,
    record: Arc<Record>,
    replica: usize,
    seed: u64,
) {
    let mut born = 0_u64;
    loop {
        born += 1;
        let of_its_own = seed.wrapping_mul(31).wrapping_add(replica as u64);
        let link = Link::seeded(
            &format!("replica-{}", replica + 1),
            of_its_own.wrapping_mul(1009).wrapping_add(born),
        );
        record.set_link(replica, link.clone());
        let mut running = tokio::spawn(process(cluster.client(&link)));
        tokio::select! {
            ended = &mut running => match ended {
                Err(error) if error.is_panic() => {
                    record.fail("the controller does not panic", error.to_string());
                }
                Ok(Some(error)) => record.note(&cluster, format!("{} ends: {error}", link.name())),
                _ => record.note(&cluster, format!("{} ends", link.name())),
            },
            () = link.killed() => {
                running.abort();
                record.note(&cluster, format!("{} is killed", link.name()));
            }
        }
        // What the process has spawned reaches the cluster no more.
        link.kill();
        sleep(Duration::from_secs(1)).await;
    }
}

/// What happens in one history, and the judge of it.
struct Record {
    always: Vec<(String, Arc<HoldsAfter>)>,
    once: Vec<(String, Arc<Cause>)>,
    happened: Mutex<Happened>,
}

struct Happened {
    story: Vec<Line>,
    /// Those of processes that have ended.
    requests: u64,
    changes: usize,
    /// The effects that may happen once, with their causes.
    effects: BTreeSet<(String, String)>,
    failure: Option<(String, String)>,
    links: Vec<Link>,
}

impl Record {
    fn new(simulation: &Simulation) -> Self {
        Self {
            always: simulation.always.clone(),
            once: simulation.once.clone(),
            happened: Mutex::new(Happened {
                story: Vec::new(),
                requests: 0,
                changes: 0,
                effects: BTreeSet::new(),
                failure: None,
                links: vec![Link::named("not yet"); simulation.replicas],
            }),
        }
    }

    fn happened(&self) -> MutexGuard<'_, Happened> {
        self.happened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, cluster: &Cluster, line: String) {
        let mut happened = self.happened();
        match happened.story.last_mut() {
            Some(last) if last.text == line => last.times += 1,
            _ => happened.story.push(Line {
                at: cluster.elapsed(),
                text: line,
                times: 1,
            }),
        }
    }

    fn note_request(&self, cluster: &Cluster, request: &Request) {
        // Reads that fail because of a fault are told, too.
        if request.verb.is_write() || matches!(request.status, 429 | 500 | 504) {
            self.note(cluster, request.to_string());
        }
        if !request.changed {
            return;
        }
        // Leases are renewed for ever.
        if request.resource != "leases.coordination.k8s.io" {
            self.happened().changes += 1;
        }
        for (name, holds) in &self.always {
            // It runs in the task of the request, where a panic would go unseen.
            let outcome = catch_unwind(AssertUnwindSafe(|| holds(cluster, request)));
            if let Err(message) = outcome.unwrap_or_else(|_| Err("it panicked".to_owned())) {
                self.fail(name, message);
            }
        }
        for (name, cause) in &self.once {
            if let Some(cause) = cause(request) {
                let is_first = self
                    .happened()
                    .effects
                    .insert((name.clone(), cause.clone()));
                if !is_first {
                    self.fail(name, format!("twice for {cause}"));
                }
            }
        }
    }

    fn fail(&self, property: &str, message: String) {
        let mut happened = self.happened();
        happened
            .failure
            .get_or_insert((property.to_owned(), message));
    }

    fn failure(&self) -> Option<(String, String)> {
        self.happened().failure.clone()
    }

    fn changes(&self) -> usize {
        self.happened().changes
    }

    fn link(&self, replica: usize) -> Link {
        self.happened().links[replica].clone()
    }

    fn set_link(&self, replica: usize, link: Link) {
        let mut happened = self.happened();
        happened.requests += happened.links[replica].requests();
        happened.links[replica] = link;
    }

    /// How many requests all replicas have made.
    fn requests(&self) -> u64 {
        let happened = self.happened();
        let present = happened.links.iter().map(Link::requests).sum::<u64>();
        happened.requests + present
    }

    fn story(&self) -> Vec<String> {
        let happened = self.happened();
        happened.story.iter().map(Line::to_string).collect()
    }
}

/// A line of a story, once or so many times in a row.
struct Line {
    at: Duration,
    text: String,
    times: usize,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10.3} s  {}", self.at.as_secs_f64(), self.text)?;
        match self.times {
            1 => Ok(()),
            times => write!(f, " ({times} times)"),
        }
    }
}

/// Why a history without requests of the controller fails.
fn silent(time: Duration) -> (String, String) {
    let message = format!(
        "no replica has sent a request in {} s: does it use the client that it is given, and is its \
         future awaited?",
        time.as_secs()
    );
    (String::from("the controller makes requests"), message)
}

/// While this is there, panics on this thread print nothing: the same failure is repeated.
struct Quiet;

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

impl Quiet {
    fn begin() -> Self {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                if !IS_QUIET.get() {
                    before(info);
                }
            }));
        });
        IS_QUIET.set(true);
        Self
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        IS_QUIET.set(false);
    }
}

/// What happens in a history.
#[derive(Clone, Debug, Default)]
struct Plan {
    events: Vec<Event>,
    /// How long after the last event the faults end.
    rest: Duration,
}

impl Plan {
    /// Leaves an event out. The others stay where they are in time.
    fn without(&self, index: usize) -> (Self, Event) {
        let mut plan = self.clone();
        let left_out = plan.events.remove(index);
        match plan.events.get_mut(index) {
            Some(next) => next.after += left_out.after,
            None => plan.rest += left_out.after,
        }
        (plan, left_out)
    }

    fn without_faults(&self) -> Self {
        let steps = self.events.iter().filter(|event| event.is_step());
        Self {
            events: steps.cloned().collect(),
            rest: Duration::ZERO,
        }
    }
}

/// An event of a plan.
#[derive(Clone, Debug)]
struct Event {
    after: Duration,
    what: What,
}

impl Event {
    const fn is_step(&self) -> bool {
        matches!(self.what, What::Step(_))
    }
}

#[derive(Clone, Copy, Debug)]
enum What {
    Step(usize),
    Fault {
        kind: Kind,
        replica: usize,
        /// 1 to 100: what it means depends on the fault.
        amount: u64,
        lasts: Duration,
    },
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Lag(Duration),
    OldLists(Duration),
    Latency(Duration),
    ClocksApart(Duration),
    Errors,
    LateEffects,
    Throttling,
    Duplicates,
    CutOff,
    EndOfWatches,
    Kill,
}

impl Kind {
    /// Begins the fault. The function that it returns ends this fault and no other kind.
    fn begin(self, cluster: &Cluster, link: Link, amount: u64) -> Box<dyn FnOnce() + Send> {
        let share = |most: Duration| {
            let millis = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
            Duration::from_millis(millis.saturating_mul(amount) / 100)
        };
        let of_100 = u8::try_from(amount / 2).unwrap_or(50);
        match self {
            // Of all resources, or of one that has objects.
            Self::Lag(most) => {
                match resource(cluster, amount) {
                    Some(resource) => link.lag_of(&resource, share(most)),
                    None => link.lag(share(most)),
                }
                Box::new(move || link.lag(Duration::ZERO))
            }
            Self::OldLists(most) => {
                link.list_age(share(most));
                Box::new(move || link.list_age(Duration::ZERO))
            }
            Self::Latency(most) => {
                link.latency(share(most));
                Box::new(move || link.latency(Duration::ZERO))
            }
            Self::ClocksApart(most) => {
                link.clock_ahead(share(most));
                Box::new(move || link.clock_ahead(Duration::ZERO))
            }
            Self::Errors => {
                link.errors(of_100);
                Box::new(move || link.errors(0))
            }
            Self::LateEffects => {
                link.late_effects(of_100);
                Box::new(move || link.late_effects(0))
            }
            Self::Throttling => {
                link.throttle(of_100);
                Box::new(move || link.throttle(0))
            }
            Self::Duplicates => {
                link.duplicates(of_100);
                Box::new(move || link.duplicates(0))
            }
            Self::CutOff => {
                link.cut_off(true);
                Box::new(move || link.cut_off(false))
            }
            Self::EndOfWatches => {
                if amount > 50 {
                    cluster.compact();
                }
                cluster.end_watches(&resource(cluster, amount).unwrap_or_default());
                Box::new(|| {})
            }
            Self::Kill => {
                link.kill_after(u32::try_from(amount / 10).unwrap_or(0));
                Box::new(move || link.spare())
            }
        }
    }

    fn told(self, replica: usize, amount: u64, lasts: Duration) -> String {
        let replica = replica + 1;
        let half = amount / 2;
        let what = match self {
            Self::Lag(most) => format!("its watches lag {:?}", most * amount as u32 / 100),
            Self::OldLists(most) => {
                format!("its lists may be {:?} old", most * amount as u32 / 100)
            }
            Self::Latency(most) => format!("requests take up to {:?}", most * amount as u32 / 100),
            Self::ClocksApart(most) => {
                format!("its clock is {:?} ahead", most * amount as u32 / 100)
            }
            Self::Errors => format!("{half} of 100 requests fail"),
            Self::LateEffects => format!("{half} of 100 writes time out and land later"),
            Self::Throttling => format!("{half} of 100 requests are throttled"),
            Self::Duplicates => format!("{half} of 100 events come twice"),
            Self::CutOff => String::from("is cut off"),
            Self::EndOfWatches if amount > 50 => {
                String::from("watches end, and history is compacted")
            }
            Self::EndOfWatches => String::from("watches end"),
            Self::Kill => format!("will be killed after {} requests", amount / 10),
        };
        match self {
            Self::Kill | Self::EndOfWatches => format!("!! replica-{replica}: {what}"),
            _ => format!("!! replica-{replica}: {what}, for {lasts:?}"),
        }
    }
}

/// A resource that has objects, by a drawn number. `None` stands for all.
fn resource(cluster: &Cluster, amount: u64) -> Option<String> {
    let state = cluster.state();
    let mut resources: Vec<&str> = state
        .store
        .objects()
        .map(|(key, _)| key.resource.as_str())
        .collect();
    resources.dedup();
    let index = usize::try_from(amount).unwrap_or(0) % (resources.len() + 1);
    resources.get(index).map(|&name| name.to_owned())
}

/// Which faults a [`Simulation`] draws.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use kube::Client;
/// use requeue_kube_testing::{Faults, Simulation};
///
/// # async fn controller(client: Client) -> kube::Result<()> {
/// #     client.apiserver_version().await.map(drop)
/// # }
/// // Does the controller cope with watches that are late, and with nothing else?
/// let late = Faults::none().lag(Duration::from_secs(5));
/// Simulation::new(controller).faults(late).seeds(0..10).check()?;
///
/// // With everything but kills?
/// let alive = Faults::all().kills(false);
/// Simulation::new(controller).faults(alive).seeds(0..10).check()?;
/// # Ok::<(), requeue_kube_testing::Failure>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Faults {
    lag: Duration,
    old_lists: Duration,
    latency: Duration,
    clocks_apart: Duration,
    errors: bool,
    late_effects: bool,
    throttling: bool,
    duplicates: bool,
    cut_offs: bool,
    ends_of_watches: bool,
    kills: bool,
}

impl Faults {
    /// Draws every fault but clocks that are apart, which concern only what compares the times of
    /// several processes. Watches lag up to 5 s, lists are up to 5 s old, requests take up to 2 s.
    pub fn all() -> Self {
        Self {
            lag: Duration::from_secs(5),
            old_lists: Duration::from_secs(5),
            latency: Duration::from_secs(2),
            clocks_apart: Duration::ZERO,
            errors: true,
            late_effects: true,
            throttling: true,
            duplicates: true,
            cut_offs: true,
            ends_of_watches: true,
            kills: true,
        }
    }

    /// Draws no fault.
    pub fn none() -> Self {
        Self {
            lag: Duration::ZERO,
            old_lists: Duration::ZERO,
            latency: Duration::ZERO,
            clocks_apart: Duration::ZERO,
            errors: false,
            late_effects: false,
            throttling: false,
            duplicates: false,
            cut_offs: false,
            ends_of_watches: false,
            kills: false,
        }
    }

    /// Sets how far watches lag behind writes at most.
    pub fn lag(mut self, most: Duration) -> Self {
        self.lag = most;
        self
    }

    /// Sets how old a list is at most that allows any version.
    pub fn old_lists(mut self, most: Duration) -> Self {
        self.old_lists = most;
        self
    }

    /// Sets how long a request takes at most, each way.
    pub fn latency(mut self, most: Duration) -> Self {
        self.latency = most;
        self
    }

    /// Sets how far the clock of a replica is [ahead](Link::clock_ahead) of those of the others at
    /// most.
    pub fn clocks_apart(mut self, most: Duration) -> Self {
        self.clocks_apart = most;
        self
    }

    /// Sets whether requests fail with status 500, before or after they were carried out.
    pub fn errors(mut self, are_drawn: bool) -> Self {
        self.errors = are_drawn;
        self
    }

    /// Sets whether writes time out and land later.
    pub fn late_effects(mut self, are_drawn: bool) -> Self {
        self.late_effects = are_drawn;
        self
    }

    /// Sets whether requests are answered with status 429.
    pub fn throttling(mut self, is_drawn: bool) -> Self {
        self.throttling = is_drawn;
        self
    }

    /// Sets whether events of watches are repeated.
    pub fn duplicates(mut self, are_drawn: bool) -> Self {
        self.duplicates = are_drawn;
        self
    }

    /// Sets whether replicas are cut off from the API server.
    pub fn cut_offs(mut self, are_drawn: bool) -> Self {
        self.cut_offs = are_drawn;
        self
    }

    /// Sets whether watches end, and history is compacted.
    pub fn ends_of_watches(mut self, are_drawn: bool) -> Self {
        self.ends_of_watches = are_drawn;
        self
    }

    /// Sets whether replicas are killed, between any two requests.
    pub fn kills(mut self, are_drawn: bool) -> Self {
        self.kills = are_drawn;
        self
    }

    fn kinds(&self) -> Vec<Kind> {
        let timed = |time: Duration, kind: fn(Duration) -> Kind| {
            (time > Duration::ZERO).then(|| kind(time))
        };
        let drawn = |is_drawn: bool, kind: Kind| is_drawn.then_some(kind);
        let kinds = [
            timed(self.lag, Kind::Lag),
            timed(self.old_lists, Kind::OldLists),
            timed(self.latency, Kind::Latency),
            timed(self.clocks_apart, Kind::ClocksApart),
            drawn(self.errors, Kind::Errors),
            drawn(self.late_effects, Kind::LateEffects),
            drawn(self.throttling, Kind::Throttling),
            drawn(self.duplicates, Kind::Duplicates),
            drawn(self.cut_offs, Kind::CutOff),
            drawn(self.ends_of_watches, Kind::EndOfWatches),
            drawn(self.kills, Kind::Kill),
        ];
        kinds.into_iter().flatten().collect()
    }
}

impl Default for Faults {
    fn default() -> Self {
        Self::all()
    }
}

/// What a [`Simulation`] has lived through without a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// How many histories there were: one a seed.
    pub histories: usize,
    /// How many requests they had together.
    pub requests: usize,
}

struct Broken {
    property: String,
    message: String,
    story: Vec<String>,
}

/// A history that breaks a property. Its text tells what happened, in order, and the seed.
#[derive(Clone)]
#[non_exhaustive]
pub struct Failure {
    /// The seed: `.seeds(seed..seed + 1)` repeats it.
    pub seed: u64,
    /// The name of the property.
    pub property: String,
    /// How it is broken.
    pub message: String,
    /// Steps, faults and writes with their times.
    pub story: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seed,
            property,
            message,
            story,
        } = self;
        writeln!(f, "broken: {property}")?;
        writeln!(f, "  {message}")?;
        writeln!(
            f,
            "seed {seed}: `.seeds({seed}..{})` repeats it",
            seed.saturating_add(1)
        )?;
        let skipped = story.len().saturating_sub(2 * SHOWN);
        for (index, line) in story.iter().enumerate() {
            if index < SHOWN || index >= SHOWN + skipped {
                writeln!(f, "{line}")?;
            } else if index == SHOWN {
                writeln!(f, "… {skipped} lines")?;
            }
        }
        Ok(())
    }
}

/// As [`Display`](fmt::Display), because a test shows what it unwraps like this.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f)?;
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Failure {}

/// How many lines of a story are printed at each end.
const SHOWN: usize = 40;
