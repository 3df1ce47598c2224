//! Several processes that deliver from one database, each to some of the subscriptions.

use std::sync::Arc;
use std::time::Duration;

use requeue::tokio::Action;
use serde_json::Value;

use crate::dispatch::{Dispatcher, PAGE_LEN};
use crate::key::Key;
use crate::say;
use crate::store::{News, StoreError};

/// Who delivers to which subscriptions.
///
/// A shard is a set of subscriptions: of one subscription all deliveries are made in one place,
/// where its rate and its turn among the others are kept.
pub(crate) trait Team: Send + Sync {
    /// Returns whether this process delivers a key, and the others of its subscription.
    fn owns(&self, key: &Key) -> bool;

    /// Returns the members, the owner of each shard, and what this process has done, as JSON.
    fn shown(&self) -> Value;

    /// Returns whether this process can do its part; if not, why.
    fn health(&self) -> Result<(), String>;
}

impl Dispatcher {
    /// Returns whether this process delivers a key, and the others of its subscription.
    pub(crate) fn owns(&self, key: &Key) -> bool {
        self.team.get().is_none_or(|team| team.owns(key))
    }

    /// Returns whether this process delivers to a subscription.
    pub(crate) fn is_ours(&self, subscription: &str) -> bool {
        self.owns(&Key::new(subscription, ""))
    }

    /// Gives each subscription its share, and takes it from those that are gone. Returns all that
    /// there are.
    pub(crate) async fn share_out(&self) -> Result<Vec<Arc<str>>, StoreError> {
        let _held = self.subscribing.lock().await;
        let mut ids = Vec::new();
        for (id, subscription) in self.store.subscriptions().await? {
            let host = self.host_of(&subscription.url);
            if !self.shares.is_set(&id, &host, subscription.rate) {
                self.shares.set(&id, &host, subscription.rate, self.now());
            }
            ids.push(id);
        }
        let mut gone = self.shares.subscriptions();
        gone.retain(|id| !ids.contains(id));
        for id in gone {
            self.shares.remove(&id, self.now());
        }
        Ok(ids)
    }

    /// Decides on a key whose subscription has no share: it was deleted, or another process has
    /// just put it.
    pub(crate) async fn look_up(&self, id: &Arc<str>) -> Action {
        if self.team.get().is_none() {
            return Action::Success;
        }
        let _held = self.subscribing.lock().await;
        match self.store.subscription(Arc::clone(id)).await {
            Ok(None) => Action::Success,
            Ok(Some(found)) => {
                let host = self.host_of(&found.url);
                self.shares.set(id, &host, found.rate, self.now());
                Action::Snooze(Duration::ZERO)
            }
            Err(error) => {
                say(&error.to_string());
                Action::Snooze(self.pause)
            }
        }
    }

    /// Adds what other processes have changed. Never ends.
    pub(crate) async fn heed_news(&self) {
        let Some(listener) = self.store.listener() else {
            return std::future::pending().await;
        };
        loop {
            let news = listener.next().await;
            if let Err(error) = self.heed(news).await {
                say(&error.to_string());
                self.doubt.notify_one();
            }
        }
    }

    async fn heed(&self, news: News) -> Result<(), StoreError> {
        if news.everything {
            // The list reads all that is owed.
            self.doubt.notify_one();
            return Ok(());
        }
        if !news.subscriptions.is_empty() {
            self.share_out().await?;
        }
        for id in news.subscriptions.iter().filter(|id| self.is_ours(id)) {
            self.each_owed(Some(id), |keys| self.add_asked_for(keys))
                .await?;
        }
        let objects: Vec<Arc<str>> = news.objects.into_iter().collect();
        for objects in objects.chunks(PAGE_LEN) {
            let keys = self.store.owed_of(objects).await?;
            self.add_newer(keys.into_iter());
        }
        Ok(())
    }
}
