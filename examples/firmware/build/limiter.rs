//! A limiter as a list of parts. The longest of their delays counts. Each part has a limit of its
//! own, because a limit on a maximum is the same as that limit on each part.

use serde_json::Value;

use super::bytes::{bits, get, number};

/// Returns a text that differs for limiters of different construction.
pub fn shape(limiter: &Value) -> String {
    let parts = limiter["limiters"].as_array().into_iter().flatten();
    let inner = limiter.get("inner").into_iter();
    let within: Vec<String> = parts.chain(inner).map(shape).collect();
    format!("{}({})", limiter["type"], within.join(","))
}

pub fn pack(out: &mut Vec<u8>, limiter: &Value) {
    let mut parts = Vec::new();
    collect(&mut parts, limiter, u64::MAX);
    number(out, parts.len() as u64);
    parts.into_iter().for_each(|part| out.extend(part));
}

fn collect(parts: &mut Vec<Vec<u8>>, limiter: &Value, longest: u64) {
    let get = |name: &str| get(limiter, name);
    let mut push = |kind: u8, fill: &dyn Fn(&mut Vec<u8>)| {
        let mut part = Vec::new();
        // Zero stands for no limit.
        number(&mut part, longest.wrapping_add(1));
        part.push(kind);
        fill(&mut part);
        parts.push(part);
    };
    let mut exponential = |base, max| {
        push(0, &|part| {
            number(part, base);
            number(part, max);
        });
    };
    match limiter["type"].as_str().expect("a type") {
        "exponential" => exponential(get("base_ns"), get("max_ns")),
        "default_item_based" => exponential(1_000_000, 1_000_000_000_000),
        "fast_slow" => push(1, &|part| {
            number(part, get("fast_ns"));
            number(part, get("slow_ns"));
            number(part, get("max_fast_attempts"));
        }),
        "bucket" => push(2, &|part| {
            bits(part, &limiter["rate_bits"]);
            number(part, get("burst"));
        }),
        "default_controller" => {
            exponential(5_000_000, 1_000_000_000_000);
            push(2, &|part| {
                part.extend(10.0_f64.to_bits().to_le_bytes());
                number(part, 100);
            });
        }
        "max_of" => {
            let limiters = limiter["limiters"].as_array().expect("limiters");
            limiters.iter().for_each(|one| collect(parts, one, longest));
        }
        "with_max_wait" => collect(parts, &limiter["inner"], longest.min(get("max_ns"))),
        other => panic!("{other}: unknown"),
    }
}

/// A recording of a limiter alone.
pub fn pack_calls(out: &mut Vec<u8>, trace: &Value) {
    pack(out, &trace["limiter"]);
    let calls = trace["ops"].as_array().expect("operations");
    number(out, calls.len() as u64);
    for call in calls {
        let key = call["k"].as_u64().unwrap_or(0) as u8;
        let (kind, value) = match call["op"].as_str().expect("a name") {
            // Go leaves this delay to the processor: the failure counts, and nothing is compared.
            "when" if call["impl_defined"] == true => (0, None),
            "when" => (1, Some(get(call, "delay"))),
            "forget" => (2, None),
            "num_requeues" => (3, Some(get(call, "n"))),
            "advance" => (4, Some(get(call, "d"))),
            other => panic!("{other}: unknown"),
        };
        out.push(kind << 4 | key);
        value.into_iter().for_each(|value| number(out, value));
    }
}
