//! An API server and controllers as processes of this machine: what the programs in `bin` share.

#![forbid(unsafe_code)]

mod conformance;
mod own_writes;
mod replicas;
mod server;
mod world;

pub use conformance::conform;
pub use own_writes::own_writes;
pub use replicas::share;
pub use server::{Controllers, Server};
pub use world::{Controller, Problem, Web, World, seconds, until, writers};
