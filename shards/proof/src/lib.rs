//! Whether members of `requeue-shards` keep what they promise, whatever happens to them.
//!
//! The program `proof` starts etcd and replicas as processes of their own. The replicas write to a
//! [`store`] that checks fences and records every run as a [`history`]. Meanwhile faults happen, in
//! an order that a seed decides. What was recorded is [checked](check::check) then.
#![forbid(unsafe_code)]

pub mod check;
pub mod history;
pub mod random;
pub mod store;
