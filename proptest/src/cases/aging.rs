use requeue_core::AddOptions;

use super::{Script, ms};
use crate::subject::{Key, Subject};

fn add(script: &mut Script, key: Key, level: u8) {
    let options = AddOptions {
        priority: Some(level),
        ..AddOptions::default()
    };
    let added = script.subject.add_with(key, options);
    assert!(added.is_ok(), "{added:?}");
    script.subject.assert_valid();
}

fn age_after(script: &mut Script, millis: impl Into<Option<u64>>) {
    script.subject.age_after(millis.into().map(ms));
}

pub(crate) fn a_key_that_has_waited_too_long_comes_first(script: &mut Script) {
    add(script, 1, 0);
    script.subject.advance(ms(10));
    add(script, 2, 1);
    add(script, 3, 2);
    // Off by default.
    script.get(3);
    age_after(script, 10);
    // It has waited for 10 ms, and not for longer.
    script.get(2);
    script.subject.advance(ms(1));
    add(script, 4, 2);
    script.get(1);
    script.get(4);
}

pub(crate) fn of_keys_that_have_waited_too_long_the_oldest_comes_first(script: &mut Script) {
    add(script, 2, 1);
    script.subject.advance(ms(1));
    add(script, 1, 0);
    add(script, 3, 2);
    script.subject.advance(ms(20));
    age_after(script, 10);
    for key in [2, 3, 1] {
        script.get(key);
    }
}
