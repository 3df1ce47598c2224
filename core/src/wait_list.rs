//! The calls that wait for a queue, first come, first served, with a fixed number of places. Owns
//! their wakers and their order; never calls a waker, which is done after the lock.

use core::fmt;
use core::mem;
use core::task::Waker;

use heapless::Vec;

use crate::outcome::Wake;
use crate::sealed::Sealed;

#[cfg(feature = "alloc")]
mod growable;

#[cfg(feature = "alloc")]
pub use growable::GrowableWaitList;

/// The wakers of the calls that wait for a queue, in the order in which they came.
///
/// The list is behind the lock of the queue. A call keeps its place when it is woken, so that a
/// call that then finds nothing does not lose its turn. The trait is sealed: [`FixedWaitList`] has
/// a fixed number of places, `GrowableWaitList` as many as are needed (feature `alloc`).
///
/// # Examples
///
/// ```
/// use requeue::binding::FixedWaitList;
///
/// // Room for three calls that wait.
/// const EMPTY: FixedWaitList<3> = FixedWaitList::new();
/// # let _ = EMPTY;
/// ```
pub trait WaitList: Sealed {
    /// Whether a call clones its waker before it knows that it has to wait. If not, a call that has
    /// to wait looks twice. That is better if a clone costs more than a look.
    #[doc(hidden)]
    const CLONES_FIRST: bool = false;
    /// How many calls may wait.
    #[doc(hidden)]
    const PLACES: usize = usize::MAX;
    /// The place of a call. The default is no place.
    #[doc(hidden)]
    type Id: Default + PartialEq + fmt::Debug;
    /// Wakers that were taken out of the list.
    #[doc(hidden)]
    type Taken: IntoIterator<Item = Waker>;

    /// Registers a call at the end, or at its present place. Returns its previous waker. O(places)
    /// in a fixed list, O(log n) in a growable one, like every method except the last.
    #[doc(hidden)]
    fn register(
        &mut self,
        id: &mut Self::Id,
        waits_for: WaitsFor,
        waker: Waker,
    ) -> Result<Option<Waker>, Waker>;

    /// Returns the waker of a call. `None` if the call was woken or is not registered.
    #[doc(hidden)]
    fn registered(&mut self, id: &Self::Id) -> Option<&mut Waker>;

    /// Removes a call, and returns its waker unless the call was woken.
    #[doc(hidden)]
    fn remove(&mut self, id: &mut Self::Id) -> Option<Waker>;

    /// Takes the waker of the first call that waits for a key. Like [`take`](Self::take) of
    /// [`Wake::ONE`], the most frequent wake.
    #[doc(hidden)]
    fn take_first(&mut self) -> Option<Waker>;

    /// Takes the wakers that a wake names. O(n).
    #[doc(hidden)]
    fn take(&mut self, wake: Wake) -> Self::Taken;
}

/// What a call waits for.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitsFor {
    Key,
    Room,
    /// A state of the queue, or of a key.
    State,
}

impl WaitsFor {
    /// The wake for such a call.
    const fn wake(self) -> Wake {
        match self {
            Self::Key => Wake::ONE,
            Self::Room => Wake::ROOM,
            Self::State => Wake::WATCHERS,
        }
    }
}

/// A [`WaitList`] with `N` places, without an allocator. `N` is less than 65,535.
#[derive(Debug)]
pub struct FixedWaitList<const N: usize> {
    waiters: Vec<Waiter, N>,
    /// Numbers the places.
    last_id: u16,
}

#[derive(Debug)]
struct Waiter {
    /// `None` for a call that was woken and has not looked yet.
    waker: Option<Waker>,
    id: u16,
    waits_for: WaitsFor,
}

impl<const N: usize> FixedWaitList<N> {
    /// Creates an empty list. O(1).
    pub const fn new() -> Self {
        const {
            assert!(N < u16::MAX as usize, "a list has fewer than 65,535 places");
        }
        Self {
            waiters: Vec::new(),
            last_id: 0,
        }
    }

    fn at(&mut self, id: &Option<u16>) -> Option<&mut Waiter> {
        let id = (*id)?;
        self.waiters.iter_mut().find(|waiter| waiter.id == id)
    }

