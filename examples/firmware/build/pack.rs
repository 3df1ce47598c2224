//! Packs recordings for the board's flash. `src/bin/conformance/` reads them.
//!
//! A recording begins with its kind and the number in its name. The board has no reference model.
//! So two things are left to the hosts: recordings of priorities, and the rest of a recording after
//! client-go has queued one key twice.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;

mod backoff;
mod bytes;
mod limiter;
mod queue;
mod ties;

/// A file of recordings.
struct Kind {
    file: &'static str,
    pack: fn(&mut Vec<u8>, &Value),
    /// Recordings that differ in this take turns.
    shape: fn(&Value) -> String,
}

/// Their places are what a recording begins with.
const KINDS: [Kind; 5] = [
    Kind {
        file: "queue",
        pack: queue::pack,
        shape: |trace| limiter::shape(&trace["limiter"]),
    },
    Kind {
        file: "queue_quirks",
        pack: queue::pack,
        shape: |trace| trace["features"].to_string(),
    },
    Kind {
        file: "queue_ties",
        pack: ties::pack,
        shape: |_| String::new(),
    },
    Kind {
        file: "limiter",
        pack: limiter::pack_calls,
        shape: |trace| trace["limiter"]["type"].to_string(),
    },
    Kind {
        file: "backoff",
        pack: backoff::pack,
        shape: |trace| trace["kind"].to_string(),
    },
];

/// As many recordings as fit into `bytes_max`, and how many those are. Every kind and every shape
/// of limiter has its turn, and of each those first in which a queue is drained.
pub fn pack(folder: &Path, bytes_max: usize) -> Vec<u8> {
    let mut shapes: BTreeMap<(usize, String), Vec<Vec<u8>>> = BTreeMap::new();
    for (number, kind) in KINDS.iter().enumerate() {
        let mut traces = read(&folder.join(kind.file).with_extension("jsonl.gz"));
        traces.sort_by_key(|trace| !queue::has(trace, "shut_down_with_drain"));
        for trace in &traces {
            let mut packed = vec![number as u8];
            bytes::number(&mut packed, number_of(trace));
            (kind.pack)(&mut packed, trace);
            let shape = (number, (kind.shape)(trace));
            shapes.entry(shape).or_default().push(packed);
        }
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
    bytes::number(&mut out, chosen.len() as u64);
    chosen.into_iter().for_each(|packed| out.extend(packed));
    out
}

fn read(path: &Path) -> Vec<Value> {
    let file = File::open(path).expect("the recordings are in the repository");
    let lines = BufReader::new(GzDecoder::new(file)).lines();
    lines
        .map(|line| serde_json::from_str(&line.expect("text")).expect("JSON"))
        .collect()
}

fn number_of(trace: &Value) -> u64 {
    let id = trace["id"].as_str().expect("a name");
    let digits = id.trim_start_matches(|c: char| !c.is_ascii_digit());
    digits.parse().expect("a number")
}
