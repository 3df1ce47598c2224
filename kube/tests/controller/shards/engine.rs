//! The engine alone.

use std::time::Duration;

use requeue_kube::{LeaseSession, Leases};
use requeue_shards::{Engine, EngineError, Fence, Shard, View, conformance};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::{LEASES, TTL, leases};
use crate::api::{Cluster, Link};
use crate::seconds;

fn cluster() -> (Cluster, Leases) {
    let cluster = Cluster::new();
    let leases = leases(&cluster, &Link::default());
    (cluster, leases)
}

/// A set of four shards with a member.
async fn with_member(leases: &Leases, member: &str) -> LeaseSession {
    leases.open("web", 4).await.unwrap();
    leases.join("web", member, TTL).await.unwrap()
}

/// What another client writes into a Lease.
fn edit(cluster: &Cluster, name: &str, mut change: Value) {
    change["metadata"]["name"] = json!(name);
    change["metadata"]["namespace"] = json!("default");
    cluster.put(LEASES, change);
}

fn assert_refused<T: std::fmt::Debug>(outcome: Result<T, EngineError>) {
    assert!(
        matches!(outcome, Err(EngineError::Refused(_))),
        "{outcome:?}"
    );
}

fn assert_unreadable<T: std::fmt::Debug>(outcome: Result<T, EngineError>) {
    assert!(
        matches!(outcome, Err(EngineError::Unreadable(_))),
        "{outcome:?}"
    );
}

