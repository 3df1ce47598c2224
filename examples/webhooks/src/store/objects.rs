//! The objects.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use super::schema::next_version;
use super::{Store, StoreError};

/// An object as it is now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) version: i64,
    /// JSON.
    pub(crate) body: String,
}

/// A change, and the subscriptions that are owed it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) version: i64,
    pub(crate) is_new: bool,
    pub(crate) subscriptions: Vec<Arc<str>>,
}

impl Store {
    /// Records a new version of an object, and that every subscription is owed it.
    pub(crate) async fn put_object(
        &self,
        id: Arc<str>,
        body: String,
    ) -> Result<Change, StoreError> {
        self.run(move |db| put(db, &id, &body)).await
    }

    pub(crate) async fn object(&self, id: Arc<str>) -> Result<Option<Object>, StoreError> {
        self.run(move |db| find(db, &id)).await
    }

    /// Deletes an object if it exists. Every subscription that may have it is owed its end.
    pub(crate) async fn delete_object(&self, id: Arc<str>) -> Result<Option<Change>, StoreError> {
        self.run(move |db| delete(db, &id)).await
    }
}

fn find(db: &Connection, id: &str) -> rusqlite::Result<Option<Object>> {
    db.prepare_cached("SELECT version, body FROM objects WHERE id = ?1 AND body IS NOT NULL")?
        .query_row([id], |row| {
            Ok(Object {
                version: row.get(0)?,
                body: row.get(1)?,
            })
        })
        .optional()
}

fn put(db: &Connection, id: &str, body: &str) -> rusqlite::Result<Change> {
    let is_new = find(db, id)?.is_none();
    let version = next_version(db)?;
    db.prepare_cached("INSERT OR REPLACE INTO objects VALUES (?1, ?2, ?3)")?
        .execute(params![id, version, body])?;
    // Those that are owed it already stay as they are: nothing is written for them.
    db.prepare_cached(
        "INSERT INTO deliveries (subscription, object, state)
         SELECT id, ?1, 'pending' FROM subscriptions WHERE true
         ON CONFLICT DO UPDATE SET state = 'pending', error = NULL
         WHERE state IS NOT 'pending'",
    )?
    .execute([id])?;
    Ok(Change {
        version,
        is_new,
        subscriptions: who_knows(db, id)?,
    })
}

fn delete(db: &Connection, id: &str) -> rusqlite::Result<Option<Change>> {
    if find(db, id)?.is_none() {
        return Ok(None);
    }
    let version = next_version(db)?;
    let subscriptions = who_knows(db, id)?;
    if subscriptions.is_empty() {
        db.prepare_cached("DELETE FROM objects WHERE id = ?1")?
            .execute([id])?;
    } else {
        db.prepare_cached("UPDATE objects SET version = ?2, body = NULL WHERE id = ?1")?
            .execute(params![id, version])?;
        db.prepare_cached(
            "UPDATE deliveries SET state = 'pending', error = NULL WHERE object = ?1",
        )?
        .execute([id])?;
    }
    Ok(Some(Change {
        version,
        is_new: false,
        subscriptions,
    }))
}

/// Returns the subscriptions that have an object, or are owed it.
fn who_knows(db: &Connection, id: &str) -> rusqlite::Result<Vec<Arc<str>>> {
    db.prepare_cached("SELECT subscription FROM deliveries WHERE object = ?1")?
        .query_map([id], |row| row.get(0))?
        .collect()
}
