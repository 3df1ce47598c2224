//! The objects.

use std::sync::Arc;

use super::db::Db;
use super::{Scope, Store, StoreError};

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
        self.run(Scope::Change, move |db| put(db, &id, &body)).await
    }

    pub(crate) async fn object(&self, id: Arc<str>) -> Result<Option<Object>, StoreError> {
        self.run(Scope::Read, move |db| find(db, &id)).await
    }

    /// Deletes an object if it exists. Every subscription that may have it is owed its end.
    pub(crate) async fn delete_object(&self, id: Arc<str>) -> Result<Option<Change>, StoreError> {
        self.run(Scope::Change, move |db| delete(db, &id)).await
    }
}

fn find(db: &mut Db<'_>, id: &str) -> Result<Option<Object>, StoreError> {
    let sql = "SELECT version, body FROM objects WHERE id = ?1 AND body IS NOT NULL";
    db.row(sql, &[&id], |row| {
        Ok(Object {
            version: row.get(0)?,
            body: row.get(1)?,
        })
    })
}

fn put(db: &mut Db<'_>, id: &str, body: &str) -> Result<Change, StoreError> {
    let is_new = !exists(db, id)?;
    let version = next_version(db)?;
    db.execute(
        "INSERT INTO objects (id, version, body) VALUES (?1, ?2, ?3)
         ON CONFLICT (id) DO UPDATE SET version = excluded.version, body = excluded.body",
        &[&id, &version, &body],
    )?;
    // Those that are owed it already stay as they are: nothing is written for them.
    db.execute(
        "INSERT INTO deliveries (subscription, object, state)
         SELECT id, ?1, 'pending' FROM subscriptions WHERE true
         ON CONFLICT (subscription, object) DO UPDATE SET state = 'pending', error = NULL
         WHERE deliveries.state IS DISTINCT FROM 'pending'",
        &[&id],
    )?;
    db.announce(|| format!("object/{id}"));
    Ok(Change {
        version,
        is_new,
        subscriptions: who_knows(db, id)?,
    })
}

fn delete(db: &mut Db<'_>, id: &str) -> Result<Option<Change>, StoreError> {
    if !exists(db, id)? {
        return Ok(None);
    }
    let version = next_version(db)?;
    let subscriptions = who_knows(db, id)?;
    if subscriptions.is_empty() {
        db.execute("DELETE FROM objects WHERE id = ?1", &[&id])?;
    } else {
        db.execute(
            "UPDATE objects SET version = ?2, body = NULL WHERE id = ?1",
            &[&id, &version],
        )?;
        db.execute(
            "UPDATE deliveries SET state = 'pending', error = NULL WHERE object = ?1",
            &[&id],
        )?;
        db.announce(|| format!("object/{id}"));
    }
    Ok(Some(Change {
        version,
        is_new: false,
        subscriptions,
    }))
}

fn exists(db: &mut Db<'_>, id: &str) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM objects WHERE id = ?1 AND body IS NOT NULL";
    Ok(db.row(sql, &[&id], |_| Ok(()))?.is_some())
}

/// Returns the subscriptions that have an object, or are owed it.
fn who_knows(db: &mut Db<'_>, id: &str) -> Result<Vec<Arc<str>>, StoreError> {
    let sql = "SELECT subscription FROM deliveries WHERE object = ?1";
    db.rows(sql, &[&id], |row| row.id(0))
}

/// Returns a version that was never used before. Versions are committed in their order.
pub(super) fn next_version(db: &mut Db<'_>) -> Result<i64, StoreError> {
    let sql = "UPDATE versions SET newest = newest + 1 RETURNING newest";
    let newest = db.row(sql, &[], |row| row.get(0))?;
    // The table has one row.
    newest.ok_or(StoreError::Closed)
}
