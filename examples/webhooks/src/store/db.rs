//! A connection to either database, within the work that runs on it.
//!
//! Statements are written once, with parameters as SQLite numbers them (`?1`), and in words that
//! both databases know.

use std::sync::Arc;

use rusqlite::Connection;

use super::StoreError;
use super::postgres::Session;

/// A connection.
pub(super) enum Db<'d> {
    Sqlite(&'d Connection),
    Postgres(&'d mut Session),
}

/// A row of an answer.
pub(super) enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r ::postgres::Row),
}

/// A value that both databases take.
pub(super) trait Param: rusqlite::ToSql + ::postgres::types::ToSql + Sync {}

impl<T: rusqlite::ToSql + ::postgres::types::ToSql + Sync> Param for T {}

/// A value that both databases return.
pub(super) trait Column:
    rusqlite::types::FromSql + for<'a> ::postgres::types::FromSql<'a>
{
}

impl<T: rusqlite::types::FromSql + for<'a> ::postgres::types::FromSql<'a>> Column for T {}

impl Db<'_> {
    /// Runs a statement. Returns how many rows it changed.
    pub(super) fn execute(
        &mut self,
        sql: &'static str,
        params: &[&dyn Param],
    ) -> Result<u64, StoreError> {
        match self {
            Self::Sqlite(db) => {
                let changed = db.prepare_cached(sql)?.execute(sqlite(params))?;
                Ok(u64::try_from(changed).unwrap_or(u64::MAX))
            }
            Self::Postgres(session) => session.execute(sql, params),
        }
    }

    /// Returns what `read` makes of each row.
    pub(super) fn rows<T>(
        &mut self,
        sql: &'static str,
        params: &[&dyn Param],
        mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        match self {
            Self::Sqlite(db) => {
                let mut statement = db.prepare_cached(sql)?;
                let mut rows = statement.query(sqlite(params))?;
                let mut all = Vec::new();
                while let Some(row) = rows.next()? {
                    all.push(read(&Row::Sqlite(row))?);
                }
                Ok(all)
            }
            Self::Postgres(session) => {
                let rows = session.query(sql, params)?;
                rows.iter().map(|row| read(&Row::Postgres(row))).collect()
            }
        }
    }

    /// Returns what `read` makes of the first row, `None` if there is none.
    pub(super) fn row<T>(
        &mut self,
        sql: &'static str,
        params: &[&dyn Param],
        read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.rows(sql, params, read)?.into_iter().next())
    }

    /// Lets a delivery be recorded apart from changes of its subscription and its object, and from
    /// records of other deliveries of the object if this is its end. Later statements of the
    /// transaction see what was committed before.
    pub(super) fn lock_delivery(
        &mut self,
        subscription: &str,
        object: &str,
        is_end: bool,
    ) -> Result<(), StoreError> {
        let sql = match is_end {
            false => {
                "SELECT pg_advisory_xact_lock_shared(1, hashtext(?1)), version
                 FROM objects WHERE id = ?2 FOR SHARE"
            }
            true => {
                "SELECT pg_advisory_xact_lock_shared(1, hashtext(?1)), version
                 FROM objects WHERE id = ?2 FOR UPDATE"
            }
        };
        self.lock(sql, &[&subscription, &object])
    }

    /// Waits until no delivery of a subscription is being recorded, and keeps others from it.
    pub(super) fn lock_out_deliveries(&mut self, subscription: &str) -> Result<(), StoreError> {
        let sql = "SELECT pg_advisory_xact_lock(1, hashtext(?1))";
        self.lock(sql, &[&subscription])
    }

    /// Waits until no end of an object is being recorded that a subscription is owed, and keeps
    /// others from it.
    pub(super) fn lock_ended_objects(&mut self, subscription: &str) -> Result<(), StoreError> {
        let sql = "SELECT id FROM objects WHERE body IS NULL AND id IN
             (SELECT object FROM deliveries WHERE subscription = ?1) ORDER BY id FOR UPDATE";
        self.lock(sql, &[&subscription])
    }

    fn lock(&mut self, sql: &'static str, params: &[&dyn Param]) -> Result<(), StoreError> {
        match self {
            // One thread does one thing at a time.
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(session) => session.query(sql, params).map(drop),
        }
    }

    /// Announces a change to other processes, once it is committed.
    pub(super) fn announce(&mut self, news: impl FnOnce() -> String) {
        // SQLite's database is open in one process only.
        if let Self::Postgres(session) = self {
            session.announce(&news());
        }
    }
}

impl Row<'_> {
    pub(super) fn get<T: Column>(&self, column: usize) -> Result<T, StoreError> {
        match self {
            Self::Sqlite(row) => Ok(row.get(column)?),
            Self::Postgres(row) => Ok(row.try_get(column)?),
        }
    }

    /// Returns an id.
    pub(super) fn id(&self, column: usize) -> Result<Arc<str>, StoreError> {
        Ok(self.get::<String>(column)?.into())
    }
}

fn sqlite(params: &[&dyn Param]) -> impl rusqlite::Params {
    rusqlite::params_from_iter(params.iter().map(|param| *param as &dyn rusqlite::ToSql))
}
