//! The link of one client, and its faults.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

/// How one client reaches the cluster. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Link(Arc<Faults>);

#[derive(Default)]
struct Faults {
    /// Requests are never answered.
    is_down: AtomicBool,
    /// Of this resource the next request is lost, and nothing says so.
    lost: Mutex<Option<&'static str>>,
    /// Of this resource the next request is carried out, and never answered.
    lost_answer: Mutex<Option<&'static str>>,
    /// Of this resource the next request is carried out, and its answer says that it timed out.
    timed_out: Mutex<Option<&'static str>>,
    /// Watches say nothing more, also if they are begun again.
    is_deaf: AtomicBool,
    /// How long a request and each event of a watch takes at most, in milliseconds.
    latency: AtomicU64,
    /// How much later than they happen the events of a resource come: at least, and at most.
    lags: Mutex<BTreeMap<&'static str, (Duration, Duration)>>,
    /// Of 100 requests so many time out, before or after they were carried out.
    failures: AtomicU64,
    /// Of 100 events of a watch so many come twice.
    repeats: AtomicU64,
    random: AtomicU64,
}

impl Link {
    pub(crate) fn seeded(seed: u64) -> Self {
        let link = Self::default();
        link.0.random.store(seed, Ordering::Relaxed);
        link
    }

    pub(crate) fn set_down(&self, is_down: bool) {
        self.0.is_down.store(is_down, Ordering::Relaxed);
    }

    pub(crate) fn lose_next(&self, resource: &'static str) {
        *self.0.lost.lock().unwrap() = Some(resource);
    }

    pub(super) fn loses(&self, resource: &str) -> bool {
        let mut lost = self.0.lost.lock().unwrap();
        lost.take_if(|lost| *lost == resource).is_some()
    }

    pub(crate) fn lose_answer(&self, resource: &'static str) {
        *self.0.lost_answer.lock().unwrap() = Some(resource);
    }

    pub(super) fn loses_answer(&self, resource: &str) -> bool {
        let mut lost = self.0.lost_answer.lock().unwrap();
        lost.take_if(|lost| *lost == resource).is_some()
    }

    pub(crate) fn time_out_next(&self, resource: &'static str) {
        *self.0.timed_out.lock().unwrap() = Some(resource);
    }

    pub(super) fn times_out(&self, resource: &str) -> bool {
        let mut timed_out = self.0.timed_out.lock().unwrap();
        timed_out.take_if(|one| *one == resource).is_some()
    }

    #[cfg(feature = "shards")]
    pub(crate) fn set_deaf(&self, is_deaf: bool) {
        self.0.is_deaf.store(is_deaf, Ordering::Relaxed);
    }

    pub(super) fn is_deaf(&self) -> bool {
        self.0.is_deaf.load(Ordering::Relaxed)
    }

    pub(crate) fn set_faults(&self, latency: Duration, failures: u64, repeats: u64) {
        let millis = u64::try_from(latency.as_millis()).unwrap();
        self.0.latency.store(millis, Ordering::Relaxed);
        self.0.failures.store(failures, Ordering::Relaxed);
        self.0.repeats.store(repeats, Ordering::Relaxed);
    }

    pub(crate) fn set_lag(&self, resource: &'static str, least: Duration, most: Duration) {
        self.0.lags.lock().unwrap().insert(resource, (least, most));
    }

    /// Waits until an event comes that happened at `at`.
    pub(super) async fn lag(&self, resource: &str, at: Instant) {
        let lag = self.0.lags.lock().unwrap().get(resource).copied();
        if let Some((least, most)) = lag {
            let random = u64::try_from((most - least).as_millis()).unwrap();
            sleep_until(at + least + Duration::from_millis(self.random(random + 1))).await;
        }
    }

    /// splitmix64.
    fn random(&self, below: u64) -> u64 {
        let step = 0x9e37_79b9_7f4a_7c15;
        let mut x = self
            .0
            .random
            .fetch_add(step, Ordering::Relaxed)
            .wrapping_add(step);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % below.max(1)
    }

    /// What is sent while the link is down is lost, which is noticed when it is up again, or after
    /// half a minute.
    pub(super) async fn travel(&self) -> io::Result<()> {
        let latency = self.0.latency.load(Ordering::Relaxed);
        if latency > 0 {
            sleep(Duration::from_millis(self.random(latency))).await;
        }
        for second in 0..30 {
            if self.0.is_down.load(Ordering::Relaxed) {
                sleep(Duration::from_secs(1)).await;
            } else if second == 0 {
                return Ok(());
            }
        }
        Err(io::Error::other("connection lost"))
    }

    pub(super) fn fails(&self) -> bool {
        self.random(100) < self.0.failures.load(Ordering::Relaxed)
    }

    pub(super) fn repeats(&self) -> bool {
        self.random(100) < self.0.repeats.load(Ordering::Relaxed)
    }
}
