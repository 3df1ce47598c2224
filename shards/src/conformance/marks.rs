//! Marks: how they are stored and removed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{PATIENCE, TTL};
use crate::engine::{Engine, Mark, NewMark};
use crate::error::EngineError;
use crate::shard::{Fence, Shard};

const SHARD: Shard = Shard(1);

fn mark(key: &[u8], not_before: Option<SystemTime>) -> NewMark {
    NewMark {
        shard: SHARD,
        key: key.to_vec(),
        not_before,
    }
}

/// A time in whole milliseconds, which every engine stores exactly.
fn at(seconds: u64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(2_000_000_000 + seconds))
}

/// Runs a future that receives the marks of a shard, with room for `room` of them.
async fn receiving<E: Engine, T>(
    engine: &E,
    set: &str,
    room: usize,
    then: impl AsyncFnOnce(mpsc::Receiver<Mark>) -> T,
) -> T {
    let (sender, receiver) = mpsc::channel(room);
    tokio::select! {
        ended = engine.follow_marks(set, SHARD, &sender) => {
            panic!("follow_marks has ended: {ended:?}")
        }
        value = timeout(PATIENCE, then(receiver)) => value.expect("the marks are sent in time"),
    }
}

/// Receives until the newest mark of a key has this time; returns it.
async fn stored(marks: &mut mpsc::Receiver<Mark>, key: &[u8], at: Option<SystemTime>) -> Mark {
    loop {
        let mark = marks.recv().await.expect("a mark");
        if mark.key == key && mark.not_before == at {
            return mark;
        }
    }
}

/// Checks that the earliest of several times is stored, and that each mark has a new version.
///
/// # Panics
///
/// If another time is stored, or a version does not rise.
pub async fn the_earliest_wins<E: Engine>(engine: &E, set: &str) {
    engine.open(set, 4).await.unwrap();
    let put = async |key: &[u8], time| {
        engine.put_marks(set, &[mark(key, time)]).await.unwrap();
    };
    receiving(engine, set, 100, async |mut marks| {
        put(b"k", at(20)).await;
        let first = stored(&mut marks, b"k", at(20)).await;
        put(b"k", at(30)).await;
        let second = stored(&mut marks, b"k", at(20)).await;
        assert!(
            second.version > first.version,
            "a later time is a new version"
        );
        assert!(!second.is_old, "it was stored after the call");
        put(b"k", at(10)).await;
        let third = stored(&mut marks, b"k", at(10)).await;
        assert!(third.version > second.version);
        put(b"k", None).await;
        let fourth = stored(&mut marks, b"k", None).await;
        assert!(fourth.version > third.version);
        put(b"k", at(10)).await;
        let fifth = stored(&mut marks, b"k", None).await;
        assert!(fifth.version > fourth.version, "at once is before any time");

        // The same within one call, and at once from several.
        let many = [at(9), at(7), at(8)].map(|time| mark(b"many", time));
        engine.put_marks(set, &many).await.unwrap();
        stored(&mut marks, b"many", at(7)).await;
        let calls = (1..=8).map(|seconds| put(b"calls", at(seconds)));
        futures_util::future::join_all(calls).await;
        stored(&mut marks, b"calls", at(1)).await;
    })
    .await;
    // What is listed is what was stored last.
    receiving(engine, set, 1, async |mut marks| {
        let mut listed = BTreeMap::new();
        for _ in 0..3 {
            let mark = marks.recv().await.expect("a mark");
            listed.insert(mark.key, mark.not_before);
        }
        let expected = [
            (b"calls".to_vec(), at(1)),
            (b"k".to_vec(), None),
            (b"many".to_vec(), at(7)),
        ];
        assert_eq!(listed, BTreeMap::from(expected));
    })
    .await;
}

/// Checks that only the stored version removes a mark, or gives it another time.
///
/// # Panics
///
/// If another version does, or the stored one does not.
pub async fn ends_compare_versions<E: Engine>(engine: &E, set: &str) {
    engine.open(set, 4).await.unwrap();
    let session = engine.join(set, "a", TTL).await.unwrap();
    let fence = engine
        .claim(&session, SHARD)
        .await
        .unwrap()
        .expect("a fence");
    let end = async |mark: &Mark, again| {
        engine.keep(&session).await.unwrap();
        let ended = engine.end_mark(&session, fence, mark, again).await;
        ended.unwrap()
    };
    // Bytes that an engine could take for something else.
    let key = b"\0/\xff/mark/";
    receiving(engine, set, 100, async |mut marks| {
        engine.put_marks(set, &[mark(key, None)]).await.unwrap();
        let first = stored(&mut marks, key, None).await;
        engine.put_marks(set, &[mark(key, None)]).await.unwrap();
        let second = stored(&mut marks, key, None).await;
        assert!(!end(&first, None).await, "it was marked again");
        assert!(end(&second, at(5)).await);
        let third = stored(&mut marks, key, at(5)).await;
        assert!(third.version > second.version);
        assert!(!end(&second, None).await, "it has another time");
        assert!(end(&third, None).await);
        assert!(!end(&third, None).await, "it has ended");
        // After its end it is marked again, with a version that was not there.
        engine.put_marks(set, &[mark(key, None)]).await.unwrap();
        let fourth = stored(&mut marks, key, None).await;
        assert!(fourth.version > third.version);
        assert!(!end(&third, None).await);
        assert!(end(&fourth, None).await);
        // Nothing is left: what is listed first is what is stored now.
        engine.put_marks(set, &[mark(b"last", None)]).await.unwrap();
    })
    .await;
    receiving(engine, set, 1, async |mut marks| {
        assert_eq!(marks.recv().await.expect("a mark").key, b"last");
    })
    .await;
    engine.leave(&session).await.unwrap();
}