    /// Returns an unused number. There are more numbers than places, so this tries at most `N + 1`.
    fn vacant_id(&mut self) -> u16 {
        loop {
            self.last_id = self.last_id.wrapping_add(1);
            let id = self.last_id;
            if self.waiters.iter().all(|waiter| waiter.id != id) {
                return id;
            }
        }
    }
}

impl<const N: usize> Default for FixedWaitList<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Sealed for FixedWaitList<N> {}

impl<const N: usize> WaitList for FixedWaitList<N> {
    // The waker of a task in a `static` is copied, not counted.
    const CLONES_FIRST: bool = true;
    const PLACES: usize = N;
    type Id = Option<u16>;
    type Taken = Vec<Waker, N>;

    fn register(
        &mut self,
        place: &mut Option<u16>,
        waits_for: WaitsFor,
        waker: Waker,
    ) -> Result<Option<Waker>, Waker> {
        if let Some(waiter) = self.at(place) {
            return Ok(waiter.waker.replace(waker));
        }
        if self.waiters.is_full() {
            return Err(waker);
        }
        let id = self.vacant_id();
        let waiter = Waiter {
            waker: Some(waker),
            id,
            waits_for,
        };
        // This cannot fail, because the list is not full.
        if self.waiters.push(waiter).is_ok() {
            *place = Some(id);
        }
        Ok(None)
    }

    fn registered(&mut self, place: &Option<u16>) -> Option<&mut Waker> {
        self.at(place)?.waker.as_mut()
    }

    fn remove(&mut self, place: &mut Option<u16>) -> Option<Waker> {
        let id = place.take()?;
        let mut waiters = self.waiters.iter_mut();
        let mut leaving = waiters.find(|waiter| waiter.id == id)?;
        // The others keep their order. `Vec::remove` needs `memmove`, which is 1.5 KB of flash.
        for next in waiters {
            mem::swap(leaving, next);
            leaving = next;
        }
        self.waiters.pop()?.waker
    }

    fn take_first(&mut self) -> Option<Waker> {
        let mut waiters = self.waiters.iter_mut();
        waiters.find_map(|waiter| match waiter.waits_for {
            WaitsFor::Key => waiter.waker.take(),
            WaitsFor::Room | WaitsFor::State => None,
        })
    }

    fn take(&mut self, mut wake: Wake) -> Vec<Waker, N> {
        let mut taken = Vec::new();
        for waiter in &mut self.waiters {
            let own = waiter.waits_for.wake();
            if wake.contains(own)
                && let Some(waker) = waiter.waker.take()
            {
                // This cannot fail, because at most as many are taken as there are places.
                let _ = taken.push(waker);
                wake = wake.without_first(own);
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task;

    use super::*;

    struct Bell(AtomicBool);

    impl task::Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// Which calls `wake` wakes: of two for a key, two for room and two for a state.
    fn woken<W: WaitList>(mut list: W, wake: Wake) -> [bool; 6] {
        use WaitsFor::{Key, Room, State};
        let bells = [Key, Key, Room, Room, State, State].map(|waits_for| {
            let bell = Arc::new(Bell(AtomicBool::new(false)));
            let waker = Waker::from(Arc::clone(&bell));
            let mut place = W::Id::default();
            assert!(list.register(&mut place, waits_for, waker).is_ok());
            bell
        });
        list.take(wake).into_iter().for_each(Waker::wake);
        bells.map(|bell| bell.0.load(Ordering::Relaxed))
    }

    #[test]
    fn a_wake_reaches_the_calls_that_it_names_and_no_other() {
        let (one, room, watchers) = (Wake::ONE, Wake::ROOM, Wake::WATCHERS);
        for (wake, expected) in [
            (Wake::NONE, "......"),
            (one, "k....."),
            (room, "..r..."),
            (watchers, "....ss"),
            (one | room, "k.r..."),
            (one | watchers, "k...ss"),
            (room | watchers, "..r.ss"),
            (one | room | watchers, "k.r.ss"),
            (Wake::ALL, "kkrrss"),
        ] {
            let expected: std::vec::Vec<_> = expected.chars().map(|c| c != '.').collect();
            let fixed = woken(FixedWaitList::<6>::new(), wake);
            assert_eq!(fixed, expected[..], "{wake:?} of a fixed list");
            #[cfg(feature = "alloc")]
            {
                let growable = woken(GrowableWaitList::new(), wake);
                assert_eq!(growable, expected[..], "{wake:?} of a growable list");
            }
        }
    }
}
