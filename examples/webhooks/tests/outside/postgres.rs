//! The store on PostgreSQL: the cases that SQLite passes, and those of several processes.

use crate::is_selected;
use crate::several::{self, with_several};
use crate::store::Database;
use crate::store::cases::{self, Place, with_cases};
use crate::support::postgres::Server;

/// The names of cases.
macro_rules! names {
    ($($name:ident,)*) => { [$(concat!("postgres::", stringify!($name))),*] };
}

pub async fn run() {
    let mut names = with_cases!(names).into_iter().chain(with_several!(names));
    if !names.any(is_selected) {
        return;
    }
    let server = match Server::start() {
        Ok(server) => server,
        Err(why) => return println!("NOT RUN: postgres: {why}"),
    };
    macro_rules! run {
        ($($name:ident,)*) => {
            $(
                let name = concat!("postgres::", stringify!($name));
                if is_selected(name) {
                    let database = Database::Server(server.database().await, None);
                    cases::$name(Place::new(database)).await;
                    println!("test {name} ... ok");
                }
            )*
        };
    }
    with_cases!(run);
    macro_rules! run_several {
        ($($name:ident,)*) => {
            $(
                let name = concat!("postgres::", stringify!($name));
                if is_selected(name) {
                    several::$name(&server, server.database().await).await;
                    println!("test {name} ... ok");
                }
            )*
        };
    }
    with_several!(run_several);
}
