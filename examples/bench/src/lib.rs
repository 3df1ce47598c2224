//! The speed and the memory of the queue, compared with a straight port of client-go's layout and
//! with other crates.
//!
//! `cargo bench -p requeue-bench` runs everything and prints the tables of `docs/benchmarks.md`.
//! The arguments after `--` are `[--quick] [--json=FILE] [FILTER]`.

#![forbid(unsafe_code)]

pub mod callgrind;
pub mod fairness;
pub mod figures;
pub mod harness;
pub mod keys;
#[cfg(feature = "peers")]
pub mod peers;
pub mod pictures;
pub mod port;
pub mod subject;
pub mod taking;
pub mod tasks;
pub mod threads;
pub mod workloads;
pub mod worst;
