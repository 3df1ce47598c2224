//! Leader election: who works, and when.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use requeue_kube::{
    Action, CancellationToken, Context, Controller, Error, Health, Leader, Leftover,
};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::{Instant, advance, sleep, timeout};

use crate::api::{Cluster, Link};
use crate::{map, maps, seconds};

const LEASES: &str = "leases.coordination.k8s.io";

/// Who runs now, and who has run, and when.
#[derive(Clone, Default)]
pub(crate) struct Watchdog(Arc<Mutex<Shifts>>);

#[derive(Default)]
struct Shifts {
    at_work: Option<(String, u32)>,
    /// Who began to work, and when, without repetition.
    shifts: Vec<(String, Instant)>,
    both: Vec<String>,
}

impl Watchdog {
    /// A run of `who` begins; it ends when the result is dropped.
    pub(crate) fn begin(&self, who: &str) -> Shift {
        let mut shifts = self.0.lock().unwrap();
        match &mut shifts.at_work {
            Some((at_work, runs)) if at_work == who => *runs += 1,
            Some((at_work, _)) => {
                let both = format!("{who} began while {at_work} was at work");
                shifts.both.push(both);
            }
            none => *none = Some((who.to_owned(), 1)),
        }
        if shifts.shifts.last().is_none_or(|(last, _)| last != who) {
            shifts.shifts.push((who.to_owned(), Instant::now()));
        }
        Shift(self.clone(), who.to_owned())
    }

    pub(crate) fn assert_never_both(&self) {
        assert_eq!(self.0.lock().unwrap().both, [""; 0]);
    }

    pub(crate) fn both(&self) -> Vec<String> {
        self.0.lock().unwrap().both.clone()
    }

    pub(crate) fn shifts(&self) -> Vec<(String, Instant)> {
        self.0.lock().unwrap().shifts.clone()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.shifts().into_iter().map(|(name, _)| name).collect()
    }
}

pub(crate) struct Shift(Watchdog, String);

impl Drop for Shift {
    fn drop(&mut self) {
        let mut shifts = self.0.0.lock().unwrap();
        if let Some((at_work, runs)) = &mut shifts.at_work
            && *at_work == self.1
        {
            *runs -= 1;
            if *runs == 0 {
                shifts.at_work = None;
            }
        }
    }
}

type Ended = Result<Vec<Leftover<kube::runtime::reflector::ObjectRef<ConfigMap>>>, Error>;

/// A replica whose runs take a second, over and over.
struct Replica {
    link: Link,
    stop: CancellationToken,
    health: Health,
    running: JoinHandle<Ended>,
}

fn replica(cluster: &Cluster, who: &str, watchdog: &Watchdog, skew: SignedDuration) -> Replica {
    let link = Link::default();
    let leader = leader(cluster, &link, who, skew);
    working(cluster, link, leader, who, watchdog)
}

fn leader(cluster: &Cluster, link: &Link, who: &str, skew: SignedDuration) -> Leader {
    let began = Instant::now();
    let wall_clock = move || {
        let elapsed = SignedDuration::try_from(began.elapsed()).unwrap();
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(9) + elapsed + skew
    };
    Leader::lease(cluster.client(link), "default", "test")
        .identity(who)
        .wall_clock(wall_clock)
}

fn working(
    cluster: &Cluster,
    link: Link,
    leader: Leader,
    who: &str,
    watchdog: &Watchdog,
) -> Replica {
    let (client, stop) = (cluster.client(&link), CancellationToken::new());
    let controller: Controller<ConfigMap> = maps(&client).leader(leader);
    let health = controller.health();
    let (who, watchdog) = (who.to_owned(), watchdog.clone());
    let run = controller.run(2, stop.clone(), move |_, _: Context<ConfigMap>| {
        let (who, watchdog) = (who.clone(), watchdog.clone());
        async move {
            let _shift = watchdog.begin(&who);
            sleep(seconds(1)).await;
            Action::RequeueAfter(Duration::from_millis(10))
        }
    });
    let running = tokio::spawn(run);
    Replica {
        link,
        stop,
        health,
        running,
    }
}

fn cluster() -> Cluster {
    let cluster = Cluster::new();
    for name in ["a", "b", "c"] {
        cluster.put("configmaps", map(name, "1"));
    }
    cluster
}

