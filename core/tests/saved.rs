//! Leftovers that are saved and read again.

use std::time::Duration;

use requeue_core::Leftover;

#[test]
fn a_leftover_is_saved_with_all_its_fields() {
    let mut leftover = Leftover::new(String::from("lease-3"));
    leftover.left = Duration::new(40, 7);
    leftover.failures = 3;
    leftover.priority = 1;
    let saved = serde_json::to_string(&leftover).unwrap();
    let expected = r#"{"key":"lease-3","left":{"secs":40,"nanos":7},"failures":3,"priority":1}"#;
    assert_eq!(saved, expected);
    assert_eq!(
        serde_json::from_str::<Leftover<String>>(&saved).unwrap(),
        leftover
    );

    leftover.left = Duration::MAX;
    let saved = serde_json::to_string(&leftover).unwrap();
    assert_eq!(
        serde_json::from_str::<Leftover<String>>(&saved).unwrap(),
        leftover
    );
}