/// Checks that only the owner of the shard ends a mark.
///
/// # Panics
///
/// If another member ends it.
pub async fn ends_need_the_shard<E: Engine>(engine: &E, set: &str) {
    engine.open(set, 4).await.unwrap();
    let before = engine.join(set, "before", TTL).await.unwrap();
    let old = engine
        .claim(&before, SHARD)
        .await
        .unwrap()
        .expect("a fence");
    engine.put_marks(set, &[mark(b"k", None)]).await.unwrap();
    let stored = receiving(engine, set, 1, async |mut marks| marks.recv().await).await;
    let stored = stored.expect("a mark");
    engine.leave(&before).await.unwrap();
    let ends = async |session: &E::Session, fence| {
        let ended = engine.end_mark(session, fence, &stored, None).await;
        // An engine may look at the session as well.
        matches!(ended, Ok(true))
    };
    assert!(!ends(&before, old).await, "no one owns the shard");
    let after = engine.join(set, "after", TTL).await.unwrap();
    assert!(!ends(&after, old).await, "no one owns the shard");
    let fence = engine.claim(&after, SHARD).await.unwrap().expect("a fence");
    assert!(!ends(&before, old).await, "another member owns the shard");
    assert!(
        !ends(&after, Fence(fence.0 + 1)).await,
        "the fence is another"
    );
    assert!(ends(&after, fence).await);
    engine.leave(&after).await.unwrap();
}

/// Checks that every mark is received, even by a slow receiver, if marks are stored before, during
/// and after the list of a shard. Marks from before have to be old.
///
/// # Panics
///
/// If a mark is missing, belongs to another shard, or is not old although it was stored before.
pub async fn lists_and_watches<E: Engine>(engine: &E, set: &str) {
    const MARKS: usize = 3000;
    engine.open(set, 16).await.unwrap();
    let key = |number: usize| format!("key-{number}").into_bytes();
    let put = async |from: usize, to: usize| {
        for number in (from..to).step_by(50) {
            let mut marks: Vec<_> = (number..to.min(number + 50))
                .map(|number| mark(&key(number), None))
                .collect();
            // Shards whose names have a common beginning.
            let shard = Shard(10);
            let key = b"of another shard".to_vec();
            marks.push(NewMark {
                shard,
                key,
                not_before: None,
            });
            engine.put_marks(set, &marks).await.unwrap();
        }
    };
    put(0, MARKS / 2).await;
    let old: BTreeSet<Vec<u8>> = (0..MARKS / 2).map(key).collect();
    let received = receiving(engine, set, 2, async |mut marks| {
        let mut received = BTreeMap::new();
        let receive = async {
            while received.len() < MARKS {
                let mark = marks.recv().await.expect("a mark");
                assert_eq!(mark.shard, SHARD);
                assert!(mark.is_old || !old.contains(&mark.key));
                let before = received.insert(mark.key, mark.version);
                assert!(
                    before.is_none_or(|before| before < mark.version),
                    "sent twice"
                );
            }
        };
        tokio::join!(receive, put(MARKS / 2, MARKS));
        received
    })
    .await;
    assert!((0..MARKS).all(|number| received.contains_key(&key(number))));
}

/// Checks that an engine without marks returns [`EngineError::Unsupported`].
///
/// # Panics
///
/// If it returns anything else.
pub async fn marks_are_refused<E: Engine>(engine: &E, set: &str) {
    engine.open(set, 4).await.unwrap();
    let session = engine.join(set, "a", TTL).await.unwrap();
    let stored = Mark {
        shard: SHARD,
        key: b"k".to_vec(),
        version: 1,
        not_before: None,
        is_old: false,
        unreadable: None,
    };
    let (sender, _receiver) = mpsc::channel(1);
    let refused = [
        engine.put_marks(set, &[mark(b"k", None)]).await,
        engine.follow_marks(set, SHARD, &sender).await,
        engine
            .end_mark(&session, Fence(1), &stored, None)
            .await
            .map(drop),
    ];
    for outcome in refused {
        assert!(
            matches!(outcome, Err(EngineError::Unsupported(_))),
            "{outcome:?}"
        );
    }
    engine.leave(&session).await.unwrap();
}
