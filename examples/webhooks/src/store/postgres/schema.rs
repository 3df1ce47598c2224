//! The tables, as SQLite has them, in a schema of their own.

use super::Session;
use crate::store::StoreError;
use crate::store::db::Db;

/// Changes with the tables.
const VERSION: i64 = 1;

/// What each connection begins with. A statement that takes longer is broken.
///
/// A transaction takes several messages to the server. A process that is stopped between two of
/// them keeps its locks until the server ends the transaction: other processes wait as long. A lock
/// that is kept nevertheless is an error before the client of a request has given up.
pub(super) const SETTINGS: &str = "
SET search_path TO webhooks;
SET client_min_messages TO warning;
SET statement_timeout TO '30s';
SET lock_timeout TO '10s';
SET idle_in_transaction_session_timeout TO '2s';
";

/// Ids are compared by their bytes, as SQLite does it.
const TABLES: &str = r#"
CREATE TABLE tables (version bigint NOT NULL);
INSERT INTO tables VALUES (1);

CREATE TABLE versions (newest bigint NOT NULL);
INSERT INTO versions VALUES (0);

CREATE TABLE subscriptions (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    url text NOT NULL,
    rate double precision,
    revision bigint NOT NULL,
    secret text,
    fill_after text COLLATE "C"
);

CREATE TABLE objects (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    version bigint NOT NULL,
    body text
);
CREATE INDEX deleted_objects ON objects (id) WHERE body IS NULL;

CREATE TABLE deliveries (
    subscription text COLLATE "C" NOT NULL,
    object text COLLATE "C" NOT NULL,
    delivered bigint NOT NULL DEFAULT 0,
    state text CHECK (state IN ('pending', 'failed')),
    error text,
    fence bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (subscription, object)
);
CREATE INDEX deliveries_by_object ON deliveries (object);
CREATE INDEX owed_deliveries ON deliveries (state, subscription, object) WHERE state IS NOT NULL;
"#;

/// Makes the tables if they are not there. Several processes may do so at once.
pub(super) fn prepare(session: &mut Session) -> Result<(), String> {
    let cannot = |error: StoreError| error.to_string();
    session
        .batch("BEGIN; SELECT pg_advisory_xact_lock(0, 0); CREATE SCHEMA IF NOT EXISTS webhooks")
        .map_err(cannot)?;
    let known = "SELECT 1 FROM pg_tables WHERE schemaname = 'webhooks'";
    let mut db = Db::Postgres(session);
    let is_new = db.row(known, &[], |_| Ok(())).map_err(cannot)?.is_none();
    if is_new {
        session.batch(TABLES).map_err(cannot)?;
    }
    session.batch("COMMIT").map_err(cannot)?;
    let version = Db::Postgres(session).row("SELECT version FROM tables", &[], |row| row.get(0));
    match version.map_err(cannot)? {
        Some(VERSION) => Ok(()),
        found => Err(format!(
            "it has version {}, this program {VERSION}",
            found.unwrap_or(0)
        )),
    }
}
