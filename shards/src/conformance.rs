//! The conformance suite for engines: it checks the promises of [`Engine`].
//!
//! Call [`all`] in the tests of your engine. A check panics if the engine breaks a promise, or if
//! an operation fails. Each check takes the name of an unused set. Checks that wait for a session
//! to end take some seconds, on Tokio's clock.
//!
//! # Examples
//!
//! ```
//! use requeue_shards::{Memory, conformance};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! conformance::all(&Memory::new(), "example").await;
//! # }
//! ```
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod marks;
mod sessions;

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::shard::{Fence, Shard};
use crate::view::View;

pub use marks::{
    ends_compare_versions, ends_need_the_shard, lists_and_watches, marks_are_refused,
    the_earliest_wins,
};
pub use sessions::{ended_sessions, keeping, names, retiring, sessions_expire};

/// The TTL of every session here. etcd has no shorter one.
const TTL: Duration = Duration::from_secs(2);
/// How long an engine may take to show a change.
const PATIENCE: Duration = Duration::from_secs(15);

/// Runs every check, on sets whose names begin with `sets`. O(1) in space; about 20 seconds on an
/// engine that counts real time.
///
/// # Panics
///
/// If the engine fails a check.
pub async fn all<E: Engine>(engine: &E, sets: &str) {
    let set = |check: &str| format!("{sets}-{check}");
    counts(engine, &set("counts")).await;
    names(engine, &set("names")).await;
    one_owner(engine, &set("one-owner")).await;
    repeated(engine, &set("repeated")).await;
    fences_rise(engine, &set("fences-rise")).await;
    retiring(engine, &set("retiring")).await;
    ended_sessions(engine, &set("ended-sessions")).await;
    keeping(engine, &set("keeping")).await;
    sessions_expire(engine, &set("sessions-expire")).await;
    views(engine, &set("views")).await;
    if E::MARKS {
        the_earliest_wins(engine, &set("earliest")).await;
        ends_compare_versions(engine, &set("ends")).await;
        ends_need_the_shard(engine, &set("ends-need")).await;
        lists_and_watches(engine, &set("lists")).await;
    } else {
        marks_are_refused(engine, &set("refused")).await;
    }
}

/// Checks that the number of shards is fixed by the first call.
///
/// # Panics
///
/// If another number is accepted, or the same one is not.
pub async fn counts<E: Engine>(engine: &E, set: &str) {
    engine.open(set, 64).await.unwrap();
    engine.open(set, 64).await.unwrap();
    let error = engine.open(set, 65).await.unwrap_err();
    let EngineError::CountDiffers { stored, asked, .. } = error else {
        panic!("another number of shards: {error}");
    };
    assert_eq!((stored, asked), (64, 65));
    engine.open(set, 64).await.unwrap();
}

/// Checks that exactly one of many members that claim a shard at once gets it.
///
/// # Panics
///
/// If none or several get it.
pub async fn one_owner<E: Engine>(engine: &E, set: &str) {
    const MEMBERS: usize = 8;
    engine.open(set, 16).await.unwrap();
    let mut sessions = Vec::new();
    for number in 0..MEMBERS {
        let session = engine.join(set, &format!("member-{number}"), TTL).await;
        sessions.push(session.unwrap());
    }
    for shard in (0..16).map(Shard) {
        let claims = sessions.iter().map(|session| engine.claim(session, shard));
        let fences = futures_util::future::join_all(claims).await;
        let won = fences.into_iter().filter_map(Result::unwrap);
        assert_eq!(won.count(), 1, "owners of the shard {shard}");
    }
    leave_all(engine, &sessions).await;
}

/// Checks that each operation can be repeated.
///
/// # Panics
///
/// If a repetition fails, or has an effect.
pub async fn repeated<E: Engine>(engine: &E, set: &str) {
    engine.open(set, 4).await.unwrap();
    let first = engine.join(set, "first", TTL).await.unwrap();
    let second = engine.join(set, "second", TTL).await.unwrap();
    let shard = Shard(3);

    let fence = engine.claim(&first, shard).await.unwrap().expect("a fence");
    assert_eq!(engine.claim(&first, shard).await.unwrap(), Some(fence));
    assert_eq!(engine.claim(&second, shard).await.unwrap(), None);
    // A release with another fence than the owner's changes nothing.
    engine
        .release(&second, shard, Fence(fence.0 + 1))
        .await
        .unwrap();
    engine
        .release(&first, shard, Fence(fence.0 - 1))
        .await
        .unwrap();
    assert_eq!(engine.claim(&first, shard).await.unwrap(), Some(fence));

    engine.release(&first, shard, fence).await.unwrap();
    engine.release(&first, shard, fence).await.unwrap();
    let other = engine
        .claim(&second, shard)
        .await
        .unwrap()
        .expect("a fence");
    // The repetition of a release frees no shard of another owner.
    engine.release(&first, shard, fence).await.unwrap();
    assert_eq!(engine.claim(&first, shard).await.unwrap(), None);
    assert_eq!(engine.claim(&second, shard).await.unwrap(), Some(other));
    leave_all(engine, &[first, second]).await;
}

