//! Which subscription has which version.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;

use super::db::{Db, Row};
use super::{Scope, Store, StoreError};
use crate::key::Key;

/// Why something is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// It is going to be delivered.
    Pending,
    /// It was given up, until the object or the subscription changes.
    Failed,
}

/// What a worker needs for one delivery, as it is now. Has no `Debug` because it holds secrets.
pub(crate) struct Task {
    pub(crate) version: i64,
    /// JSON; `None` if the object was deleted.
    pub(crate) body: Option<String>,
    pub(crate) url: String,
    pub(crate) secret: Option<String>,
    revision: i64,
}

/// A write that was refused, because the process no longer delivers to that subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stale {
    /// The fence of the write.
    pub(crate) fence: i64,
    /// The fence of an earlier write.
    pub(crate) stored: i64,
}

/// A delivery that is owed.
#[derive(Debug)]
pub(crate) struct Owed {
    pub(crate) key: Key,
    /// The newest version.
    pub(crate) version: i64,
    /// The newest that was delivered, zero if none was.
    pub(crate) delivered: i64,
    /// Why it was given up.
    pub(crate) error: Option<String>,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fence, stored } = self;
        write!(
            f,
            "a write with fence {fence} came after one with fence {stored}"
        )
    }
}

impl Store {
    /// Returns what has to be delivered for a key; `None` if the receiver has the newest version,
    /// or the subscription is gone.
    pub(crate) async fn task(&self, key: &Key) -> Result<Option<Task>, StoreError> {
        let key = key.clone();
        self.run(Scope::Read, move |db| task(db, &key)).await
    }

    /// Records that a task was delivered, under a fence if several processes deliver.
    ///
    /// # Errors
    ///
    /// [`StoreError::Fenced`] if it was recorded under a greater fence before: another process
    /// delivers now.
    pub(crate) async fn record_delivered(
        &self,
        key: &Key,
        task: &Task,
        fence: Option<i64>,
    ) -> Result<(), StoreError> {
        let write = Write::new(key, task, fence);
        self.run(Scope::Delivery, move |db| record_delivered(db, &write))
            .await
    }

    /// Records that a task was given up. If the object or the URL has changed since, it is still
    /// pending: then this does nothing and returns false.
    ///
    /// # Errors
    ///
    /// As [`record_delivered`](Self::record_delivered).
    pub(crate) async fn record_failed(
        &self,
        key: &Key,
        task: &Task,
        error: String,
        fence: Option<i64>,
    ) -> Result<bool, StoreError> {
        let write = Write::new(key, task, fence);
        // PostgreSQL has no text with this character.
        let error = error.replace('\0', " ");
        self.run(Scope::Delivery, move |db| record_failed(db, &write, &error))
            .await
    }

    /// Returns what is owed, in the order of the keys: up to `limit` after a key. O(log n + limit).
    pub(crate) async fn owed(
        &self,
        state: State,
        after: Option<Key>,
        limit: usize,
    ) -> Result<Vec<Owed>, StoreError> {
        let after = after.unwrap_or_else(|| Key::new("", ""));
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.run(Scope::Read, move |db| {
            let sql = "SELECT d.subscription, d.object, o.version, d.delivered, d.error
                 FROM deliveries d JOIN objects o ON o.id = d.object
                 WHERE d.state = ?1 AND (d.subscription, d.object) > (?2, ?3)
                 ORDER BY d.subscription, d.object LIMIT ?4";
            let (subscription, object) = (&*after.subscription, &*after.object);
            db.rows(sql, &[&state.name(), &subscription, &object, &limit], owed)
        })
        .await
    }

    /// Returns the deliveries of some objects that are owed. Known to PostgreSQL alone, because
    /// only other processes change what this one has not seen.
    pub(crate) async fn owed_of(&self, objects: &[Arc<str>]) -> Result<Vec<Key>, StoreError> {
        // No id contains this character.
        let objects = objects.join("/");
        self.run(Scope::Read, move |db| {
            let sql = "SELECT subscription, object FROM deliveries WHERE state = 'pending'
                 AND object = ANY (string_to_array(?1, '/'))";
            db.rows(sql, &[&objects], |row| Ok(Key::new(row.id(0)?, row.id(1)?)))
        })
        .await
    }

    /// Returns how much is owed. O(n), over a small index.
    pub(crate) async fn owed_len(&self, state: State) -> Result<i64, StoreError> {
        self.run(Scope::Read, move |db| {
            let sql = "SELECT count(*) FROM deliveries WHERE state = ?1";
            let len = db.row(sql, &[&state.name()], |row| row.get(0))?;
            Ok(len.unwrap_or(0))
        })
        .await
    }

    /// Forgets all fences, so that the smaller ones of a new set are accepted. No process may have
    /// the database open that delivers under the old ones. Returns how many there were. O(n).
    pub(crate) async fn reset_fences(&self) -> Result<u64, StoreError> {
        self.run(Scope::Change, |db| {
            db.execute("UPDATE deliveries SET fence = 0 WHERE fence > 0", &[])
        })
        .await
    }
}

