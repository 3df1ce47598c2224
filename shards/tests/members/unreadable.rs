//! Unreadable values in the engine.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::sleep;

use crate::replica::{Log, builder, start};
use crate::switch::Switch;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_value_that_cannot_be_read_is_said_once_and_makes_a_member_unwell() {
    let (engine, log) = (Switch::default(), Log::default());
    let said = Arc::new(Mutex::new(Vec::new()));
    let reports = Arc::clone(&said);
    let reporting = builder(&engine, "first").on_error(move |error| {
        reports.lock().unwrap().push(error.to_string());
        panic!("a hook that fails harms nothing");
    });
    let first = start(reporting, "first", &log, &["a"], MS).await;
    sleep(SECOND).await;
    assert_eq!(first.member.health(), Ok(()));

    let value = (String::from("owner/3"), String::from("{}"));
    engine.unreadable.send_replace([value].into());
    sleep(SECOND).await;
    let why = first.member.health().unwrap_err();
    assert_eq!(why, "unreadable: owner/3 = {}");
    assert!(first.member.status().to_string().contains(&why));
    // Another unreadable value does not change the first.
    let other = (String::from("member/x"), String::from("?"));
    engine
        .unreadable
        .send_modify(|values| values.extend([other]));
    sleep(SECOND).await;
    assert_eq!(first.member.counters().values_unreadable, 2);
    let said_now = said.lock().unwrap().clone();
    assert_eq!(said_now.len(), 2, "{said_now:?}");
    assert!(said_now[0].contains("owner/3") && said_now[1].contains("member/x"));
    assert_eq!(first.owned("first"), 16);

    engine.unreadable.send_modify(|values| values.clear());
    sleep(SECOND).await;
    assert_eq!(first.member.health(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_mark_whose_time_cannot_be_read_runs_at_once() {
    let (engine, log) = (Switch::default(), Log::default());
    engine.garbles_marks.send_replace(true);
    let said = Arc::new(Mutex::new(Vec::new()));
    let reports = Arc::clone(&said);
    let reporting = builder(&engine, "first")
        .marks(true)
        .on_error(move |error| reports.lock().unwrap().push(error.to_string()));
    let first = start(reporting, "first", &log, &[], MS).await;
    sleep(SECOND).await;
    let key = String::from("garbled");
    let marked = first.member.shards().mark_after(&key, 100 * SECOND).await;
    marked.unwrap();
    sleep(SECOND).await;
    let ran: Vec<String> = log
        .lock()
        .unwrap()
        .iter()
        .map(|run| run.key.clone())
        .collect();
    assert_eq!(ran, [key]);
    assert_eq!(first.member.counters().marks_unreadable, 1);
    let said = said.lock().unwrap();
    assert!(
        said.len() == 1 && said[0].contains("garbled = soon"),
        "{said:?}"
    );
}
