//! Sessions: their names, and how they end.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::{PATIENCE, TTL, claim_when_free, followed};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::shard::{Fence, Shard};
use crate::view::View;

/// Checks that a session keeps its name until it ends, and only in its own set.
///
/// # Panics
///
/// If two members of a set have one name, or a free name is refused.
pub async fn names<E: Engine>(engine: &E, set: &str) {
    let other = format!("{set}-other");
    engine.open(set, 4).await.unwrap();
    engine.open(&other, 4).await.unwrap();
    let first = engine.join(set, "a", TTL).await.unwrap();
    let Err(EngineError::NameTaken { member }) = engine.join(set, "a", TTL).await else {
        panic!("two members have one name");
    };
    assert_eq!(member, "a");
    // The refusal has not ended the session that is there.
    engine.keep(&first).await.unwrap();
    let elsewhere = engine.join(&other, "a", TTL).await.unwrap();
    engine.leave(&first).await.unwrap();
    let second = engine.join(set, "a", TTL).await.unwrap();
    // A session that has ended does not end the one that has its name now.
    engine.leave(&first).await.unwrap();
    engine.keep(&second).await.unwrap();
    engine.leave(&second).await.unwrap();
    engine.leave(&elsewhere).await.unwrap();
}

/// Checks that a retiring member is shown as such, and keeps its shards.
///
/// # Panics
///
/// If it is not shown, or loses a shard.
pub async fn retiring<E: Engine>(engine: &E, set: &str) {
    engine.open(set, 4).await.unwrap();
    let session = engine.join(set, "a", TTL).await.unwrap();
    let fence = engine.claim(&session, Shard(1)).await.unwrap();
    let view = watch::Sender::<View>::default();
    let mut seen = view.subscribe();
    let shown = async {
        let is_shown = seen.wait_for(|view| view.members.contains_key("a")).await;
        let joined = is_shown.unwrap().members["a"].clone();
        assert!(!joined.is_retiring);
        engine.retire(&session).await.unwrap();
        engine.retire(&session).await.unwrap();
        let is_shown = seen.wait_for(|view| view.members["a"].is_retiring).await;
        let view = is_shown.unwrap().clone();
        assert_eq!(view.members["a"].since, joined.since);
        view
    };
    let view = followed(engine, set, &view, shown).await;
    assert_eq!(Some(view.owners[&Shard(1)].fence), fence);
    assert_eq!(engine.claim(&session, Shard(1)).await.unwrap(), fence);
    engine.leave(&session).await.unwrap();
}

/// Checks that the shards of an ended session are free, and that the session can do nothing more.
///
/// # Panics
///
/// If a shard is not free, or an operation of the ended session succeeds.
pub async fn ended_sessions<E: Engine>(engine: &E, set: &str) {
    engine.open(set, 4).await.unwrap();
    let ended = engine.join(set, "a", TTL).await.unwrap();
    let fence = engine
        .claim(&ended, Shard(1))
        .await
        .unwrap()
        .expect("a fence");
    engine.leave(&ended).await.unwrap();
    engine.leave(&ended).await.unwrap();
    can_do_nothing(engine, &ended, Shard(1), fence).await;
    // Not even if a new session has the same name.
    let next = engine.join(set, "a", TTL).await.unwrap();
    let later = engine
        .claim(&next, Shard(1))
        .await
        .unwrap()
        .expect("a fence");
    assert!(later > fence);
    can_do_nothing(engine, &ended, Shard(1), fence).await;
    assert_eq!(engine.claim(&next, Shard(1)).await.unwrap(), Some(later));
    engine.leave(&next).await.unwrap();
}

async fn can_do_nothing<E: Engine>(engine: &E, ended: &E::Session, shard: Shard, fence: Fence) {
    let refused = [
        engine.keep(ended).await,
        engine.retire(ended).await,
        engine.claim(ended, shard).await.map(drop),
        engine.claim(ended, Shard(2)).await.map(drop),
    ];
    for outcome in refused {
        assert!(
            matches!(outcome, Err(EngineError::SessionEnded)),
            "{outcome:?}"
        );
    }
    engine.release(ended, shard, fence).await.unwrap();
}

/// Checks that a session does not end while it is kept.
///
/// # Panics
///
/// If it ends.
pub async fn keeping<E: Engine>(engine: &E, set: &str) {
    engine.open(set, 4).await.unwrap();
    let session = engine.join(set, "a", TTL).await.unwrap();
    let fence = engine.claim(&session, Shard(0)).await.unwrap();
    let start = Instant::now();
    while start.elapsed() < 2 * TTL {
        sleep(TTL / 2).await;
        engine.keep(&session).await.unwrap();
    }
    assert_eq!(engine.claim(&session, Shard(0)).await.unwrap(), fence);
    engine.leave(&session).await.unwrap();
}

/// Checks that a session that is not kept ends, and not before its TTL. Then its name and shards
/// are free, and a view shows that.
///
/// # Panics
///
/// If the session ends early or not at all, or its name or shards are not free.
pub async fn sessions_expire<E: Engine>(engine: &E, set: &str) {
    engine.open(set, 4).await.unwrap();
    let dead = engine.join(set, "dead", TTL).await.unwrap();
    let fence = engine
        .claim(&dead, Shard(2))
        .await
        .unwrap()
        .expect("a fence");
    let alive = engine.join(set, "alive", TTL).await.unwrap();
    sleep(TTL / 2).await;
    engine.keep(&alive).await.unwrap();
    let kept = Instant::now();
    engine.keep(&dead).await.unwrap();

    let view = watch::Sender::<View>::default();
    let mut seen = view.subscribe();
    let later = claim_when_free(engine, &alive, Shard(2)).await;
    let lasted = kept.elapsed();
    // Tokio counts in milliseconds.
    assert!(
        lasted + Duration::from_millis(1) >= TTL,
        "it ended after {lasted:?}"
    );
    assert!(lasted < TTL + PATIENCE);
    assert!(later > fence);
    can_do_nothing(engine, &dead, Shard(2), fence).await;
    let gone = async {
        drop(
            seen.wait_for(|view| !view.members.contains_key("dead"))
                .await,
        )
    };
    followed(engine, set, &view, gone).await;
    let again = engine.join(set, "dead", TTL).await.unwrap();
    engine.leave(&again).await.unwrap();
    engine.leave(&alive).await.unwrap();
}
