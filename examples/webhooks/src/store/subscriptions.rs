//! The subscriptions.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::schema::next_version;
use super::{Store, StoreError};

/// A subscription. Has no `Debug` because it holds secrets.
pub(crate) struct Subscription {
    pub(crate) url: String,
    /// Deliveries per second.
    pub(crate) rate: Option<f64>,
    /// Signs what is delivered. A put without one keeps the one there is.
    pub(crate) secret: Option<String>,
}

/// What became of a subscription that was put.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PutSubscription {
    Created,
    Changed,
    /// There are [`SUBSCRIPTIONS_MAX`].
    TooMany,
}

/// The limit, because each change of an object is recorded for every subscription.
pub(crate) const SUBSCRIPTIONS_MAX: i64 = 1000;

impl Store {
    /// Records a subscription. A new receiver is to be owed every object, and a known one what
    /// had failed: [`Store::owe`] does that. O(log n).
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
            db.prepare_cached("SELECT url, rate, secret FROM subscriptions WHERE id = ?1")?
                .query_row([&*id], read)
                .optional()
        })
        .await
    }

    /// Returns every subscription.
    pub(crate) async fn subscriptions(&self) -> Result<Vec<(Arc<str>, Subscription)>, StoreError> {
        self.run(|db| {
            db.prepare_cached("SELECT url, rate, secret, id FROM subscriptions")?
                .query_map([], |row| Ok((row.get(3)?, read(row)?)))?
                .collect()
        })
        .await
    }

    /// Deletes a subscription; [`Store::clear`] deletes its deliveries. Returns whether it existed.
    pub(crate) async fn delete_subscription(&self, id: Arc<str>) -> Result<bool, StoreError> {
        self.run(move |db| {
            let sql = "DELETE FROM subscriptions WHERE id = ?1";
            Ok(db.prepare_cached(sql)?.execute([&*id])? > 0)
        })
        .await
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Subscription> {
    Ok(Subscription {
        url: row.get(0)?,
        rate: row.get(1)?,
        secret: row.get(2)?,
    })
}

fn put(db: &Connection, id: &str, new: &Subscription) -> rusqlite::Result<PutSubscription> {
    let known_url: Option<String> = db
        .prepare_cached("SELECT url FROM subscriptions WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    if known_url.as_deref() == Some(&new.url) {
        db.prepare_cached(
            "UPDATE subscriptions SET rate = ?2, secret = coalesce(?3, secret) WHERE id = ?1",
        )?
        .execute(params![id, new.rate, new.secret])?;
        return Ok(PutSubscription::Changed);
    }
    let count: i64 = db.query_row("SELECT count(*) FROM subscriptions", [], |row| row.get(0))?;
    if known_url.is_none() && count >= SUBSCRIPTIONS_MAX {
        return Ok(PutSubscription::TooMany);
    }
    db.prepare_cached(
        "INSERT INTO subscriptions VALUES (?1, ?2, ?3, ?4, ?5, '')
         ON CONFLICT DO UPDATE SET url = excluded.url, rate = excluded.rate,
         revision = excluded.revision, secret = coalesce(excluded.secret, secret),
         fill_after = ''",
    )?
    .execute(params![
        id,
        new.url,
        new.rate,
        next_version(db)?,
        new.secret
    ])?;
    Ok(match known_url {
        Some(_) => PutSubscription::Changed,
        None => PutSubscription::Created,
    })
}