const IN_STEP: SignedDuration = SignedDuration::ZERO;

#[tokio::test(start_paused = true)]
async fn one_works_and_the_other_takes_over_when_it_stops() {
    let (cluster, watchdog) = (cluster(), Watchdog::default());
    let first = replica(&cluster, "first", &watchdog, IN_STEP);
    sleep(seconds(1)).await;
    let second = replica(&cluster, "second", &watchdog, IN_STEP);
    sleep(seconds(100)).await;
    assert_eq!(watchdog.names(), ["first"]);
    assert!(second.health.ready().passes, "it waits with warm caches");
    assert!(second.health.live().body.contains("default/test not held"));
    assert!(first.health.live().body.contains("default/test held"));

    let stopped = Instant::now();
    first.stop.cancel();
    first.running.await.unwrap().unwrap();
    let lease = cluster.get(LEASES, "test").unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], "");
    sleep(seconds(100)).await;
    assert_eq!(watchdog.names(), ["first", "second"]);
    let after = watchdog.shifts()[1].1 - stopped;
    assert!(
        after < seconds(4),
        "a released lease is taken at the next look: {after:?}"
    );
    assert_eq!(
        cluster.get(LEASES, "test").unwrap()["spec"]["leaseTransitions"],
        1
    );
    second.stop.cancel();
    second.running.await.unwrap().unwrap();
    watchdog.assert_never_both();
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_is_killed_is_replaced_when_its_lease_ends() {
    let (cluster, watchdog) = (cluster(), Watchdog::default());
    let first = replica(&cluster, "first", &watchdog, IN_STEP);
    sleep(seconds(1)).await;
    let second = replica(&cluster, "second", &watchdog, IN_STEP);
    sleep(seconds(20)).await;
    let killed = Instant::now();
    first.running.abort();
    sleep(seconds(60)).await;
    assert_eq!(watchdog.names(), ["first", "second"]);
    let after = watchdog.shifts()[1].1 - killed;
    assert!(
        after <= seconds(15) + Duration::from_millis(2400),
        "{after:?}"
    );
    second.stop.cancel();
    second.running.await.unwrap().unwrap();
    watchdog.assert_never_both();
}

