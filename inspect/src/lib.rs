#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod history;
#[cfg(feature = "http")]
mod http;
mod inspector;
#[cfg(feature = "http")]
mod page;
mod registry;
mod text;
mod view;
mod why;

#[cfg(feature = "http")]
pub use http::Listener;
pub use inspector::{ControlError, Inspect, Inspector};
pub use registry::Registry;
pub use text::{Shown, Span};
pub use view::{
    Bucket, Command, DeadKeyView, EndView, GroupPage, GroupView, Histogram, KeyDetail, KeyPage,
    KeyPhase, KeyQuery, KeyView, Limits, QueueView, Rate, RunView, Sample, Sort,
};
