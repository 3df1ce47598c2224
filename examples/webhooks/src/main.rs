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
//! - `key`, `dispatch`, `subscribe` and `shares` are the queue's side: what a key is, when one is
//!   added, what a worker does with it, and how often and how many at once a receiver is called.
//! - `store` is the source of truth; nothing else knows SQL.
//! - `post`, `sign`, `connect`, `address` and `target` face the receivers, which are not trusted.
//! - `api`, `origin`, `server` and `page.html` face the user, `figures` and `stats` show what
//!   happens.
//! - `team` and `replicas` are there for several processes on one database.
//! - `args`, `signals` and `service` start it, put it together, and stop it.

mod address;
mod api;
mod args;
mod connect;
mod dispatch;
mod figures;
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
mod snapshot;
mod stats;
mod store;
mod subscribe;
mod target;
mod team;

use std::io::Write;
use std::process::ExitCode;

use args::Command;

/// The exit code for invalid arguments, or a service that could not start or go on.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    let ended = match args::parse(std::env::args_os().skip(1)) {
        Ok(Command::Serve(options)) => block_on(service::run(*options)),
        Ok(Command::ResetFences(database)) => block_on(service::reset_fences(database)),
        Ok(Command::Say(text)) => {
            // A reader that closes the pipe early has read enough.
            let _ = std::io::stdout().write_all(text.as_bytes());
            Ok(())
        }
        Err(message) => Err(message),
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
