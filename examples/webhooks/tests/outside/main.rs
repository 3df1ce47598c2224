//! What needs something that a machine may lack: a browser, a small disk, a PostgreSQL, an etcd.
//!
//! Whether it is there shows when this runs. Without it there is nothing to test, and that is no
//! test that passed; hence a `main` of its own, which says so.
#![allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic, and its support is shared"
)]

#[cfg(unix)]
mod browser;
#[cfg(unix)]
mod full_disk;
#[cfg(unix)]
mod postgres;
#[cfg(unix)]
mod replicas;
#[cfg(unix)]
mod several;
#[cfg(unix)]
#[path = "../support/mod.rs"]
mod support;

// The store as it is, without the program around it.
#[path = "../../src"]
mod program {
    pub mod address;
    pub mod key;
    pub mod store;
    pub mod target;
}

use program::{address, key, store, target};

const EXIT_USAGE: u8 = 2;

fn say(message: &str) {
    println!("webhooks: {message}");
}

#[cfg(not(unix))]
fn main() {
    println!("NOT RUN: the program and the servers are started and stopped as on Unix");
}

#[cfg(unix)]
#[tokio::main]
async fn main() {
    browser::run().await;
    full_disk::run().await;
    postgres::run().await;
    replicas::run().await;
}

/// Returns whether the arguments select this test, as they do for a test with a harness: by any
/// part of its name, and no test if they are to be listed.
fn is_selected(test: &str) -> bool {
    let words = || std::env::args().skip(1);
    let mut parts = words().filter(|word| !word.starts_with('-')).peekable();
    let is_named = parts.peek().is_none() || parts.any(|part| test.contains(&part));
    is_named && words().all(|word| word != "--list")
}
