//! Who wants to know.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use super::schema::next_version;
use super::{Store, StoreError};

/// A receiver. The URL may hold secrets, so that this has no `Debug`.
pub(crate) struct Subscription {
    pub(crate) url: String,
    /// Deliveries per second.
    pub(crate) rate: Option<f64>,
}

/// What became of a subscription that was put.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PutSubscription {
    Created,
    Changed,
    /// There are [`SUBSCRIPTIONS_MAX`].
    TooMany,
}

/// Each change of an object is written down for every subscription.
pub(crate) const SUBSCRIPTIONS_MAX: i64 = 1000;

impl Store {
    /// Writes a subscription down. A new receiver is owed every object; a receiver that was known
    /// is owed once more what had failed.
    pub(crate) async fn put_subscription(
        &self,
        id: Arc<str>,
        subscription: Subscription,
    ) -> Result<PutSubscription, StoreError> {
        self.run(move |db| put(db, &id, &subscription)).await
    }

    pub(crate) async fn subscription(
        &self,
        id: Arc<str>,
    ) -> Result<Option<Subscription>, StoreError> {
        self.run(move |db| {
            db.prepare_cached("SELECT url, rate FROM subscriptions WHERE id = ?1")?
                .query_row([&*id], |row| {
                    Ok(Subscription {
                        url: row.get(0)?,
                        rate: row.get(1)?,
                    })
                })
                .optional()
        })
        .await
    }

    /// Every subscription.
    pub(crate) async fn subscriptions(&self) -> Result<Vec<(Arc<str>, Subscription)>, StoreError> {
        self.run(|db| {
            db.prepare_cached("SELECT id, url, rate FROM subscriptions")?
                .query_map([], |row| {
                    let (url, rate) = (row.get(1)?, row.get(2)?);
                    Ok((row.get(0)?, Subscription { url, rate }))
                })?
                .collect()
        })
        .await
    }

    /// Forgets a subscription and what it knows. Answers whether it was there.
    pub(crate) async fn delete_subscription(&self, id: Arc<str>) -> Result<bool, StoreError> {
        self.run(move |db| {
            db.prepare_cached("DELETE FROM deliveries WHERE subscription = ?1")?
                .execute([&*id])?;
            let deleted = db
                .prepare_cached("DELETE FROM subscriptions WHERE id = ?1")?
                .execute([&*id])?;
            // It may have been the last that had to hear of an object's end.
            db.execute(
                "DELETE FROM objects WHERE body IS NULL
                 AND NOT EXISTS (SELECT 1 FROM deliveries WHERE object = objects.id)",
                [],
            )?;
            Ok(deleted > 0)
        })
        .await
    }
}

fn put(db: &Connection, id: &str, new: &Subscription) -> rusqlite::Result<PutSubscription> {
    let known_url: Option<String> = db
        .prepare_cached("SELECT url FROM subscriptions WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    if known_url.as_deref() == Some(&new.url) {
        db.prepare_cached("UPDATE subscriptions SET rate = ?2 WHERE id = ?1")?
            .execute(params![id, new.rate])?;
        db.prepare_cached(
            "UPDATE deliveries SET state = 'pending', error = NULL
             WHERE subscription = ?1 AND state = 'failed'",
        )?
        .execute([id])?;
        return Ok(PutSubscription::Changed);
    }
    let count: i64 = db.query_row("SELECT count(*) FROM subscriptions", [], |row| row.get(0))?;
    if known_url.is_none() && count >= SUBSCRIPTIONS_MAX {
        return Ok(PutSubscription::TooMany);
    }
    db.prepare_cached("INSERT OR REPLACE INTO subscriptions VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![id, new.url, new.rate, next_version(db)?])?;
    db.prepare_cached(
        "INSERT INTO deliveries (subscription, object, state)
         SELECT ?1, id, 'pending' FROM objects WHERE body IS NOT NULL
         ON CONFLICT DO UPDATE SET delivered = 0, state = 'pending', error = NULL",
    )?
    .execute([id])?;
    Ok(match known_url {
        Some(_) => PutSubscription::Changed,
        None => PutSubscription::Created,
    })
}
