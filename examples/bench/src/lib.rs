//! How fast the queue is, beside a straight port of client-go's layout and beside peers.
//!
//! `cargo bench -p requeue-bench` runs everything and prints the tables of `docs/benchmarks.md`.

#![forbid(unsafe_code)]

pub mod harness;
pub mod keys;
pub mod port;
pub mod subject;
pub mod workloads;
