//! The same by hand: a map of heapless, and a deque of keys.
//!
//! It coalesces, keeps one key from running twice at once, delays, and counts failures. It has no
//! tickets, no drain, no timer, and no order among equal delays. Finding a delay is a walk over all
//! keys.

use core::cell::RefCell;

use critical_section::Mutex;
use heapless::Deque;
use heapless::index_map::FnvIndexMap;

#[derive(Clone, Copy, Default)]
struct Known {
    is_ready: bool,
    is_active: bool,
    failures: u8,
    due: Option<u64>,
}

/// A queue of up to `N` keys, a power of two.
pub struct ByHand<const N: usize> {
    state: Mutex<RefCell<State<N>>>,
}

struct State<const N: usize> {
    known: FnvIndexMap<u16, Known, N>,
    ready: Deque<u16, N>,
}

impl<const N: usize> ByHand<N> {
    pub const fn new() -> Self {
        let state = State {
            known: FnvIndexMap::new(),
            ready: Deque::new(),
        };
        Self {
            state: Mutex::new(RefCell::new(state)),
        }
    }

    pub fn add(&self, key: u16) -> Result<(), u16> {
        self.with(|state| state.add(key))
    }

    pub fn add_at(&self, key: u16, due: u64) -> Result<(), u16> {
        self.with(|state| {
            let known = state.known(key)?;
            known.due = Some(known.due.map_or(due, |before| before.min(due)));
            Ok(())
        })
    }

    pub fn get(&self, now: u64) -> Option<u16> {
        self.with(|state| {
            state.release(now);
            let key = state.ready.pop_front()?;
            let known = state.known.get_mut(&key)?;
            known.is_ready = false;
            known.is_active = true;
            Some(key)
        })
    }

    pub fn done(&self, key: u16) {
        self.with(|state| {
            let Some(known) = state.known.get_mut(&key) else {
                return;
            };
            known.is_active = false;
            known.failures = 0;
            if known.is_ready {
                let _ = state.ready.push_back(key);
            } else if known.due.is_none() {
                state.known.remove(&key);
            }
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut State<N>) -> T) -> T {
        critical_section::with(|section| work(&mut self.state.borrow_ref_mut(section)))
    }
}

impl<const N: usize> State<N> {
    fn known(&mut self, key: u16) -> Result<&mut Known, u16> {
        self.known.entry(key).or_default().map_err(|_| key)
    }

    fn add(&mut self, key: u16) -> Result<(), u16> {
        let known = self.known(key)?;
        if !known.is_ready {
            known.is_ready = true;
            if !known.is_active {
                self.ready.push_back(key)?;
            }
        }
        Ok(())
    }

    fn release(&mut self, now: u64) {
        loop {
            let due = self
                .known
                .iter_mut()
                .find_map(|(key, known)| known.due.take_if(|due| *due <= now).map(|_| *key));
            match due {
                Some(key) => drop(self.add(key)),
                None => return,
            }
        }
    }
}
