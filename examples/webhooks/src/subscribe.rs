//! Adding and removing subscriptions. A new one is owed every object there is; that is recorded a
//! page at a time, and other requests come in between.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::dispatch::{Dispatcher, PAGE_LEN};
use crate::key::Key;
use crate::say;
use crate::store::{NewSubscription, PutSubscription, StoreError};

/// How long a put waits until everything is owed. It is not lost when that takes longer.
const FILL_WAIT: Duration = Duration::from_secs(10);

impl Dispatcher {
    /// Puts a subscription. A new receiver is owed every object, a known one what had failed.
    ///
    /// Once it is committed, the rest is certain: it goes on in the background if it takes long,
    /// and after the next start if it is broken off.
    pub(crate) async fn put_subscription(
        self: &Arc<Self>,
        id: Arc<str>,
        subscription: NewSubscription,
    ) -> Result<PutSubscription, StoreError> {
        let held = self.subscribing.lock().await;
        let rate = subscription.rate;
        let host = self.host_of(&subscription.url);
        let put = self.store.put_subscription(Arc::clone(&id), subscription);
        let put = put.await.inspect_err(|_| self.doubt.notify_one())?;
        if put == PutSubscription::TooMany {
            return Ok(put);
        }
        self.shares.set(&id, &host, rate, self.now());
        drop(held);
        let fill = tokio::spawn({
            let dispatcher = Arc::clone(self);
            async move { dispatcher.fill(&id).await }
        });
        let _ = timeout(FILL_WAIT, fill).await;
        Ok(put)
    }

    /// Deletes a subscription. Returns whether it was there.
    pub(crate) async fn delete_subscription(&self, id: Arc<str>) -> Result<bool, StoreError> {
        let held = self.subscribing.lock().await;
        let deleted = self.store.delete_subscription(Arc::clone(&id)).await;
        // If it was written nevertheless, its deliveries are left to clear.
        let is_deleted = deleted.inspect_err(|_| self.doubt.notify_one())?;
        // Its keys may stay in the queue: their runs find nothing to do.
        self.shares.remove(&id, self.now());
        drop(held);
        let mut is_clear = false;
        while !is_clear {
            let clear = || self.store.clear(Arc::clone(&id), PAGE_LEN);
            is_clear = self.page(clear).await.unwrap_or(true);
        }
        Ok(is_deleted)
    }

    /// Finishes for these subscriptions what an earlier run left undone, or a request that was
    /// answered with an error, or another process.
    pub(crate) async fn resume_pages(
        &self,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<(), StoreError> {
        let mut uncleared = self.store.uncleared().await?;
        uncleared.retain(|id| is_meant(id));
        for id in uncleared {
            let mut is_clear = false;
            while !is_clear {
                let _held = self.paging.lock().await;
                is_clear = self.store.clear(Arc::clone(&id), PAGE_LEN).await?;
            }
        }
        let mut unfilled = self.store.unfilled().await?;
        unfilled.retain(|id| is_meant(id));
        for id in unfilled {
            let mut next = Some("".into());
            while let Some(after) = next {
                let _held = self.paging.lock().await;
                let page = self.store.owe(Arc::clone(&id), after, PAGE_LEN).await?;
                next = page.next;
                let key = |object| Key::new(Arc::clone(&id), object);
                self.add_asked_for(page.objects.into_iter().map(key).collect());
            }
        }
        Ok(())
    }

    /// Adds everything that a subscription is owed, and records what else it is owed.
    async fn fill(&self, id: &Arc<str>) {
        let owed = || self.add_owed(Some(id), Self::add_asked_for);
        let _ = self.insist(owed).await;
        let mut next = Some("".into());
        while let Some(after) = next {
            let owe = || self.store.owe(Arc::clone(id), Arc::clone(&after), PAGE_LEN);
            let Some(page) = self.page(owe).await else {
                return;
            };
            next = page.next;
            let key = |object| Key::new(Arc::clone(id), object);
            self.add_asked_for(page.objects.into_iter().map(key).collect());
        }
    }

    /// Does one page of long work. Only one page is worked on at a time.
    async fn page<T, F>(&self, work: impl Fn() -> F) -> Option<T>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let _held = self.paging.lock().await;
        self.insist(work).await
    }

    /// Retries until the database succeeds. Returns `None` if the service stops.
    async fn insist<T, F>(&self, ask: impl Fn() -> F) -> Option<T>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        while !self.queue.is_shutting_down() {
            match ask().await {
                Ok(done) => return Some(done),
                Err(StoreError::Closed) => return None,
                Err(error) => {
                    say(&error.to_string());
                    // It may have been written; then the next try does not return it.
                    self.doubt.notify_one();
                }
            }
            sleep(self.pause).await;
        }
        None
    }
}

#[cfg(test)]
mod tests;
