//! A webhook dispatcher: tells every subscriber over HTTP what every object looks like now.
//!
//! ```text
//!   PUT /objects/o ──▶ SQLite: a new version ──▶ add (s, o) for every subscription s ──▶ queue
//!                        ▲       │                                                        │
//!     start: what is owed│       └──── read the newest version ◀──── worker ◀─────────────┘
//!                        │                                             │
//!                        └──────── record that it was delivered ◀── POST to s ──▶ again later
//! ```
//!
//! A key names a subscription and an object, never what has changed: a worker reads the newest
//! version when it runs. So ten changes in a burst make one delivery of the newest version, and an
//! extra run does no harm. What is owed is recorded in the database, not in the queue: the next
//! start finds it there, however the last one ended.
//!
//! - `key`, `dispatch` and `shares` are the queue's side: what a key is, when one is
//!   added, what a worker does with it, and how often and how many at once a receiver is called.
//! - `store` is the source of truth; nothing else knows SQL.
//! - `post`, `sign`, `address` and `target` face the receivers, which are not trusted.
//! - `api`, `document`, `origin`, `server` and `connections` face the user. The window on the queue is
//!   `requeue-inspect`'s.
//! - `team` and `replicas` are there for several processes on one database.
//! - `args`, `signals` and `service` start it, put it together, and stop it.

mod address;
mod api;
mod args;
mod connections;
mod dispatch;
mod document;
mod key;
mod origin;
mod post;
#[cfg(feature = "replicas")]
mod replicas;
#[cfg(not(feature = "replicas"))]
#[path = "no_replicas.rs"]
mod replicas;
mod server;
mod service;
mod shares;
mod sign;
mod signals;
mod store;
mod target;
mod team;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use args::Options;

/// The exit code for a service that could not start or go on; clap's for invalid
/// arguments.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    let options = Options::parse();
    let ended = match options.reset_fences {
        true => block_on(service::reset_fences(options.database)),
        false => block_on(service::run(options)),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            say(&message);
            ExitCode::from(EXIT_USAGE)
        }
    }
}

fn block_on(task: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the runtime: {error}"))?;
    let ended = runtime.block_on(task);
    // A name that takes long to resolve holds a thread, but its address is no longer needed.
    runtime.shutdown_background();
    ended
}

/// Prints a message for the operator. It contains no secret: of a URL only what [`target::Target`]
/// shows.
fn say(message: &str) {
    if cfg!(test) {
        // Shown with a test that fails, and only then.
        return eprintln!("webhooks: {message}");
    }
    // A closed stderr is no reason to stop.
    let _ = writeln!(std::io::stderr(), "webhooks: {message}");
}
