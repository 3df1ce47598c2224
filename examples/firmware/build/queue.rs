//! Recordings of the queue: a byte for each operation and its key, and what could be observed
//! after it.

use serde_json::Value;

use super::bytes::{get, number};
use super::limiter;

pub fn steps(trace: &Value) -> &[Value] {
    trace["ops"].as_array().expect("operations")
}

pub fn has(trace: &Value, operation: &str) -> bool {
    steps(trace).iter().any(|step| step["op"] == operation)
}

/// The step at which client-go queues a key twice. The rest is the history of two keys of one name.
fn first_duplicate(trace: &Value) -> Option<usize> {
    let mut len_before = 0;
    steps(trace).iter().position(|step| {
        let len = std::mem::replace(&mut len_before, get(step, "len"));
        step["op"] == "done" && step["unpaired"] == true && len_before > len
    })
}

/// Flags: what is compared of a recording, apart from its steps.
const DRAIN: u8 = 1;
const END: u8 = 2;

pub fn pack(out: &mut Vec<u8>, trace: &Value) {
    let keys = get(trace, "keys");
    number(out, keys);
    limiter::pack(out, &trace["limiter"]);
    let drains = steps(trace).iter();
    let drains = drains.filter(|step| step["op"] == "shut_down_with_drain");
    let duplicate = first_duplicate(trace);
    let is_drain_as_recorded = drains.count() < 2 && trace.get("features").is_none();
    out.push(
        if is_drain_as_recorded { DRAIN } else { 0 } | if duplicate.is_none() { END } else { 0 },
    );
    let steps = &steps(trace)[..duplicate.map_or(steps(trace).len(), |index| index + 1)];
    number(out, steps.len() as u64);

    let mut charges = Charges::new(keys as usize);
    let mut len_before = 0;
    for (index, step) in steps.iter().enumerate() {
        // requeue has no second copy of a key.
        let len = match duplicate {
            Some(duplicate) if index == duplicate => len_before,
            _ => get(step, "len"),
        };
        // A waiting worker can be tried if the next step takes a key.
        let next = steps.get(index + 1);
        let finds = next.is_some_and(|next| next["op"] == "get" && next["k"].is_u64());
        pack_step(out, step, finds && len_before == 0, &mut charges);
        len_before = len;
        let is_drained = step["drained"][0] == true;
        out.push(len as u8 | u8::from(is_drained) << 7);
    }
    if duplicate.is_none() {
        pack_end(out, &trace["final"], &charges.late);
    }
}

/// client-go's limiter is charged for a key that comes after shutdown, and requeue's is not.
struct Charges {
    is_closed: bool,
    late: Vec<bool>,
}

impl Charges {
    fn new(keys: usize) -> Self {
        Self {
            is_closed: false,
            late: vec![false; keys + 1],
        }
    }
}

fn pack_step(out: &mut Vec<u8>, step: &Value, is_waited: bool, charges: &mut Charges) {
    let key = step["k"].as_u64().unwrap_or(0);
    let name = step["op"].as_str().expect("a name");
    let (kind, argument) = match name {
        "add" => (0, key),
        "add_after" => (1, key),
        "add_rate_limited" => {
            charges.late[key as usize] |= charges.is_closed;
            (2, key)
        }
        "get" if step["shutdown"] == true => (3, 15),
        "get" => (3, key),
        "done" if step["unpaired"] == true => (5, key),
        "done" => (4, key),
        "forget" => {
            charges.late[key as usize] = false;
            (6, key)
        }
        "num_requeues" if charges.late[key as usize] => (8, 0),
        "num_requeues" => (7, key),
        "len" => (8, 0),
        "shutting_down" => (9, u64::from(step["v"] == true)),
        "shut_down" => (10, 0),
        "shut_down_with_drain" => (11, 0),
        "advance" => (12, u64::from(is_waited)),
        other => panic!("{other}: unknown"),
    };
    charges.is_closed |= name.starts_with("shut_down");
    out.push(kind << 4 | argument as u8);
    match kind {
        1 => number(out, get(step, "d")),
        2 => number(out, get(step, "delay")),
        7 => number(out, get(step, "n")),
        12 => {
            for name in ["d", "unfinished_ns", "longest_ns"] {
                number(out, get(step, name));
            }
        }
        _ => {}
    }
}

fn pack_end(out: &mut Vec<u8>, end: &Value, charged_late: &[bool]) {
    for name in [
        "t",
        "depth",
        "adds",
        "retries",
        "unfinished_work_ns",
        "longest_running_ns",
        "metric_ticks",
    ] {
        number(out, get(end, name));
    }
    for name in ["latency_ns", "work_duration_ns"] {
        let all = end[name].as_array().expect("durations");
        let all = all.iter().map(|it| it.as_u64().expect("a duration"));
        number(out, all.clone().count() as u64);
        out.extend(all.fold(FNV_BEGIN, fnv).to_le_bytes());
    }
    let failures = end["num_requeues"].as_array().expect("counts");
    for (failures, charged_late) in failures.iter().zip(&charged_late[1..]) {
        // Zero stands for what is not compared.
        let known = failures.as_u64().expect("a count") + 1;
        number(out, if *charged_late { 0 } else { known });
    }
}

/// What stands for a list of durations, so that the board need not keep it.
const FNV_BEGIN: u64 = 0xCBF2_9CE4_8422_2325;

fn fnv(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(0x100_0000_01B3)
}