/// Checks that each owner has a greater fence than all before it, however their ownership ended.
///
/// # Panics
///
/// If a fence does not rise.
pub async fn fences_rise<E: Engine>(engine: &E, set: &str) {
    engine.open(set, 1).await.unwrap();
    let shard = Shard(0);
    let mut last = Fence(0);
    let mut rises = |fence: Option<Fence>| {
        let fence = fence.expect("the shard is free");
        assert!(fence > last, "the fence {fence} after {last}");
        last = fence;
        fence
    };
    for _ in 0..3 {
        let session = engine.join(set, "a", TTL).await.unwrap();
        let fence = rises(engine.claim(&session, shard).await.unwrap());
        engine.release(&session, shard, fence).await.unwrap();
        rises(engine.claim(&session, shard).await.unwrap());
        engine.leave(&session).await.unwrap();
    }
    let left = engine.join(set, "a", TTL).await.unwrap();
    rises(engine.claim(&left, shard).await.unwrap());
    let next = engine.join(set, "b", TTL).await.unwrap();
    rises(Some(claim_when_free(engine, &next, shard).await));
    engine.leave(&next).await.unwrap();
}

/// Checks that the first view is complete, that views never go back, and that the last one is
/// right.
///
/// # Panics
///
/// If a view is incomplete, goes back or is wrong.
pub async fn views<E: Engine>(engine: &E, set: &str) {
    engine.open(set, 8).await.unwrap();
    let first = engine.join(set, "first", TTL).await.unwrap();
    let second = engine.join(set, "second", TTL).await.unwrap();
    engine.claim(&first, Shard(0)).await.unwrap();
    let view = watch::Sender::<View>::default();
    let mut seen = view.subscribe();

    let mut first_seen = view.subscribe();
    let changes = async {
        drop(first_seen.wait_for(|view| view.is_complete).await);
        for round in 0..20 {
            let (one, other) = match round % 2 {
                0 => (&first, &second),
                _ => (&second, &first),
            };
            for shard in (1..8).map(Shard) {
                let fence = engine.claim(one, shard).await.unwrap().expect("a fence");
                assert_eq!(engine.claim(other, shard).await.unwrap(), None);
                engine.release(one, shard, fence).await.unwrap();
                yield_now().await;
            }
            engine.keep(&first).await.unwrap();
            engine.keep(&second).await.unwrap();
        }
        let kept = engine.claim(&second, Shard(7)).await.unwrap();
        engine.leave(&first).await.unwrap();
        kept.expect("a fence")
    };
    let mut greatest = [Fence(0); 8];
    let watching = async {
        let mut is_first = true;
        loop {
            seen.changed().await.unwrap();
            let view = seen.borrow_and_update().clone();
            assert!(view.is_complete);
            if std::mem::take(&mut is_first) {
                assert!(
                    view.owners.contains_key(&Shard(0)),
                    "the first view: {view:?}"
                );
            }
            for (shard, owner) in &view.owners {
                let greatest = &mut greatest[shard.0 as usize];
                assert!(owner.fence >= *greatest, "the shard {shard} went back");
                *greatest = owner.fence;
            }
            if !view.members.contains_key("first") {
                return view;
            }
        }
    };
    let both = async { tokio::join!(changes, watching) };
    let (kept, last) = followed(engine, set, &view, both).await;
    assert_eq!(last.members.keys().collect::<Vec<_>>(), ["second"]);
    let owners = last.owners.iter();
    let owners: Vec<_> = owners.map(|(shard, owner)| (*shard, owner.fence)).collect();
    assert_eq!(owners, [(Shard(7), kept)]);
    assert_eq!(last.owners[&Shard(7)].member, "second");
    engine.leave(&second).await.unwrap();
}

/// Runs a future while `view` is kept up to date.
async fn followed<E: Engine, T>(
    engine: &E,
    set: &str,
    view: &watch::Sender<View>,
    then: impl Future<Output = T>,
) -> T {
    tokio::select! {
        Err(error) = engine.follow(set, view) => panic!("follow has ended: {error}"),
        value = timeout(PATIENCE, then) => value.expect("the view shows it in time"),
    }
}

/// Claims a shard until its owner's session has ended. Keeps its own session meanwhile.
async fn claim_when_free<E: Engine>(engine: &E, session: &E::Session, shard: Shard) -> Fence {
    let start = Instant::now();
    loop {
        engine.keep(session).await.unwrap();
        if let Some(fence) = engine.claim(session, shard).await.unwrap() {
            return fence;
        }
        assert!(start.elapsed() < TTL + PATIENCE, "the session does not end");
        sleep(Duration::from_millis(20)).await;
    }
}

async fn leave_all<E: Engine>(engine: &E, sessions: &[E::Session]) {
    for session in sessions {
        engine.leave(session).await.unwrap();
    }
}
