//! How one client reaches the cluster, and what goes wrong on the way.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::sleep;

/// The connection of one client: a process that can be slowed down, cut off and killed.
///
/// Clones are the same connection. Without faults a request takes a millisecond each way, so that
/// time passes however busy a controller is.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use requeue_kube_testing::{Cluster, Link};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let cluster = Cluster::new();
/// let link = Link::named("replica-1");
/// let client = cluster.client(&link);
/// link.lag(Duration::from_secs(5)); // Its watches see every write 5 s later.
/// # drop(client);
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Link {
    name: Arc<str>,
    state: Arc<Mutex<Faults>>,
    /// The number of changes: whoever sleeps for the end of a fault looks again.
    changes: Arc<watch::Sender<u64>>,
}

#[derive(Debug)]
struct Faults {
    is_dead: bool,
    is_cut_off: bool,
    /// How many requests there were.
    requests: u64,
    /// A request more after so many kills the process.
    requests_left: Option<u32>,
    latency: Duration,
    delays: fastrand::Rng,
    /// By resource. That of all other resources has no name.
    lag: BTreeMap<String, Duration>,
    list_age: Duration,
    /// How far the clock of the process is ahead.
    ahead: Duration,
    errors: Chance,
    timeouts: Chance,
    duplicates: Chance,
    throttled: Chance,
}

impl Faults {
    fn none(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut chance = || Chance {
            of_100: 0,
            random: random.fork(),
        };
        Self {
            is_dead: false,
            is_cut_off: false,
            requests: 0,
            requests_left: None,
            latency: Duration::ZERO,
            lag: BTreeMap::new(),
            list_age: Duration::ZERO,
            ahead: Duration::ZERO,
            errors: chance(),
            timeouts: chance(),
            duplicates: chance(),
            throttled: chance(),
            delays: random,
        }
    }
}

/// How often something goes wrong. Each thing has random numbers of its own, so that a history
/// stays as it is if another fault is left out.
#[derive(Debug)]
struct Chance {
    of_100: u8,
    random: fastrand::Rng,
}

impl Chance {
    fn happens(&mut self) -> bool {
        self.of_100 > 0 && self.random.u8(0..100) < self.of_100
    }
}

/// What becomes of a request.
pub(crate) enum Fate {
    Done,
    /// It is refused before it was carried out.
    Refused,
    /// It is carried out, and the answer is an error.
    Unanswered,
    /// The client is told of a timeout, and the write lands after this time.
    Late(Duration),
    /// The server asks to come again.
    Throttled,
}

impl Link {
    /// Creates a connection without faults. The name stands in [`Request::client`].
    ///
    /// [`Request::client`]: crate::Request::client
    pub fn named(name: &str) -> Self {
        Self::seeded(name, 0)
    }

