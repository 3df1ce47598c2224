//! Recordings of keys whose deadlines tie. client-go leaves open in which order they leave; here it
//! is the order in which the deadlines were set.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::bytes::{get, number};

pub fn pack(out: &mut Vec<u8>, trace: &Value) {
    let steps = trace["ops"].as_array().expect("operations");
    number(out, steps.len() as u64);
    let (mut now, mut order) = (0, 0);
    // When each key is due, and which deadline in turn that was.
    let mut due = BTreeMap::new();
    for step in steps {
        match step["op"].as_str().expect("a name") {
            "add_after" => {
                let (key, delay) = (get(step, "k"), get(step, "d"));
                out.push(key as u8);
                number(out, delay);
                order += 1;
                let deadline = due.entry(key).or_insert((u64::MAX, 0));
                if now + delay < deadline.0 {
                    *deadline = (now + delay, order);
                }
            }
            "advance" => {
                out.push(ADVANCE);
                number(out, get(step, "d"));
                now += get(step, "d");
            }
            "drain_all" => {
                out.push(DRAIN_ALL);
                let mut keys: Vec<(u64, (u64, u32))> =
                    std::mem::take(&mut due).into_iter().collect();
                keys.sort_by_key(|(_, deadline)| *deadline);
                let keys: Vec<u64> = keys.into_iter().map(|(key, _)| key).collect();
                check(&keys, step);
                number(out, keys.len() as u64);
                out.extend(keys.into_iter().map(|key| key as u8));
            }
            other => panic!("{other}: unknown"),
        }
        number(out, get(step, "len"));
    }
}

const ADVANCE: u8 = 0x80;
const DRAIN_ALL: u8 = 0x81;

/// The order is one that client-go leaves open: the recorded keys, deadline by deadline.
fn check(mut keys: &[u64], step: &Value) {
    for group in step["groups"].as_array().expect("groups") {
        let group = group.as_array().expect("keys").iter();
        let group: BTreeSet<u64> = group.map(|key| key.as_u64().expect("a key")).collect();
        let (ours, rest) = keys.split_at(group.len());
        assert_eq!(BTreeSet::from_iter(ours.iter().copied()), group, "{step}");
        keys = rest;
    }
    assert!(keys.is_empty(), "{step}");
}