fn assert_denied<T: std::fmt::Debug>(outcome: Result<T, EngineError>) {
    assert!(
        matches!(outcome, Err(EngineError::Denied(_))),
        "{outcome:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn it_passes_the_checks_of_every_engine() {
    conformance::all(&cluster().1, "conformance").await;
}

#[tokio::test(start_paused = true)]
async fn it_passes_them_over_a_slow_link() {
    let (cluster, link) = (Cluster::new(), Link::seeded(3));
    link.set_faults(Duration::from_millis(5), 0, 30);
    conformance::all(&leases(&cluster, &link), "slow").await;
}

#[tokio::test(start_paused = true)]
async fn names_that_the_api_does_not_know_are_refused() {
    let (cluster, leases) = cluster();
    let long = "a".repeat(64);
    for set in ["", "Web", "web_1", "-web", "web-", "web.site", "wéb", &long] {
        assert_refused(leases.open(set, 4).await);
        assert_refused(leases.join(set, "web-0", TTL).await);
        assert_refused(leases.follow(set, &watch::Sender::default()).await);
    }
    leases.open("web", 4).await.unwrap();
    let long = "a".repeat(181);
    for member in [
        "", "Web-0", "web_0", "web..0", ".web", "web.-0", "web/0", &long,
    ] {
        assert_refused(leases.join("web", member, TTL).await);
    }
    assert_eq!(cluster.writes(LEASES), 1);
}

#[tokio::test(start_paused = true)]
async fn the_longest_names_work() {
    let (_, leases) = cluster();
    let (set, member) = (
        "s".repeat(63),
        format!("{}.{}", "m".repeat(89), "0".repeat(90)),
    );
    leases.open(&set, u32::MAX).await.unwrap();
    let session = leases.join(&set, &member, TTL).await.unwrap();
    let fence = leases.claim(&session, Shard(u32::MAX)).await.unwrap();
    let view = first_view(&leases, &set).await;
    assert_eq!(view.owners[&Shard(u32::MAX)].member, member);
    assert_eq!(Some(view.owners[&Shard(u32::MAX)].fence), fence);
}

/// What `follow` shows first.
async fn first_view(leases: &Leases, set: &str) -> View {
    let view = watch::Sender::default();
    let mut seen = view.subscribe();
    tokio::select! {
        Err(error) = leases.follow(set, &view) => panic!("{error}"),
        shown = seen.wait_for(|view: &View| view.is_complete) => shown.unwrap().clone(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_whose_set_ends_like_a_role_is_another() {
    let (_, leases) = cluster();
    leases.open("web", 4).await.unwrap();
    leases.open("web-shard-1", 5).await.unwrap();
    let first = leases.join("web", "shard-1", TTL).await.unwrap();
    let second = leases.join("web-shard-1", "set", TTL).await.unwrap();
    assert!(leases.claim(&first, Shard(1)).await.unwrap().is_some());
    assert!(leases.claim(&second, Shard(1)).await.unwrap().is_some());
    leases.open("web", 4).await.unwrap();
    assert_eq!(first_view(&leases, "web").await.members.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn fences_rise_although_the_lease_was_deleted() {
    let (cluster, leases) = cluster();
    let session = with_member(&leases, "web-0").await;
    let mut last = Fence(0);
    for _ in 0..3 {
        for _ in 0..100 {
            let fence = leases.claim(&session, Shard(1)).await.unwrap().unwrap();
            assert!(fence > last, "{fence} after {last}");
            leases.release(&session, Shard(1), fence).await.unwrap();
            last = fence;
        }
        sleep(seconds(1)).await;
        leases.keep(&session).await.unwrap();
        cluster.delete(LEASES, "web.shard-1");
    }
    assert!(last.0 < 1 << 53);
}

#[tokio::test(start_paused = true)]
async fn a_shard_whose_lease_was_deleted_is_shown_as_free() {
    let (cluster, leases) = cluster();
    let session = with_member(&leases, "web-0").await;
    leases.claim(&session, Shard(1)).await.unwrap();
    let view = watch::Sender::default();
    let mut seen = view.subscribe();
    let shown = async {
        seen.wait_for(|view: &View| !view.owners.is_empty())
            .await
            .unwrap();
        cluster.delete(LEASES, "web.shard-1");
        seen.wait_for(|view: &View| view.owners.is_empty())
            .await
            .unwrap();
    };
    tokio::select! {
        Err(error) = leases.follow("web", &view) => panic!("{error}"),
        () = shown => {}
    }
}

/// A member that was stopped goes on until another has ended its session.
#[tokio::test(start_paused = true)]
async fn a_session_ends_only_when_another_has_seen_it_unchanged_for_its_ttl() {
    let (cluster, leases) = cluster();
    let session = with_member(&leases, "web-0").await;
    let fence = leases.claim(&session, Shard(0)).await.unwrap();
    sleep(10 * TTL).await;
    leases.keep(&session).await.unwrap();
    assert_eq!(leases.claim(&session, Shard(0)).await.unwrap(), fence);

    // A replica that has just started has seen nothing.
    let other = super::leases(&cluster, &Link::default());
    sleep(10 * TTL).await;
    let second = other.join("web", "web-1", TTL).await.unwrap();
    assert_eq!(other.claim(&second, Shard(0)).await.unwrap(), None);
    sleep(TTL - seconds(1)).await;
    other.keep(&second).await.unwrap();
    assert_eq!(other.claim(&second, Shard(0)).await.unwrap(), None);
    // Kept in the last moment.
    leases.keep(&session).await.unwrap();
    sleep(seconds(1)).await;
    assert_eq!(other.claim(&second, Shard(0)).await.unwrap(), None);
    sleep(TTL).await;
    other.keep(&second).await.unwrap();
    assert!(other.claim(&second, Shard(0)).await.unwrap() > fence);
    let kept = leases.keep(&session).await;
    assert!(matches!(kept, Err(EngineError::SessionEnded)), "{kept:?}");
}

#[tokio::test(start_paused = true)]
async fn a_name_is_free_a_ttl_after_its_process_was_killed() {
    let (_, leases) = cluster();
    let _killed = with_member(&leases, "web-0").await;
    let start = Instant::now();
    let joined = loop {
        match leases.join("web", "web-0", TTL).await {
            Ok(session) => break session,
            Err(EngineError::NameTaken { member }) => assert_eq!(member, "web-0"),
            Err(error) => panic!("{error}"),
        }
        sleep(Duration::from_millis(100)).await;
    };
    assert!(start.elapsed() >= TTL && start.elapsed() < TTL + seconds(1));
    leases.keep(&joined).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_others_write_into_the_leases_ends_nothing() {
    let (cluster, leases) = cluster();
    let session = with_member(&leases, "web-0").await;
    let fence = leases.claim(&session, Shard(1)).await.unwrap().unwrap();
    let note = json!({"metadata": {"annotations": {"note": "looked at"}}});
    for name in ["web.set", "web.member.web-0", "web.shard-1"] {
        edit(&cluster, name, note.clone());
    }
    leases.open("web", 4).await.unwrap();
    leases.keep(&session).await.unwrap();
    assert_eq!(leases.claim(&session, Shard(1)).await.unwrap(), Some(fence));
    leases.release(&session, Shard(1), fence).await.unwrap();
    assert!(leases.claim(&session, Shard(1)).await.unwrap() > Some(fence));
    let kept = cluster.get(LEASES, "web.shard-1").unwrap();
    assert_eq!(kept["metadata"]["annotations"]["note"], "looked at");
    leases.leave(&session).await.unwrap();
    assert_eq!(cluster.get(LEASES, "web.member.web-0"), None);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_waits_for_a_finalizer_has_ended() {
    let (cluster, leases) = cluster();
    let session = with_member(&leases, "web-0").await;
    let finalizer = json!({"metadata": {"finalizers": ["example.com/audit"]}});
    edit(&cluster, "web.member.web-0", finalizer);
    leases.leave(&session).await.unwrap();
    let kept = leases.keep(&session).await;
    assert!(matches!(kept, Err(EngineError::SessionEnded)), "{kept:?}");
    assert!(first_view(&leases, "web").await.members.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_it_has_not_written_is_unreadable() {
    let (cluster, leases) = cluster();
    // Another's Lease.
    edit(
        &cluster,
        "web.set",
        json!({"metadata": {}, "spec": {"holderIdentity": "x"}}),
    );
    assert_unreadable(leases.open("web", 4).await);
    cluster.delete(LEASES, "web.set");

    let session = with_member(&leases, "web-0").await;
    let shards = json!({"metadata": {"annotations": {"requeue.dev/shards": "four"}}});
    edit(&cluster, "web.set", shards);
    assert_unreadable(leases.open("web", 4).await);

    // No greater fence is left.
    leases.claim(&session, Shard(0)).await.unwrap();
    let last =
        json!({"metadata": {}, "spec": {"holderIdentity": "", "leaseTransitions": i32::MAX}});
    edit(&cluster, "web.shard-0", last);
    assert_unreadable(leases.claim(&session, Shard(0)).await);
    let view = first_view(&leases, "web").await;
    assert!(view.unreadable["web.shard-0"].contains("leaseTransitions 2147483647"));
    // Another shard is not in its way.
    assert!(leases.claim(&session, Shard(1)).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_is_no_member_is_shown_and_replaced() {
    let (cluster, leases) = cluster();
    let session = with_member(&leases, "web-0").await;
    let fence = leases.claim(&session, Shard(0)).await.unwrap();
    leases.claim(&session, Shard(1)).await.unwrap();
    let owner = json!({"metadata": {}, "spec": {"holderIdentity": "person"}});
    edit(&cluster, "web.shard-0", owner);
    let view = first_view(&leases, "web").await;
    assert_eq!(view.owners.keys().collect::<Vec<_>>(), [&Shard(1)]);
    let shown = &view.unreadable["web.shard-0"];
    assert!(shown.contains("person"), "{shown}");
    assert!(leases.claim(&session, Shard(0)).await.unwrap() > fence);
    let view = first_view(&leases, "web").await;
    assert_eq!((view.owners.len(), view.unreadable.len()), (2, 0));
}

/// Its Lease is not listed, so that no replica would end its session.
#[tokio::test(start_paused = true)]
async fn the_shards_of_a_dead_member_are_free_although_its_label_is_gone() {
    let (cluster, leases) = cluster();
    let dead = with_member(&leases, "dead").await;
    leases.claim(&dead, Shard(0)).await.unwrap();
    let unlabelled = json!({"metadata": {"labels": {"requeue.dev/set": null}}});
    edit(&cluster, "web.member.dead", unlabelled);
    let session = with_member(&leases, "web-0").await;
    assert_eq!(leases.claim(&session, Shard(0)).await.unwrap(), None);
    sleep(TTL / 2).await;
    leases.keep(&session).await.unwrap();
    assert_eq!(leases.claim(&session, Shard(0)).await.unwrap(), None);
    sleep(TTL / 2).await;
    assert!(leases.claim(&session, Shard(0)).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn missing_rights_are_denied_and_work_once_they_are_granted() {
    let (cluster, leases) = cluster();
    let session = with_member(&leases, "web-0").await;
    let follow = async {
        cluster.refuse(LEASES, 403, "Forbidden");
        timeout(seconds(1), leases.follow("web", &watch::Sender::default()))
            .await
            .unwrap()
    };
    assert_denied(follow.await);
    assert_denied(leases.open("web", 4).await);
    assert_denied(leases.join("web", "web-1", TTL).await);
    assert_denied(leases.keep(&session).await);
    assert_denied(leases.retire(&session).await);
    assert_denied(leases.claim(&session, Shard(0)).await);
    assert_denied(leases.release(&session, Shard(0), Fence(1)).await);
    assert_denied(leases.leave(&session).await);
    cluster.allow(LEASES);
    leases.keep(&session).await.unwrap();
    assert_eq!(first_view(&leases, "web").await.members.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_fails_is_unreachable() {
    let (cluster, leases) = cluster();
    let session = with_member(&leases, "web-0").await;
    for code in [429, 500, 503] {
        cluster.refuse(LEASES, code, "Fails");
        let outcome = leases.claim(&session, Shard(0)).await;
        assert!(
            matches!(outcome, Err(EngineError::Unreachable(_))),
            "{outcome:?}"
        );
    }
}

/// Two members in a minute: a write each third of the TTL, and nothing else.
#[tokio::test(start_paused = true)]
async fn to_keep_a_session_is_one_write() {
    let (cluster, leases) = cluster();
    let session = with_member(&leases, "web-0").await;
    for shard in (0..4).map(Shard) {
        leases.claim(&session, shard).await.unwrap();
    }
    let before = cluster.writes(LEASES);
    for _ in 0..10 {
        sleep(TTL / 3).await;
        leases.keep(&session).await.unwrap();
    }
    assert_eq!(cluster.writes(LEASES), before + 10);
}

/// It was written by hand, and does not say how long it lasts.
#[tokio::test(start_paused = true)]
async fn a_member_without_a_duration_is_removed() {
    let (cluster, leases) = cluster();
    let session = with_member(&leases, "web-0").await;
    let junk = json!({"metadata": {"labels": {"requeue.dev/set": "web"}}});
    edit(&cluster, "web.member.junk", junk);
    let view = watch::Sender::default();
    let followed = timeout(seconds(2), leases.follow("web", &view)).await;
    assert!(followed.is_err());
    assert_eq!(view.borrow().members.keys().collect::<Vec<_>>(), ["web-0"]);
    assert_eq!(cluster.get(LEASES, "web.member.junk"), None);
    leases.leave(&session).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_session_that_has_ended_changes_nothing_of_the_next_one() {
    let (cluster, leases) = cluster();
    let ended = with_member(&leases, "web-0").await;
    leases.leave(&ended).await.unwrap();
    let _next = with_member(&leases, "web-0").await;
    let before = cluster.get(LEASES, "web.member.web-0");
    for outcome in [leases.retire(&ended).await, leases.keep(&ended).await] {
        assert!(
            matches!(outcome, Err(EngineError::SessionEnded)),
            "{outcome:?}"
        );
    }
    leases.leave(&ended).await.unwrap();
    assert_eq!(cluster.get(LEASES, "web.member.web-0"), before);
}
