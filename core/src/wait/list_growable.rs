//! The calls that wait for a queue, first come, first served, with as many places as are needed.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::IntoValues;
use core::mem;
use core::task::Waker;

use super::list::{TooManyWaiters, WaitList, WaitsFor, sealed};
use crate::outcome::Wake;

/// A [`WaitList`] with as many places as are needed. Every operation is O(log n) in the calls that
/// wait.
#[derive(Debug, Default)]
pub struct GrowableWaitList {
    /// The calls that wait for a key come first, then those that wait for room.
    waiters: BTreeMap<(WaitsFor, u64), Waker>,
    /// Numbers the places. 64 bits outlast any program.
    last_id: u64,
}

impl GrowableWaitList {
    /// Creates an empty list. O(1).
    pub const fn new() -> Self {
        Self {
            waiters: BTreeMap::new(),
            last_id: 0,
        }
    }
}

impl sealed::Sealed for GrowableWaitList {}

impl WaitList for GrowableWaitList {
    type Id = Option<(WaitsFor, u64)>;
    type Taken = IntoValues<(WaitsFor, u64), Waker>;

    fn register(
        &mut self,
        place: &mut Self::Id,
        waits_for: WaitsFor,
        waker: Waker,
    ) -> Result<Option<Waker>, (TooManyWaiters, Waker)> {
        let id = *place.get_or_insert_with(|| {
            self.last_id += 1;
            (waits_for, self.last_id)
        });
        Ok(self.waiters.insert(id, waker))
    }

    fn registered(&mut self, place: &Self::Id) -> Option<&mut Waker> {
        self.waiters.get_mut(place.as_ref()?)
    }

    fn remove(&mut self, place: &mut Self::Id) -> Option<Waker> {
        self.waiters.remove(&place.take()?)
    }

    fn take_first(&mut self) -> Option<Waker> {
        let first = self.waiters.first_entry()?;
        match first.key().0 {
            WaitsFor::Key => Some(first.remove()),
            WaitsFor::Room | WaitsFor::State => None,
        }
    }

    fn take(&mut self, wake: Wake) -> Self::Taken {
        if wake == Wake::ALL {
            return mem::take(&mut self.waiters).into_values();
        }
        let mut taken = BTreeMap::new();
        if wake.contains(Wake::WATCHERS) {
            taken = self.waiters.split_off(&(WaitsFor::State, 0));
        }
        for kind in [WaitsFor::Key, WaitsFor::Room] {
            let first = self.waiters.range((kind, 0)..).next().map(|(id, _)| *id);
            let first = first.filter(|id| id.0 == kind && wake.contains(kind.wake()));
            if let Some((id, waker)) = first.and_then(|id| self.waiters.remove_entry(&id)) {
                taken.insert(id, waker);
            }
        }
        taken.into_values()
    }
}
