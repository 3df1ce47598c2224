//! An API server and controllers as processes of this machine: what the programs in `bin` share.

#![forbid(unsafe_code)]

mod replicas;
mod server;
mod world;

pub use replicas::share;
pub use server::Server;
pub use world::{Controller, Problem, Web, World, seconds, until, writers};
