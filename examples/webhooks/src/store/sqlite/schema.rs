//! The tables.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};

/// Changes with the tables.
const VERSION: i64 = 3;

/// A version is a number that is never reused, so that a receiver that keeps the greatest one is
/// right, whatever was deleted and created again in between.
///
/// `deliveries` has a row for each subscription that has an object, or is owed it. Its `state` is
/// NULL if the newest version was delivered. An object whose `body` is NULL was deleted: it stays
/// until its end is delivered to every subscription.
const TABLES: &str = "
CREATE TABLE versions (newest INTEGER NOT NULL) STRICT;
INSERT INTO versions VALUES (0);

CREATE TABLE subscriptions (
    id TEXT NOT NULL PRIMARY KEY,
    url TEXT NOT NULL,
    rate REAL,
    -- A version of its own, changed with the URL: what the old receiver knows is of no use.
    revision INTEGER NOT NULL,
    secret TEXT,
    -- It is owed the objects up to this one; NULL if it is owed all of them.
    fill_after TEXT
) STRICT;

CREATE TABLE objects (
    id TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    body TEXT
) STRICT;
CREATE INDEX deleted_objects ON objects (id) WHERE body IS NULL;

CREATE TABLE deliveries (
    subscription TEXT NOT NULL,
    object TEXT NOT NULL,
    delivered INTEGER NOT NULL DEFAULT 0,
    state TEXT CHECK (state IN ('pending', 'failed')),
    error TEXT,
    -- What delivers in place of another writes with a greater one. Zero in one process.
    fence INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (subscription, object)
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_by_object ON deliveries (object);
CREATE INDEX owed_deliveries ON deliveries (state, subscription, object) WHERE state IS NOT NULL;
";

/// Makes version 2 of version 1.
const SECOND: &str = "
ALTER TABLE subscriptions ADD COLUMN secret TEXT;
ALTER TABLE subscriptions ADD COLUMN fill_after TEXT;
";

/// Makes version 3 of version 2.
const THIRD: &str = "ALTER TABLE deliveries ADD COLUMN fence INTEGER NOT NULL DEFAULT 0;";

/// How many prepared statements are kept: more than there are.
const STATEMENTS_MAX: usize = 64;

/// Opens a database for this process alone: two dispatchers would deliver everything twice.
pub(in super::super) fn open(path: &Path) -> Result<Connection, String> {
    keep_to_oneself(path).map_err(|error| error.to_string())?;
    let db = Connection::open(path).map_err(|error| error.to_string())?;
    let prepared = prepare(&db).map_err(|error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DatabaseBusy) => "another process has it open".to_owned(),
        _ => error.to_string(),
    })?;
    if prepared == VERSION {
        Ok(db)
    } else {
        Err(format!("it has version {prepared}, this program {VERSION}"))
    }
}

/// URLs may hold secrets: a file that is made here is read by its owner alone. SQLite gives the
/// files next to it the same rights.
fn keep_to_oneself(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

/// Sets the database up and returns the version of its tables.
fn prepare(db: &Connection) -> rusqlite::Result<i64> {
    db.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Another process that has it open keeps it.
    db.busy_timeout(Duration::ZERO)?;
    // FULL: what was answered survives a power cut as well, not only a kill.
    db.execute_batch(
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;",
    )?;
    db.execute_batch("BEGIN EXCLUSIVE")?;
    let version: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let first = "SELECT name FROM sqlite_schema LIMIT 1";
    let is_new = db.query_row(first, [], |_| Ok(())).optional()?.is_none();
    let steps: &[&str] = match (is_new, version) {
        (true, _) => &[TABLES],
        (false, 1) => &[SECOND, THIRD],
        (false, 2) => &[THIRD],
        _ => &[],
    };
    for step in steps {
        db.execute_batch(step)?;
        db.pragma_update(None, "user_version", VERSION)?;
    }
    db.execute_batch("COMMIT")?;
    Ok(if steps.is_empty() { version } else { VERSION })
}