/// No clock of another counts: the times in the lease are hours off, in both directions.
#[tokio::test(start_paused = true)]
async fn clocks_that_are_hours_apart_change_nothing() {
    for hours in [-5, 5] {
        let (cluster, watchdog) = (cluster(), Watchdog::default());
        let first = replica(
            &cluster,
            "first",
            &watchdog,
            SignedDuration::from_hours(hours),
        );
        sleep(seconds(1)).await;
        let second = replica(&cluster, "second", &watchdog, IN_STEP);
        sleep(seconds(300)).await;
        assert_eq!(watchdog.names(), ["first"], "{hours}");
        first.running.abort();
        let killed = Instant::now();
        sleep(seconds(60)).await;
        assert_eq!(watchdog.names(), ["first", "second"], "{hours}");
        let after = watchdog.shifts()[1].1 - killed;
        assert!(
            after > seconds(12),
            "{hours}: not before it was to end: {after:?}"
        );
        second.stop.cancel();
        second.running.await.unwrap().unwrap();
        watchdog.assert_never_both();
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_before_the_other_begins() {
    let (cluster, watchdog) = (cluster(), Watchdog::default());
    let first = replica(&cluster, "first", &watchdog, IN_STEP);
    sleep(seconds(1)).await;
    let second = replica(&cluster, "second", &watchdog, IN_STEP);
    sleep(seconds(30)).await;
    let cut = Instant::now();
    first.link.set_down(true);
    let error = first.running.await.unwrap().unwrap_err();
    assert!(
        matches!(&error, Error::LeaseLost { lease } if lease == "default/test"),
        "{error}"
    );
    let stopped = cut.elapsed();
    assert!(stopped <= seconds(10), "the renew deadline: {stopped:?}");
    assert_eq!(
        watchdog.names(),
        ["first"],
        "it has stopped, and the other has not begun"
    );
    sleep(seconds(60)).await;
    assert_eq!(watchdog.names(), ["first", "second"]);
    second.stop.cancel();
    second.running.await.unwrap().unwrap();
    watchdog.assert_never_both();
}

/// The process is stopped while it renews its lease, for longer than the renew deadline, and the
/// reply is there when it goes on. What was polled before the reply was read goes on as well.
#[tokio::test(start_paused = true)]
async fn a_leader_that_is_stopped_while_it_renews_leaves_no_run_behind() {
    for moment in 0..20 {
        let (cluster, watchdog) = (cluster(), Watchdog::default());
        let only = replica(&cluster, "only", &watchdog, IN_STEP);
        sleep(seconds(10)).await;
        only.link.set_faults(seconds(2), 0, 0);
        sleep(seconds(20) + Duration::from_millis(200) * moment).await;
        advance(seconds(7)).await;
        only.link.set_faults(Duration::ZERO, 0, 0);
        sleep(seconds(20)).await;
        only.stop.cancel();
        let ended = timeout(seconds(60), only.running).await;
        assert!(ended.is_ok(), "{moment}: a run has not ended");
    }
}

#[tokio::test(start_paused = true)]
async fn short_outages_are_survived() {
    let (cluster, watchdog) = (cluster(), Watchdog::default());
    let only = replica(&cluster, "only", &watchdog, IN_STEP);
    sleep(seconds(5)).await;
    for _ in 0..5 {
        cluster.refuse(LEASES, 500, "InternalError");
        sleep(seconds(5)).await;
        cluster.allow(LEASES);
        sleep(seconds(10)).await;
    }
    assert!(!only.running.is_finished());
    only.stop.cancel();
    only.running.await.unwrap().unwrap();
}

/// As on a connection that is dead and has not said so: the next request takes another.
#[tokio::test(start_paused = true)]
async fn a_request_without_a_reply_costs_no_leadership_and_delays_no_successor() {
    let (cluster, watchdog) = (cluster(), Watchdog::default());
    let first = replica(&cluster, "first", &watchdog, IN_STEP);
    sleep(seconds(5)).await;
    let second = replica(&cluster, "second", &watchdog, IN_STEP);
    for _ in 0..5 {
        first.link.lose_next(LEASES);
        sleep(seconds(20)).await;
    }
    assert!(!first.running.is_finished());
    assert_eq!(watchdog.names(), ["first"]);

    first.running.abort();
    let killed = Instant::now();
    sleep(seconds(10)).await;
    second.link.lose_next(LEASES);
    sleep(seconds(60)).await;
    let after = watchdog.shifts()[1].1 - killed;
    assert!(after < seconds(17), "{after:?}");
    second.stop.cancel();
    second.running.await.unwrap().unwrap();
    watchdog.assert_never_both();
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_another_writes_over_is_lost_and_one_that_is_deleted_is_made_again() {
    let (cluster, watchdog) = (cluster(), Watchdog::default());
    let only = replica(&cluster, "only", &watchdog, IN_STEP);
    sleep(seconds(5)).await;
    cluster.delete(LEASES, "test");
    sleep(seconds(5)).await;
    assert_eq!(
        cluster.get(LEASES, "test").unwrap()["spec"]["holderIdentity"],
        "only"
    );

    let taken = json!({
        "metadata": {"name": "test", "namespace": "default"},
        "spec": {"holderIdentity": "a person"},
    });
    cluster.put(LEASES, taken);
    let error = only.running.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::LeaseLost { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_may_not_be_read_is_waited_for_and_a_stop_ends_that() {
    let (cluster, watchdog) = (cluster(), Watchdog::default());
    cluster.refuse(LEASES, 403, "Forbidden");
    let only = replica(&cluster, "only", &watchdog, IN_STEP);
    sleep(seconds(100)).await;
    assert!(watchdog.names().is_empty() && !only.running.is_finished());
    only.stop.cancel();
    only.running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn times_that_are_not_in_order_are_an_error() {
    let cluster = cluster();
    let client = cluster.client(&Link::default());
    let endless = (u64::MAX, u64::MAX - 1, 2);
    let times = [(10, 10, 2), (15, 10, 10), (15, 10, 0), (0, 0, 0), endless];
    for (lease, renew, retry) in times {
        let leader = Leader::lease(client.clone(), "default", "test");
        let leader = leader.times(seconds(lease), seconds(renew), seconds(retry));
        let run = maps(&client)
            .leader(leader)
            .run(1, CancellationToken::new(), |_, _| async {
                Action::Success
            });
        assert!(
            matches!(run.await, Err(Error::LeaseTimes)),
            "{lease} {renew} {retry}"
        );
    }
}

/// Controllers of one process, each with a clone of one leader.
fn clones(cluster: &Cluster, watchdog: &Watchdog, count: usize) -> Vec<Replica> {
    let link = Link::default();
    let leader = leader(cluster, &link, "first", IN_STEP);
    let clone = |_| working(cluster, link.clone(), leader.clone(), "first", watchdog);
    (0..count).map(clone).collect()
}

fn holder(cluster: &Cluster) -> String {
    let lease = cluster.get(LEASES, "test").unwrap();
    let holder = lease["spec"]["holderIdentity"].as_str();
    holder.unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn the_last_clone_that_stops_releases_the_lease() {
    let (cluster, watchdog) = (cluster(), Watchdog::default());
    let clones = clones(&cluster, &watchdog, 3);
    sleep(seconds(1)).await;
    let other = replica(&cluster, "other", &watchdog, IN_STEP);
    sleep(seconds(30)).await;
    let mut left = clones.len();
    for clone in clones {
        assert!(clone.health.live().body.contains("default/test held"));
        clone.stop.cancel();
        clone.running.await.unwrap().unwrap();
        left -= 1;
        let expected = if left == 0 { "" } else { "first" };
        assert_eq!(holder(&cluster), expected, "{left} clones are left");
        if left > 0 {
            sleep(seconds(30)).await;
            assert_eq!(watchdog.names(), ["first"]);
        }
    }
    sleep(seconds(4)).await;
    assert_eq!(watchdog.names(), ["first", "other"]);
    watchdog.assert_never_both();
    other.stop.cancel();
    other.running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_clone_that_never_led_releases_nothing() {
    let (cluster, watchdog) = (cluster(), Watchdog::default());
    let link = Link::default();
    let leader = leader(&cluster, &link, "first", IN_STEP);
    let first = working(&cluster, link.clone(), leader.clone(), "first", &watchdog);
    sleep(seconds(31)).await;
    let early = working(&cluster, link, leader, "first", &watchdog);
    early.stop.cancel();
    early.running.await.unwrap().unwrap();
    assert_eq!(holder(&cluster), "first");
    first.stop.cancel();
    first.running.await.unwrap().unwrap();
    assert_eq!(holder(&cluster), "");
}

/// All of them renew at the same moments, and each write makes those of the others fail.
#[tokio::test(start_paused = true)]
async fn clones_in_lockstep_keep_the_lease_together() {
    let (cluster, watchdog) = (cluster(), Watchdog::default());
    let clones = clones(&cluster, &watchdog, 40);
    clones[0].link.set_faults(Duration::from_millis(40), 0, 0);
    sleep(seconds(60)).await;
    let lost = clones.iter().filter(|clone| clone.running.is_finished());
    assert_eq!(lost.count(), 0);
    let lease = cluster.get(LEASES, "test").unwrap();
    assert_eq!(lease["spec"]["leaseTransitions"], 0);
}

/// The look of the clone that stops takes up to two seconds, and the other one takes the lease
/// meanwhile.
#[tokio::test(start_paused = true)]
async fn a_clone_that_begins_while_another_stops_keeps_the_lease() {
    for seed in 0..10 {
        let (cluster, watchdog) = (cluster(), Watchdog::default());
        let link = Link::seeded(seed);
        let leader = leader(&cluster, &link, "first", IN_STEP);
        let stops = working(&cluster, link.clone(), leader.clone(), "first", &watchdog);
        sleep(seconds(5)).await;
        let other = replica(&cluster, "other", &watchdog, IN_STEP);
        link.set_faults(seconds(2), 0, 0);
        stops.stop.cancel();
        // Its last run has ended, and the look is on its way.
        sleep(Duration::from_millis(1100)).await;
        link.set_faults(Duration::from_millis(10), 0, 0);
        let begins = working(&cluster, Link::default(), leader, "first", &watchdog);
        stops.running.await.unwrap().unwrap();
        sleep(seconds(20)).await;
        watchdog.assert_never_both();
        let ends = [&begins, &other].map(|replica| replica.running.is_finished());
        assert_eq!(ends, [false, false], "seed {seed}: a lease was lost");
    }
}
