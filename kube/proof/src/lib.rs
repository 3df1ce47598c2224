//! An API server and controllers as processes of this machine: what the programs in `bin` share.

#![forbid(unsafe_code)]

mod server;
mod world;

pub use server::Server;
pub use world::{Controller, Problem, Web, World, seconds, until, writers};
