//! The subscriptions.

use std::sync::Arc;

use super::db::{Db, Row};
use super::objects::next_version;
use super::{Scope, Store, StoreError};
use crate::target::Target;

/// A subscription. Has no `Debug` because it holds secrets.
pub(crate) struct Subscription {
    pub(crate) url: String,
    /// Deliveries per second.
    pub(crate) rate: Option<f64>,
    /// Signs what is delivered.
    pub(crate) secret: Option<String>,
}

/// A subscription that is put. Has no `Debug` because it holds secrets.
pub(crate) struct NewSubscription {
    pub(crate) url: String,
    /// Deliveries per second.
    pub(crate) rate: Option<f64>,
    pub(crate) secret: NewSecret,
}

/// The secret of a subscription that is put.
pub(crate) enum NewSecret {
    /// The one there is, if the URL still has the same scheme, host and port.
    Kept,
    /// This one, or none.
    Given(Option<String>),
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
    /// Records a subscription. A new receiver is owed every object, and a known one what had failed.
    /// O(n) in the objects.
    pub(crate) async fn put_subscription(
        &self,
        id: Arc<str>,
        subscription: NewSubscription,
    ) -> Result<PutSubscription, StoreError> {
        self.run(Scope::Change, move |db| put(db, &id, subscription))
            .await
    }

    pub(crate) async fn subscription(
        &self,
        id: Arc<str>,
    ) -> Result<Option<Subscription>, StoreError> {
        self.run(Scope::Read, move |db| {
            let sql = "SELECT url, rate, secret FROM subscriptions WHERE id = ?1";
            db.row(sql, &[&&*id], read)
        })
        .await
    }

    /// Returns every subscription.
    pub(crate) async fn subscriptions(&self) -> Result<Vec<(Arc<str>, Subscription)>, StoreError> {
        self.run(Scope::Read, |db| {
            let sql = "SELECT url, rate, secret, id FROM subscriptions";
            db.rows(sql, &[], |row| Ok((row.id(3)?, read(row)?)))
        })
        .await
    }

    /// Deletes a subscription with its deliveries, and those deleted objects whose end is owed to
    /// no other subscription. Returns whether it existed. O(n) in the objects.
    pub(crate) async fn delete_subscription(&self, id: Arc<str>) -> Result<bool, StoreError> {
        self.run(Scope::Change, move |db| {
            let id = &*id;
            db.lock_out_deliveries(id)?;
            if db.execute("DELETE FROM subscriptions WHERE id = ?1", &[&id])? == 0 {
                return Ok(false);
            }
            db.lock_ended_objects(id)?;
            db.execute("DELETE FROM deliveries WHERE subscription = ?1", &[&id])?;
            let sql = "DELETE FROM objects WHERE body IS NULL
                 AND NOT EXISTS (SELECT 1 FROM deliveries WHERE object = objects.id)";
            db.execute(sql, &[])?;
            db.announce(|| format!("subscription/{id}"));
            Ok(true)
        })
        .await
    }
}

fn read(row: &Row<'_>) -> Result<Subscription, StoreError> {
    Ok(Subscription {
        url: row.get(0)?,
        rate: row.get(1)?,
        secret: row.get(2)?,
    })
}

fn put(db: &mut Db<'_>, id: &str, new: NewSubscription) -> Result<PutSubscription, StoreError> {
    db.lock_out_deliveries(id)?;
    db.announce(|| format!("subscription/{id}"));
    let sql = "SELECT url, rate, secret FROM subscriptions WHERE id = ?1";
    let known = db.row(sql, &[&id], read)?;
    let NewSubscription { url, rate, secret } = new;
    let secret = match secret {
        NewSecret::Given(secret) => secret,
        // Another receiver would get genuine signatures of the first one's secret.
        NewSecret::Kept => known
            .as_ref()
            .filter(|known| is_same_receiver(&known.url, &url))
            .and_then(|known| known.secret.clone()),
    };
    if known.as_ref().is_some_and(|known| known.url == url) {
        db.execute(
            "UPDATE subscriptions SET rate = ?2, secret = ?3 WHERE id = ?1",
            &[&id, &rate, &secret],
        )?;
        db.execute(
            "UPDATE deliveries SET state = 'pending', error = NULL
             WHERE subscription = ?1 AND state = 'failed'",
            &[&id],
        )?;
        return Ok(PutSubscription::Changed);
    }
    let count: Option<i64> = db.row("SELECT count(*) FROM subscriptions", &[], |row| row.get(0))?;
    if known.is_none() && count >= Some(SUBSCRIPTIONS_MAX) {
        return Ok(PutSubscription::TooMany);
    }
    let revision = next_version(db)?;
    db.execute(
        "INSERT INTO subscriptions (id, url, rate, revision, secret)
         VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (id) DO UPDATE SET url = excluded.url, rate = excluded.rate,
         revision = excluded.revision, secret = excluded.secret",
        &[&id, &url, &rate, &revision, &secret],
    )?;
    db.execute(
        "INSERT INTO deliveries (subscription, object, state)
         SELECT ?1, id, 'pending' FROM objects WHERE body IS NOT NULL
         ON CONFLICT (subscription, object) DO UPDATE
         SET delivered = 0, state = 'pending', error = NULL",
        &[&id],
    )?;
    Ok(match known {
        Some(_) => PutSubscription::Changed,
        None => PutSubscription::Created,
    })
}

/// Returns whether two URLs have the same scheme, host and port.
fn is_same_receiver(one: &str, other: &str) -> bool {
    // Whether the address may be called is decided elsewhere.
    match (Target::parse(one, true), Target::parse(other, true)) {
        (Ok(one), Ok(other)) => one.has_origin_of(&other),
        _ => one == other,
    }
}
