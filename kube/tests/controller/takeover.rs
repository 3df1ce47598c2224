//! How long it takes until another replica works, with the default times.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use requeue_kube::{Action, CancellationToken, Error, Leader};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::api::{Cluster, Link};
use crate::leader::Watchdog;
use crate::{map, maps, seconds};

/// How long a lease lasts, and how long a successor may take in addition.
const LEASE: Duration = Duration::from_secs(15);
const MARGIN: Duration = Duration::from_secs(1);

/// A replica with the default times, whose runs take a tenth of a second, over and over.
struct Replica {
    link: Link,
    stop: CancellationToken,
    running: JoinHandle<Result<(), Error>>,
}

fn replica(cluster: &Cluster, who: &str, watchdog: &Watchdog, skew: &Arc<AtomicI64>) -> Replica {
    let (link, stop) = (Link::default(), CancellationToken::new());
    link.set_faults(Duration::from_millis(40), 0, 0);
    let client = cluster.client(&link);
    let (began, skew) = (Instant::now(), Arc::clone(skew));
    let wall_clock = move || {
        let elapsed = SignedDuration::try_from(began.elapsed()).unwrap();
        let skew = SignedDuration::from_secs(skew.load(Ordering::Relaxed));
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(9) + elapsed + skew
    };
    let leader = Leader::lease(client.clone(), "default", "test")
        .identity(who)
        .wall_clock(wall_clock);
    let (who, watchdog) = (who.to_owned(), watchdog.clone());
    let run = maps(&client)
        .leader(leader)
        .run(1, stop.clone(), move |_, _| {
            let (who, watchdog) = (who.clone(), watchdog.clone());
            async move {
                let _shift = watchdog.begin(&who);
                sleep(Duration::from_millis(100)).await;
                Action::RequeueAfter(Duration::from_millis(10))
            }
        });
    let running = tokio::spawn(async { run.await.map(drop) });
    Replica {
        link,
        stop,
        running,
    }
}

fn pair(skew: &Arc<AtomicI64>) -> (Cluster, Watchdog, Replica, Replica) {
    let (cluster, watchdog) = (Cluster::new(), Watchdog::default());
    cluster.put("configmaps", map("a", "1"));
    let first = replica(&cluster, "first", &watchdog, skew);
    let second = replica(&cluster, "second", &watchdog, &Arc::default());
    (cluster, watchdog, first, second)
}

/// The leader is killed at every moment between two renewals.
#[tokio::test(start_paused = true)]
async fn a_successor_works_within_the_lease_and_a_second() {
    for moment in 0..20 {
        let (_cluster, watchdog, first, second) = pair(&Arc::default());
        sleep(seconds(30) + Duration::from_millis(100) * moment).await;
        let leads = watchdog.names().remove(0);
        let (leader, waits) = match leads.as_str() {
            "first" => (first, second),
            _ => (second, first),
        };
        let killed = Instant::now();
        leader.running.abort();
        sleep(seconds(40)).await;
        let shifts = watchdog.shifts();
        assert_eq!(shifts.len(), 2, "{shifts:?}");
        let after = shifts[1].1 - killed;
        assert!(after <= LEASE + MARGIN, "{after:?}");
        watchdog.assert_never_both();
        waits.stop.cancel();
        waits.running.await.unwrap().unwrap();
    }
}

/// The wall clock of the leader is set, back and forth, while it leads: nothing is decided by it.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_while_a_replica_leads_changes_nothing() {
    let skew = Arc::new(AtomicI64::new(0));
    let (cluster, watchdog) = (Cluster::new(), Watchdog::default());
    cluster.put("configmaps", map("a", "1"));
    let first = replica(&cluster, "first", &watchdog, &skew);
    sleep(seconds(5)).await;
    let second = replica(&cluster, "second", &watchdog, &Arc::default());
    for hours in [-9, 9, 0, 4, -4] {
        skew.store(hours * 3600, Ordering::Relaxed);
        sleep(seconds(60)).await;
    }
    assert_eq!(watchdog.names(), ["first"]);

    first.link.set_down(true);
    skew.store(-9 * 3600, Ordering::Relaxed);
    assert!(matches!(
        first.running.await.unwrap(),
        Err(Error::LeaseLost { .. })
    ));
    assert_eq!(watchdog.names(), ["first"]);
    sleep(seconds(60)).await;
    assert_eq!(watchdog.names(), ["first", "second"]);
    watchdog.assert_never_both();
    second.stop.cancel();
    second.running.await.unwrap().unwrap();
}
