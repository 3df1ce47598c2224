//! The calls that wait for a queue, first come, first served, with as many places as are needed.
//! Owns their wakers and their order; never calls a waker, which is done after the lock.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::IntoValues;
use core::array;
use core::iter::{Chain, Flatten};
use core::mem;
use core::task::Waker;

use super::{WaitList, WaitsFor};
use crate::outcome::Wake;
use crate::sealed::Sealed;

/// A [`WaitList`] with as many places as are needed. Every operation is O(log n) in the calls that
/// wait.
#[derive(Debug, Default)]
pub struct GrowableWaitList {
    /// First the calls that wait for a key, then the calls that wait for room.
    waiters: BTreeMap<Place, Waker>,
    /// Numbers the places. 64 bits outlast any program.
    last_id: u64,
}

type Place = (WaitsFor, u64);

impl GrowableWaitList {
    /// Creates an empty list. O(1).
    pub const fn new() -> Self {
        Self {
            waiters: BTreeMap::new(),
            last_id: 0,
        }
    }
}

impl Sealed for GrowableWaitList {}

impl WaitList for GrowableWaitList {
    type Id = Option<Place>;
    type Taken = Chain<Flatten<array::IntoIter<Option<Waker>, 2>>, IntoValues<Place, Waker>>;

    fn register(
        &mut self,
        place: &mut Self::Id,
        waits_for: WaitsFor,
        waker: Waker,
    ) -> Result<Option<Waker>, Waker> {
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
        let mut firsts = [None, None];
        if wake != Wake::ALL && wake.contains(Wake::ONE) {
            firsts[0] = self.take_first();
        }
        if wake != Wake::ALL && wake.contains(Wake::ROOM) {
            let mut waiters = self.waiters.range((WaitsFor::Room, 0)..);
            let first = waiters.next().map(|(id, _)| *id);
            let first = first.filter(|(waits_for, _)| *waits_for == WaitsFor::Room);
            firsts[1] = first.and_then(|id| self.waiters.remove(&id));
        }
        let all = match wake {
            Wake::ALL => mem::take(&mut self.waiters),
            _ if wake.contains(Wake::WATCHERS) => self.waiters.split_off(&(WaitsFor::State, 0)),
            _ => BTreeMap::new(),
        };
        firsts.into_iter().flatten().chain(all.into_values())
    }
}
