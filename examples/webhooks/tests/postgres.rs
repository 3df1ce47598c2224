//! The store on PostgreSQL: the cases that SQLite passes, and those of several processes.
//!
//! Without a server on this machine there is nothing to test. Then it says so, and that is no test
//! that passed; hence a `main` of its own.
#![allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic, and its support and the store are shared"
)]

#[cfg(unix)]
mod support;

// The store as it is, without the program around it.
#[path = "../src"]
mod program {
    pub mod key;
    pub mod store;
}

#[cfg(unix)]
#[path = "postgres/several.rs"]
mod several;

use program::{key, store};

const EXIT_USAGE: u8 = 2;

fn say(message: &str) {
    println!("webhooks: {message}");
}

#[cfg(not(unix))]
fn main() {
    println!("NOT RUN: the store on PostgreSQL: the server is started as on Unix");
}

#[cfg(unix)]
#[tokio::main]
async fn main() {
    use several::with_several;
    use store::Database;
    use store::cases::{self, Place, with_cases};
    use support::postgres::Server;

    if std::env::args().any(|word| word == "--list") {
        return;
    }
    let server = match Server::start() {
        Ok(server) => server,
        Err(why) => return println!("NOT RUN: the store on PostgreSQL: {why}"),
    };
    macro_rules! run {
        ($($name:ident,)*) => {
            $(
                if support::is_selected(stringify!($name)) {
                    let database = Database::Server(server.database().await, None);
                    cases::$name(Place::new(database)).await;
                    println!("test on_postgres::{} ... ok", stringify!($name));
                }
            )*
        };
    }
    with_cases!(run);
    macro_rules! run_several {
        ($($name:ident,)*) => {
            $(
                if support::is_selected(stringify!($name)) {
                    several::$name(&server, server.database().await).await;
                    println!("test several::{} ... ok", stringify!($name));
                }
            )*
        };
    }
    with_several!(run_several);
}
