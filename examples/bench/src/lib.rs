//! How fast the queue is, and how much memory it takes, beside a straight port of client-go's
//! layout and beside peers.
//!
//! `cargo bench -p requeue-bench` runs everything and prints the tables of `docs/benchmarks.md`;
//! the arguments after `--` are `[--quick] [--json=FILE] [FILTER]`.

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
