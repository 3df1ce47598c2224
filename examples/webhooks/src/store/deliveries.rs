//! Which subscription has which version.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{Store, StoreError};
use crate::key::Key;

/// Why something is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl Store {
    /// Returns what has to be delivered for a key; `None` if the receiver has the newest version,
    /// or the subscription is gone.
    pub(crate) async fn task(&self, key: &Key) -> Result<Option<Task>, StoreError> {
        let key = key.clone();
        self.run(move |db| task(db, &key)).await
    }

    /// Records that a task was delivered.
    pub(crate) async fn record_delivered(&self, key: &Key, task: &Task) -> Result<(), StoreError> {
        let (key, version, revision) = (key.clone(), task.version, task.revision);
        self.run(move |db| record_delivered(db, &key, version, revision))
            .await
    }

    /// Records that a task was given up. If the object or the URL has changed since, it is still
    /// pending: then this does nothing and returns false.
    pub(crate) async fn record_failed(
        &self,
        key: &Key,
        task: &Task,
        error: String,
    ) -> Result<bool, StoreError> {
        let (key, version, revision) = (key.clone(), task.version, task.revision);
        self.run(move |db| {
            let sql = "UPDATE deliveries SET state = 'failed', error = ?5
                 WHERE subscription = ?1 AND object = ?2 AND state = 'pending'
                 AND EXISTS (SELECT 1 FROM objects WHERE id = ?2 AND version = ?3)
                 AND EXISTS (SELECT 1 FROM subscriptions WHERE id = ?1 AND revision = ?4)";
            let failed = db.prepare_cached(sql)?.execute(params![
                key.subscription,
                key.object,
                version,
                revision,
                error
            ])?;
            Ok(failed > 0)
        })
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
        self.run(move |db| {
            let sql = "SELECT d.subscription, d.object, o.version, d.delivered, d.error
                 FROM deliveries d JOIN objects o ON o.id = d.object
                 WHERE d.state = ?1 AND (d.subscription, d.object) > (?2, ?3)
                 ORDER BY d.subscription, d.object LIMIT ?4";
            db.prepare_cached(sql)?
                .query_map(
                    params![state.name(), after.subscription, after.object, limit],
                    owed,
                )?
                .collect()
        })
        .await
    }

    /// Returns how much is owed. O(n), over a small index.
    pub(crate) async fn owed_len(&self, state: State) -> Result<i64, StoreError> {
        self.run(move |db| {
            db.prepare_cached("SELECT count(*) FROM deliveries WHERE state = ?1")?
                .query_row([state.name()], |row| row.get(0))
        })
        .await
    }
}

fn owed(row: &Row<'_>) -> rusqlite::Result<Owed> {
    Ok(Owed {
        key: Key {
            subscription: row.get(0)?,
            object: row.get(1)?,
        },
        version: row.get(2)?,
        delivered: row.get(3)?,
        error: row.get(4)?,
    })
}

fn task(db: &Connection, key: &Key) -> rusqlite::Result<Option<Task>> {
    // Includes what was given up, because a key is in the queue only if it is to be tried.
    let sql = "SELECT o.version, o.body, s.url, s.secret, s.revision FROM deliveries d
         JOIN objects o ON o.id = d.object JOIN subscriptions s ON s.id = d.subscription
         WHERE d.subscription = ?1 AND d.object = ?2 AND d.state IS NOT NULL";
    db.prepare_cached(sql)?
        .query_row(params![key.subscription, key.object], |row| {
            Ok(Task {
                version: row.get(0)?,
                body: row.get(1)?,
                url: row.get(2)?,
                secret: row.get(3)?,
                revision: row.get(4)?,
            })
        })
        .optional()
}

fn record_delivered(
    db: &Connection,
    key: &Key,
    version: i64,
    revision: i64,
) -> rusqlite::Result<()> {
    // Still owed if a newer version came meanwhile, or if the URL has changed.
    let sql = "UPDATE deliveries SET delivered = ?3, error = NULL,
         state = iif((SELECT version FROM objects WHERE id = ?2) = ?3, NULL, 'pending')
         WHERE subscription = ?1 AND object = ?2
         AND EXISTS (SELECT 1 FROM subscriptions WHERE id = ?1 AND revision = ?4)";
    db.prepare_cached(sql)?
        .execute(params![key.subscription, key.object, version, revision])?;
    // A receiver that has the end of an object needs no row, and without rows the object needs
    // none.
    let heard = "DELETE FROM deliveries WHERE subscription = ?1 AND object = ?2 AND state IS NULL
         AND EXISTS (SELECT 1 FROM objects WHERE id = ?2 AND body IS NULL)";
    let heard = db
        .prepare_cached(heard)?
        .execute(params![key.subscription, key.object])?;
    if heard > 0 {
        let ended = "DELETE FROM objects WHERE id = ?1 AND body IS NULL
             AND NOT EXISTS (SELECT 1 FROM deliveries WHERE object = ?1)";
        db.prepare_cached(ended)?.execute([&*key.object])?;
    }
    Ok(())
}
