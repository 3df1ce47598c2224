//! SQLite alone, and the cases on it.

use super::cases::{self, Place, with_cases};
use super::*;
use crate::key::Key;

macro_rules! on_sqlite {
    ($($name:ident,)*) => {
        mod on_sqlite {
            $(
                #[tokio::test]
                async fn $name() {
                    let folder = tempfile::tempdir().unwrap();
                    let place = super::Place::new(super::at(&folder));
                    super::cases::$name(place).await;
                }
            )*
        }
    };
}
with_cases!(on_sqlite);

fn at(folder: &tempfile::TempDir) -> Database {
    Database::File(folder.path().join("db"))
}

#[tokio::test]
async fn a_database_is_one_process_s_own_and_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(at(&folder));
    place.subscribe("s", "u").await;
    place.put("a").await;
    let second = Store::open(&at(&folder), Presence::Alone).err().unwrap();
    assert!(second.contains("another process"), "{second}");

    place.store.close().await;
    let closed = place.store.check().await.unwrap_err();
    assert!(matches!(closed, StoreError::Closed));
    let again = Store::open(&at(&folder), Presence::Alone).unwrap();
    again.check().await.unwrap();
    let owed = again.owed(State::Pending, None, 10).await.unwrap();
    assert_eq!(owed[0].key, Key::new("s", "a"));
    again.close().await;
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_reads_the_secrets() {
    use std::os::unix::fs::MetadataExt;

    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(at(&folder));
    place.put("a").await;
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let mode = file.unwrap().metadata().unwrap().mode();
        assert_eq!(mode & 0o077, 0);
    }
}

#[tokio::test]
async fn something_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other");
    let open = || Store::open(&Database::File(path.clone()), Presence::Alone);
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE t (x)").unwrap();
    drop(other);
    let error = open().err().unwrap();
    assert!(error.contains("version 0"), "{error}");
    std::fs::write(
        &path,
        "no database, but long enough to be looked at ".repeat(99),
    )
    .unwrap();
    assert!(open().is_err());
}

#[tokio::test]
async fn replicas_need_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let error = Store::open(&at(&folder), Presence::Shared).err().unwrap();
    assert!(error.contains("postgres://"), "{error}");
}

#[test]
fn a_url_is_no_file() {
    for url in ["postgres://u:hush@h/d", "postgresql:///d"] {
        let database = Database::parse(Path::new(url));
        assert!(matches!(database, Database::Server(..)));
        assert!(!format!("{database:?}").contains("hush"));
    }
    let file = Database::parse(Path::new("postgres.sqlite"));
    assert!(matches!(file, Database::File(_)));
    let error = postgres::parse("postgres://u:hush@h:port/d", None).unwrap_err();
    assert!(!error.contains("hush"), "{error}");
}
