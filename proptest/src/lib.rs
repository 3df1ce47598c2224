#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bell;
mod caught;
pub mod combinations;
pub mod conformance;
mod figures;
pub mod histories;
pub mod limiter;
mod model;
mod operation;
pub mod simulation;
mod stories;
pub mod subject;
mod watched;

pub use proptest;

pub use caught::guarded;
pub use figures::Figures;
pub use model::{Fingerprint, Model};

/// Returns how many rounds a test of chance runs: `base`, times what the environment says in
/// `REQUEUE_SOAK`, a positive integer. Without it, or if it is none, `base`.
///
/// # Examples
///
/// ```
/// assert!(requeue_proptest::rounds(20) >= 20);
/// ```
pub fn rounds(base: u32) -> u32 {
    let soak = std::env::var("REQUEUE_SOAK").ok();
    let times = soak.and_then(|times| times.trim().parse::<u32>().ok());
    base.saturating_mul(times.unwrap_or(1).max(1))
}