    /// Creates a connection whose faults are drawn from a seed.
    pub fn seeded(name: &str, seed: u64) -> Self {
        Self {
            name: name.into(),
            state: Arc::new(Mutex::new(Faults::none(seed))),
            changes: Arc::new(watch::Sender::new(0)),
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Shows every change to its watches this much later, in order.
    pub fn lag(&self, lag: Duration) {
        self.change(|faults| {
            faults.lag.clear();
            faults.lag.insert(String::new(), lag);
        });
    }

    /// The same for one resource, as `secrets` or `deployments.apps`.
    pub fn lag_of(&self, resource: &str, lag: Duration) {
        self.change(|faults| {
            faults.lag.insert(resource.to_owned(), lag);
        });
    }

    /// Answers lists that allow it (`resourceVersion=0`) as of this time ago.
    pub fn list_age(&self, age: Duration) {
        self.change(|faults| faults.list_age = age);
    }

    /// Puts the clock of the process ahead of all others. Each time in an object (RFC 3339) that it
    /// writes is so much later, and each that it reads so much earlier, as it would look to it. What
    /// its own program reads from the system's clock stays.
    ///
    /// # Examples
    ///
    /// Leases hold the times of several processes:
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_kube_testing::Link;
    ///
    /// let replica = Link::named("replica-1");
    /// replica.clock_ahead(Duration::from_secs(90));
    /// ```
    pub fn clock_ahead(&self, by: Duration) {
        self.change(|faults| faults.ahead = by);
    }

    /// Delays each request and each event of a watch by a drawn time of at most this.
    pub fn latency(&self, most: Duration) {
        self.change(|faults| faults.latency = most);
    }

    /// Fails so many of 100 requests with status 500. Half of these writes are carried out.
    pub fn errors(&self, of_100: u8) {
        self.change(|faults| faults.errors.of_100 = of_100);
    }

    /// Answers so many of 100 writes with a timeout. They land up to five seconds later.
    pub fn late_effects(&self, of_100: u8) {
        self.change(|faults| faults.timeouts.of_100 = of_100);
    }

    /// Answers so many of 100 requests with status 429 and a time to wait.
    pub fn throttle(&self, of_100: u8) {
        self.change(|faults| faults.throttled.of_100 = of_100);
    }

    /// Repeats so many of 100 events of its watches.
    pub fn duplicates(&self, of_100: u8) {
        self.change(|faults| faults.duplicates.of_100 = of_100);
    }

    /// Cuts the connection, or restores it. Requests and watches hang, and fail after 30 s.
    pub fn cut_off(&self, is_cut_off: bool) {
        self.change(|faults| faults.is_cut_off = is_cut_off);
    }

    /// Kills the process after so many more requests, watches among them: no later request is
    /// answered. [`killed`](Self::killed) waits for it.
    pub fn kill_after(&self, requests: u32) {
        self.change(|faults| faults.requests_left = Some(requests));
    }

    /// Lets the process live, if it has not been killed yet.
    pub(crate) fn spare(&self) {
        self.change(|faults| faults.requests_left = None);
    }

    /// Kills the process at once.
    pub fn kill(&self) {
        self.change(|faults| faults.is_dead = true);
    }

    /// Ends all faults but a kill.
    pub fn heal(&self) {
        self.change(|faults| {
            faults.is_cut_off = false;
            faults.requests_left = None;
            faults.latency = Duration::ZERO;
            faults.lag.clear();
            faults.list_age = Duration::ZERO;
            faults.ahead = Duration::ZERO;
            for chance in [
                &mut faults.errors,
                &mut faults.timeouts,
                &mut faults.duplicates,
                &mut faults.throttled,
            ] {
                chance.of_100 = 0;
            }
        });
    }

    /// Waits until the process is killed. Cancel safe.
    pub async fn killed(&self) {
        let mut changes = self.changes.subscribe();
        while !self.state().is_dead {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, Faults> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.state());
        self.changes
            .send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    /// Resolves at the next change of its faults.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Counts a request, which may be the one that the process does not survive.
    pub(crate) fn count(&self) {
        let mut faults = self.state();
        faults.requests += 1;
        match faults.requests_left {
            Some(0) => {
                drop(faults);
                self.kill();
            }
            Some(left) => faults.requests_left = Some(left - 1),
            None => {}
        }
    }

    /// How many requests there were, watches among them.
    pub(crate) fn requests(&self) -> u64 {
        self.state().requests
    }

    /// One way. What is sent while the connection is cut is lost, which shows when it is restored,
    /// or after half a minute.
    pub(crate) async fn travel(&self) -> io::Result<()> {
        let latency = {
            let mut faults = self.state();
            let most = u64::try_from(faults.latency.as_millis()).unwrap_or(u64::MAX);
            faults.delays.u64(0..=most).max(1)
        };
        sleep(Duration::from_millis(latency)).await;
        for second in 0..30 {
            if self.state().is_dead {
                return std::future::pending().await;
            }
            if self.state().is_cut_off {
                sleep(Duration::from_secs(1)).await;
            } else if second == 0 {
                return Ok(());
            }
        }
        Err(io::Error::other("connection lost"))
    }

    pub(crate) fn fate(&self, is_write: bool) -> Fate {
        let mut faults = self.state();
        if faults.throttled.happens() {
            Fate::Throttled
        } else if faults.errors.happens() {
            if is_write && faults.errors.random.bool() {
                Fate::Unanswered
            } else {
                Fate::Refused
            }
        } else if is_write && faults.timeouts.happens() {
            let after = faults.timeouts.random.u64(0..5000);
            Fate::Late(Duration::from_millis(after))
        } else {
            Fate::Done
        }
    }

    pub(crate) fn repeats(&self) -> bool {
        self.state().duplicates.happens()
    }

    pub(crate) fn lag_for(&self, resource: &str) -> Duration {
        let faults = self.state();
        let lag = faults.lag.get(resource).or_else(|| faults.lag.get(""));
        lag.copied().unwrap_or_default()
    }

    /// The body of a request, with its times as the others see them.
    pub(crate) fn sent(&self, body: Bytes) -> Bytes {
        let ahead = self.ahead();
        match serde_json::from_slice(&body) {
            Ok(mut value) if !ahead.is_zero() => {
                move_times(&mut value, ahead);
                value.to_string().into()
            }
            _ => body,
        }
    }

    /// An object, with its times as the process sees them.
    pub(crate) fn received(&self, mut value: Value) -> Value {
        let ahead = self.ahead();
        if !ahead.is_zero() {
            move_times(&mut value, -ahead);
        }
        value
    }

    fn ahead(&self) -> SignedDuration {
        SignedDuration::try_from(self.state().ahead).unwrap_or(SignedDuration::ZERO)
    }

    pub(crate) fn age_of_lists(&self) -> Duration {
        self.state().list_age
    }
}

/// Moves each time in a value.
fn move_times(value: &mut Value, by: SignedDuration) {
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        match value {
            Value::Array(values) => rest.extend(values),
            Value::Object(fields) => rest.extend(fields.values_mut()),
            Value::String(text) => {
                let time = text.parse::<Timestamp>().ok();
                if let Some(moved) = time.and_then(|time| time.checked_add(by).ok()) {
                    *text = moved.to_string();
                }
            }
            _ => {}
        }
    }
}
