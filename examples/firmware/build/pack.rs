//! Packs recordings: a byte for each operation and its key, numbers in as few bytes as they need.
//!
//! `src/bin/conformance/recording.rs` is the other end of this.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};

use flate2::read::GzDecoder;
use serde_json::Value;

/// As many recordings as fit into `bytes_max`, and how many those are. Every shape of limiter has
/// its turn, and of each those first in which the queue is drained.
pub fn pack(recordings: impl Read, bytes_max: usize) -> Vec<u8> {
    let mut shapes: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    let lines = BufReader::new(GzDecoder::new(recordings)).lines();
    let mut traces: Vec<Value> = lines
        .map(|line| serde_json::from_str(&line.expect("text")).expect("JSON"))
        .collect();
    traces.sort_by_key(|trace| !has(trace, "shut_down_with_drain"));
    for trace in &traces {
        let packed = pack_one(trace);
        shapes
            .entry(shape(&trace["limiter"]))
            .or_default()
            .push(packed);
    }
    let longest = shapes.values().map(Vec::len).max().unwrap_or(0);
    let in_turns = (0..longest).flat_map(|turn| shapes.values().filter_map(move |it| it.get(turn)));
    let mut size = 0;
    let fitting = in_turns.take_while(|packed| {
        size += packed.len();
        size <= bytes_max
    });
    let chosen: Vec<&Vec<u8>> = fitting.collect();
    let mut out = Vec::new();
    number(&mut out, chosen.len() as u64);
    chosen.into_iter().for_each(|packed| out.extend(packed));
    out
}

fn has(trace: &Value, operation: &str) -> bool {
    steps(trace).iter().any(|step| step["op"] == operation)
}

fn steps(trace: &Value) -> &[Value] {
    trace["ops"].as_array().expect("operations")
}

fn shape(limiter: &Value) -> String {
    let parts = limiter["limiters"].as_array().into_iter().flatten();
    let inner = limiter.get("inner").into_iter();
    let within: Vec<String> = parts.chain(inner).map(shape).collect();
    format!("{}({})", limiter["type"], within.join(","))
}

fn pack_one(trace: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    let id = trace["id"].as_str().expect("a name");
    let digits = id.trim_start_matches(|c: char| !c.is_ascii_digit());
    number(&mut out, digits.parse().expect("a number"));
    let keys = trace["keys"].as_u64().expect("a count");
    number(&mut out, keys);
    pack_limiter(&mut out, &trace["limiter"]);
    number(&mut out, steps(trace).len() as u64);

    let mut is_closed = false;
    let mut len_before = 0;
    // client-go's limiter is charged for a key that comes after shutdown, and requeue's is not.
    let mut charged_late = vec![false; keys as usize + 1];
    for (index, step) in steps(trace).iter().enumerate() {
        let key = step["k"].as_u64().unwrap_or(0);
        let name = step["op"].as_str().expect("a name");
        let next = steps(trace).get(index + 1);
        let (kind, argument) = match name {
            "add" => (0, key),
            "add_after" => (1, key),
            "add_rate_limited" => {
                charged_late[key as usize] |= is_closed;
                (2, key)
            }
            "get" if step["shutdown"] == true => (3, 15),
            "get" => (3, key),
            "done" if step["unpaired"] == true => (5, key),
            "done" => (4, key),
            "forget" => {
                charged_late[key as usize] = false;
                (6, key)
            }
            "num_requeues" if charged_late[key as usize] => (8, 0),
            "num_requeues" => (7, key),
            "len" => (8, 0),
            "shutting_down" => (9, u64::from(step["v"] == true)),
            "shut_down" => (10, 0),
            "shut_down_with_drain" => (11, 0),
            "advance" => {
                // A worker that waits can be tried where one finds a key after this.
                let waits = next.is_some_and(|next| next["op"] == "get" && next["k"].is_u64());
                (12, u64::from(waits && len_before == 0))
            }
            other => panic!("{other}: unknown"),
        };
        is_closed |= name.starts_with("shut_down");
        out.push(kind << 4 | argument as u8);
        match kind {
            1 => number(&mut out, step["d"].as_i64().expect("a delay").max(0) as u64),
            2 => number(&mut out, step["delay"].as_u64().expect("a delay")),
            7 => number(&mut out, step["n"].as_u64().expect("a count")),
            12 => {
                for name in ["d", "unfinished_ns", "longest_ns"] {
                    number(&mut out, step[name].as_u64().expect("a duration"));
                }
            }
            _ => {}
        }
        len_before = step["len"].as_u64().expect("a count");
        let is_drained = step["drained"][0] == true;
        out.push(len_before as u8 | u8::from(is_drained) << 7);
    }
    pack_end(&mut out, &trace["final"], &charged_late);
    out
}

