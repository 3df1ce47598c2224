//! An engine that was emptied while members run.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use requeue_shards::EngineError;
use tokio::time::sleep;

use crate::replica::{Log, Replica, SET, TTL, builder, start};
use crate::switch::{Reach, Switch};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// The reports of a member.
type Said = Arc<Mutex<Vec<EngineError>>>;

/// Two members at work, the second of which reports.
async fn pair(run: Duration) -> (Switch, Switch, Log, Said, Replica, Replica) {
    let (engine, log, said) = (Switch::default(), Log::default(), Said::default());
    let other = engine.another();
    let first = start(builder(&engine, "first"), "first", &log, &["a"], run).await;
    let reports = Arc::clone(&said);
    let reporting = builder(&other, "second")
        .on_error(move |error| reports.lock().unwrap().push(error.clone()));
    let second = start(reporting, "second", &log, &["a"], run).await;
    sleep(SECOND).await;
    assert_eq!(first.owned("first") + first.owned("second"), 16);
    (engine, other, log, said, first, second)
}

fn states_lost(said: &Said) -> usize {
    let said = said.lock().unwrap();
    let is_lost = |error: &&EngineError| matches!(error, EngineError::StateLost(_));
    said.iter().filter(is_lost).count()
}

#[tokio::test(start_paused = true)]
async fn members_begin_again_at_once_and_say_so_if_the_engine_notices() {
    let (engine, other, log, said, first, second) = pair(10 * MS).await;
    let runs = log.lock().unwrap().len();
    engine.empty(true);
    sleep(SECOND).await;
    for (replica, name) in [(&first, "first"), (&second, "second")] {
        assert!(replica.owned(name) > 0);
        assert_eq!(replica.owned("first") + replica.owned("second"), 16);
        assert_eq!(replica.member.counters().states_lost, 1);
        assert_eq!(replica.member.health(), Ok(()));
    }
    assert!(
        log.lock().unwrap().len() > runs,
        "its keys are listed again"
    );
    assert_eq!(states_lost(&said), 1);

    // The member is not healthy until the fault is over.
    other.set(Reach::Silent);
    engine.empty(true);
    sleep(SECOND).await;
    let why = second.member.health().unwrap_err();
    assert!(
        why.contains(SET) && why.contains("lost acknowledged writes"),
        "{why}"
    );
    other.set(Reach::Whole);
    sleep(2 * TTL).await;
    assert_eq!(second.member.health(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn runs_learn_of_it_at_once() {
    let (engine, _, log, _, _first, _second) = pair(10 * TTL).await;
    let begun = log.lock().unwrap().len();
    assert!(begun > 0);
    engine.empty(true);
    sleep(MS).await;
    let log = log.lock().unwrap();
    assert!(log.iter().take(begun).all(|run| run.was_lost), "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn a_member_lists_again_after_its_session_has_ended_whatever_the_engine_notices() {
    let (engine, _, log, said, first, second) = pair(10 * MS).await;
    let runs = log.lock().unwrap().len();
    // A watch that resumes after its last revision would wait forever.
    engine.empty(false);
    sleep(TTL).await;
    for replica in [&first, &second] {
        assert_eq!(replica.owned("first") + replica.owned("second"), 16);
        assert!(replica.owned("first") > 0 && replica.owned("second") > 0);
        assert_eq!(replica.member.counters().sessions_lost, 1);
        assert_eq!(replica.member.health(), Ok(()));
    }
    assert!(
        log.lock().unwrap().len() > runs,
        "its keys are listed again"
    );
    let said = said.lock().unwrap();
    assert!(matches!(said[..], [EngineError::SessionEnded]), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn a_member_that_does_not_run_is_not_well() {
    let (_, _, _, _, first, second) = pair(10 * MS).await;
    assert_eq!(first.member.health(), Ok(()));
    first.stop.cancel();
    first.process.await.unwrap().unwrap();
    let why = first.member.health().unwrap_err();
    assert!(why.contains("does not run"), "{why}");
    assert_eq!(second.member.health(), Ok(()));
}
