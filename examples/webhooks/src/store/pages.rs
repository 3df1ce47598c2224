//! Changes of as many rows as there are objects, a page at a time. Each page is a work of its own,
//! so that others come in between.
//!
//! The database holds what is left to do, so that a start goes on where a kill broke off: a
//! subscription's `fill_after` is the last object that it is owed already, and deliveries without
//! a subscription are left of one that was deleted.

use std::sync::Arc;

use super::db::Db;
use super::{Scope, Store, StoreError};

/// Deliveries that have become pending.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) objects: Vec<Arc<str>>,
    /// Where the next page begins; `None` if this was the last.
    pub(crate) next: Option<Arc<str>>,
}

impl Store {
    /// Records up to `limit` more objects as owed to a subscription that is not owed every object
    /// yet. Otherwise those that had failed become pending again, in the order of their ids from
    /// `after` on. O(limit · log n).
    pub(crate) async fn owe(
        &self,
        id: Arc<str>,
        after: Arc<str>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.run(Scope::Change, move |db| match cursor(db, &id)? {
            Some(cursor) => {
                let objects = fill(db, &id, &cursor, limit)?;
                announce(db, &id, &cursor.fill_after, &objects);
                let next = Some(after);
                Ok(Page { objects, next })
            }
            None => {
                let page = revive(db, &id, &after, limit)?;
                announce(db, &id, &after, &page.objects);
                Ok(page)
            }
        })
        .await
    }

    /// Returns the subscriptions that are not owed every object yet.
    pub(crate) async fn unfilled(&self) -> Result<Vec<Arc<str>>, StoreError> {
        self.run(Scope::Read, |db| {
            let sql = "SELECT id FROM subscriptions WHERE fill_after IS NOT NULL";
            db.rows(sql, &[], |row| row.id(0))
        })
        .await
    }

    /// Deletes up to `limit` deliveries of a deleted subscription, and those deleted objects whose
    /// end is owed to no other subscription. Returns whether that was all. O(limit · log n).
    pub(crate) async fn clear(&self, id: Arc<str>, limit: usize) -> Result<bool, StoreError> {
        self.run(Scope::Change, move |db| clear(db, &id, limit))
            .await
    }

    /// Returns the deleted subscriptions that have something left to clear. O(s · log n) for s
    /// subscriptions.
    pub(crate) async fn uncleared(&self) -> Result<Vec<Arc<str>>, StoreError> {
        self.run(Scope::Read, |db| {
            let sql = "WITH RECURSIVE known (id) AS (
                 SELECT min(subscription) FROM deliveries UNION ALL
                 SELECT (SELECT min(subscription) FROM deliveries WHERE subscription > known.id)
                 FROM known WHERE known.id IS NOT NULL)
                 SELECT id FROM known
                 WHERE id IS NOT NULL AND id NOT IN (SELECT id FROM subscriptions)";
            db.rows(sql, &[], |row| row.id(0))
        })
        .await
    }
}

/// How far a subscription has come that is not owed every object yet.
struct Cursor {
    fill_after: String,
    revision: i64,
}

/// Announces what lies between an object and the last of a page.
fn announce(db: &mut Db<'_>, id: &str, after: &str, objects: &[Arc<str>]) {
    if let Some(last) = objects.iter().max() {
        db.announce(|| format!("page/{id}/{after}/{last}"));
    }
}

fn cursor(db: &mut Db<'_>, id: &str) -> Result<Option<Cursor>, StoreError> {
    let sql = "SELECT fill_after, revision FROM subscriptions
         WHERE id = ?1 AND fill_after IS NOT NULL";
    db.row(sql, &[&id], |row| {
        Ok(Cursor {
            fill_after: row.get(0)?,
            revision: row.get(1)?,
        })
    })
}

fn fill(
    db: &mut Db<'_>,
    id: &str,
    cursor: &Cursor,
    limit: usize,
) -> Result<Vec<Arc<str>>, StoreError> {
    let Cursor {
        fill_after,
        revision,
    } = cursor;
    let limit = rows(limit);
    let last = "SELECT id FROM objects WHERE id > ?1 ORDER BY id LIMIT 1 OFFSET ?2";
    let last: Option<String> = db.row(last, &[fill_after, &(limit - 1)], |row| row.get(0))?;
    // A version that is newer than the revision went to the present receiver, so it stays.
    let sql = "INSERT INTO deliveries (subscription, object, state)
         SELECT ?1, id, 'pending' FROM
         (SELECT id, body IS NOT NULL AS lives FROM objects WHERE id > ?2 ORDER BY id LIMIT ?3)
         AS page WHERE lives
         ON CONFLICT (subscription, object) DO UPDATE
         SET delivered = 0, state = 'pending', error = NULL
         WHERE deliveries.delivered <= ?4 RETURNING object";
    let objects = db.rows(sql, &[&id, fill_after, &limit, revision], |row| row.id(0))?;
    let sql = "UPDATE subscriptions SET fill_after = ?2 WHERE id = ?1";
    db.execute(sql, &[&id, &last])?;
    Ok(objects)
}

fn revive(db: &mut Db<'_>, id: &str, after: &str, limit: usize) -> Result<Page, StoreError> {
    let sql = "UPDATE deliveries SET state = 'pending', error = NULL
         WHERE subscription = ?1 AND object IN (SELECT object FROM deliveries
         WHERE state = 'failed' AND subscription = ?1 AND object > ?2 ORDER BY object LIMIT ?3)
         RETURNING object";
    let objects = db.rows(sql, &[&id, &after, &rows(limit)], |row| row.id(0))?;
    let is_last = objects.len() < limit;
    let next = objects.iter().max().filter(|_| !is_last).cloned();
    Ok(Page { objects, next })
}

fn clear(db: &mut Db<'_>, id: &str, limit: usize) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM subscriptions WHERE id = ?1";
    if db.row(sql, &[&id], |_| Ok(()))?.is_some() {
        // It was put again: the rows belong to the new one.
        return Ok(true);
    }
    db.lock_ended_objects(id, rows(limit))?;
    let sql = "DELETE FROM deliveries WHERE subscription = ?1 AND object IN
         (SELECT object FROM deliveries WHERE subscription = ?1 ORDER BY object LIMIT ?2)
         RETURNING object";
    let objects = db.rows(sql, &[&id, &rows(limit)], |row| row.id(0))?;
    for object in &objects {
        end_object(db, object)?;
    }
    Ok(objects.len() < limit)
}

/// Deletes the row of a deleted object whose end is owed to no subscription any more.
pub(super) fn end_object(db: &mut Db<'_>, id: &str) -> Result<(), StoreError> {
    let sql = "DELETE FROM objects WHERE id = ?1 AND body IS NULL
         AND NOT EXISTS (SELECT 1 FROM deliveries WHERE object = ?1)";
    db.execute(sql, &[&id]).map(drop)
}

fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX).max(1)
}