fn pack_end(out: &mut Vec<u8>, end: &Value, charged_late: &[bool]) {
    for name in [
        "t",
        "depth",
        "adds",
        "retries",
        "unfinished_work_ns",
        "longest_running_ns",
    ] {
        number(out, end[name].as_u64().expect("a number"));
    }
    number(out, end["metric_ticks"].as_u64().expect("a count"));
    for name in ["latency_ns", "work_duration_ns"] {
        let all = end[name].as_array().expect("durations");
        let all = all.iter().map(|it| it.as_u64().expect("a duration"));
        number(out, all.clone().count() as u64);
        out.extend(all.fold(FNV_BEGIN, fnv).to_le_bytes());
    }
    let failures = end["num_requeues"].as_array().expect("counts");
    for (failures, charged_late) in failures.iter().zip(&charged_late[1..]) {
        let known = failures.as_u64().expect("a count") + 1;
        number(out, if *charged_late { 0 } else { known });
    }
}

/// What stands for a list of durations, so that the board need not keep it.
const FNV_BEGIN: u64 = 0xCBF2_9CE4_8422_2325;

fn fnv(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(0x100_0000_01B3)
}

/// A list of limiters of which the longest delay counts, and the longest it may be.
fn pack_limiter(out: &mut Vec<u8>, limiter: &Value) {
    let (limiter, max) = match limiter["type"].as_str() {
        Some("with_max_wait") => (&limiter["inner"], limiter["max_ns"].as_u64()),
        _ => (limiter, None),
    };
    let mut parts = Vec::new();
    collect_parts(&mut parts, limiter);
    number(out, parts.len() as u64);
    parts.into_iter().for_each(|part| out.extend(part));
    number(out, max.unwrap_or(u64::MAX));
}

fn collect_parts(parts: &mut Vec<Vec<u8>>, limiter: &Value) {
    let get = |name: &str| limiter[name].as_u64().expect("a number");
    let exponential = |base, max| {
        let mut part = vec![0];
        number(&mut part, base);
        number(&mut part, max);
        part
    };
    let bucket = |rate_bits: u64, burst| {
        let mut part = vec![2];
        part.extend(rate_bits.to_le_bytes());
        number(&mut part, burst);
        part
    };
    match limiter["type"].as_str().expect("a type") {
        "exponential" => parts.push(exponential(get("base_ns"), get("max_ns"))),
        "fast_slow" => {
            let mut part = vec![1];
            number(&mut part, get("fast_ns"));
            number(&mut part, get("slow_ns"));
            let attempts = limiter["max_fast_attempts"].as_i64().expect("a count");
            number(&mut part, attempts.max(0) as u64);
            parts.push(part);
        }
        "bucket" => {
            let bits = limiter["rate_bits"].as_str().expect("digits");
            let bits = u64::from_str_radix(bits, 16).expect("digits");
            parts.push(bucket(bits, get("burst")));
        }
        "default_controller" => {
            parts.push(exponential(5_000_000, 1_000_000_000_000));
            parts.push(bucket(10.0_f64.to_bits(), 100));
        }
        "max_of" => {
            let limiters = limiter["limiters"].as_array().expect("limiters");
            limiters.iter().for_each(|one| collect_parts(parts, one));
        }
        other => panic!("{other}: unknown"),
    }
}

/// Seven bits a byte, the low ones first.
fn number(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7F {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
