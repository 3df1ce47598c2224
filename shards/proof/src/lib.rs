//! Checks whether members of `requeue-shards` keep their promises under faults.
//!
//! The program `proof` starts etcd and replicas as separate processes. The replicas write to a
//! [`store`] that checks fences and records every run in a [`history`]. Meanwhile faults happen, in
//! an order that a seed decides. At the end the history is [checked](check::check).
#![forbid(unsafe_code)]

pub mod check;
pub mod history;
pub mod random;
pub mod store;
