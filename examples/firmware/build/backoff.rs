//! Recordings of apimachinery's backoffs.

use serde_json::Value;

use super::bytes::{bits, get, number};

const KINDS: [&str; 7] = [
    "step",
    "delay_func",
    "delay_with_reset",
    "exponential_manager",
    "jitter_step",
    "jitter_fn",
    "retry_loop",
];

pub fn pack(out: &mut Vec<u8>, trace: &Value) {
    let kind = KINDS.iter().position(|kind| trace["kind"] == *kind);
    out.push(kind.expect("a known kind") as u8);
    let params = &trace["params"];
    number(out, get(params, "duration_ns"));
    bits(out, &params["factor_bits"]);
    bits(out, &params["jitter_bits"]);
    number(out, get(params, "steps"));
    number(out, get(params, "cap_ns"));
    let has_reset = params.get("reset_ns").is_some();
    number(
        out,
        if has_reset {
            get(params, "reset_ns")
        } else {
            0
        },
    );
    let steps = trace["ops"].as_array().expect("operations");
    number(out, steps.len() as u64);
    for step in steps {
        match step["op"].as_str().expect("a name") {
            "next" => {
                out.push(0);
                number(out, get(step, "delay"));
            }
            "advance" => {
                out.push(1);
                number(out, get(step, "d"));
            }
            "step" if step.get("lo").is_none() => {
                number(out, get(step, "delay"));
                pack_left(out, step);
            }
            "step" => {
                number(out, get(step, "lo"));
                number(out, get(step, "hi"));
                pack_left(out, step);
            }
            "jitter" => ["d", "lo", "hi"]
                .iter()
                .for_each(|name| number(out, get(step, name))),
            "run" => pack_run(out, step),
            other => panic!("{other}: unknown"),
        }
    }
}

/// What a step left behind, unless Go left that to the processor.
fn pack_left(out: &mut Vec<u8>, step: &Value) {
    let is_open = step["impl_defined_next"] == true;
    out.push(u8::from(is_open));
    if !is_open {
        number(out, get(step, "duration_after"));
        number(out, get(step, "steps_after"));
    }
}

/// A loop that retries a call.
fn pack_run(out: &mut Vec<u8>, step: &Value) {
    // Calls are counted from one here; zero never comes.
    let succeeds = step["succeed_on_call"].as_i64().expect("a count") + 1;
    number(out, succeeds.max(0) as u64);
    let times = step["call_times_ns"].as_array().expect("times");
    number(out, times.len() as u64);
    times
        .iter()
        .for_each(|time| number(out, time.as_u64().expect("a time")));
    number(out, get(step, "elapsed_ns"));
    out.push(u8::from(step["timed_out"] == true));
}