/// What is recorded of a task.
struct Write {
    key: Key,
    version: i64,
    revision: i64,
    fence: Option<i64>,
    /// The object was deleted, and this says so.
    is_end: bool,
}

impl Write {
    fn new(key: &Key, task: &Task, fence: Option<i64>) -> Self {
        Self {
            key: key.clone(),
            version: task.version,
            revision: task.revision,
            fence,
            is_end: task.body.is_none(),
        }
    }
}

fn owed(row: &Row<'_>) -> Result<Owed, StoreError> {
    Ok(Owed {
        key: Key {
            subscription: row.id(0)?,
            object: row.id(1)?,
        },
        version: row.get(2)?,
        delivered: row.get(3)?,
        error: row.get(4)?,
    })
}

fn task(db: &mut Db<'_>, key: &Key) -> Result<Option<Task>, StoreError> {
    // Includes what was given up, because a key is in the queue only if it is to be tried.
    let sql = "SELECT o.version, o.body, s.url, s.secret, s.revision FROM deliveries d
         JOIN objects o ON o.id = d.object JOIN subscriptions s ON s.id = d.subscription
         WHERE d.subscription = ?1 AND d.object = ?2 AND d.state IS NOT NULL";
    db.row(sql, &[&&*key.subscription, &&*key.object], |row| {
        Ok(Task {
            version: row.get(0)?,
            body: row.get(1)?,
            url: row.get(2)?,
            secret: row.get(3)?,
            revision: row.get(4)?,
        })
    })
}

fn record_delivered(db: &mut Db<'_>, write: &Write) -> Result<(), StoreError> {
    let (subscription, object) = (&*write.key.subscription, &*write.key.object);
    db.lock_delivery(subscription, object, write.is_end)?;
    // Still owed if a newer version came meanwhile, or if the URL has changed.
    let sql = "UPDATE deliveries SET delivered = ?3, error = NULL, fence = coalesce(?5, fence),
         state = CASE WHEN (SELECT version FROM objects WHERE id = ?2) = ?3
         THEN NULL ELSE 'pending' END
         WHERE subscription = ?1 AND object = ?2 AND fence <= coalesce(?5, fence)
         AND EXISTS (SELECT 1 FROM subscriptions WHERE id = ?1 AND revision = ?4)";
    let Write {
        version,
        revision,
        fence,
        ..
    } = write;
    let recorded = db.execute(sql, &[&subscription, &object, version, revision, fence])?;
    if recorded == 0 {
        return check_fence(db, write);
    }
    if write.is_end {
        // A receiver that has the end of an object needs no row, and without rows the object
        // needs none.
        let sql = "DELETE FROM deliveries WHERE subscription = ?1 AND object = ?2
             AND state IS NULL";
        if db.execute(sql, &[&subscription, &object])? > 0 {
            let sql = "DELETE FROM objects WHERE id = ?1 AND body IS NULL
                 AND NOT EXISTS (SELECT 1 FROM deliveries WHERE object = ?1)";
            db.execute(sql, &[&object])?;
        }
    }
    Ok(())
}

fn record_failed(db: &mut Db<'_>, write: &Write, error: &str) -> Result<bool, StoreError> {
    let (subscription, object) = (&*write.key.subscription, &*write.key.object);
    db.lock_delivery(subscription, object, write.is_end)?;
    let sql = "UPDATE deliveries SET state = 'failed', error = ?5, fence = coalesce(?6, fence)
         WHERE subscription = ?1 AND object = ?2 AND state = 'pending'
         AND fence <= coalesce(?6, fence)
         AND EXISTS (SELECT 1 FROM objects WHERE id = ?2 AND version = ?3)
         AND EXISTS (SELECT 1 FROM subscriptions WHERE id = ?1 AND revision = ?4)";
    let Write {
        version,
        revision,
        fence,
        ..
    } = write;
    let params = [
        &subscription as &dyn super::db::Param,
        &object,
        version,
        revision,
        &error,
        fence,
    ];
    if db.execute(sql, &params)? > 0 {
        return Ok(true);
    }
    check_fence(db, write).map(|()| false)
}

/// Fails if the reason why nothing was written is a greater fence.
fn check_fence(db: &mut Db<'_>, write: &Write) -> Result<(), StoreError> {
    let Some(fence) = write.fence else {
        return Ok(());
    };
    let sql = "SELECT fence FROM deliveries
         WHERE subscription = ?1 AND object = ?2 AND fence > ?3";
    let key = &write.key;
    let stored = db.row(sql, &[&&*key.subscription, &&*key.object, &fence], |row| {
        row.get(0)
    })?;
    stored.map_or(Ok(()), |stored| {
        Err(StoreError::Fenced(Stale { fence, stored }))
    })
}
