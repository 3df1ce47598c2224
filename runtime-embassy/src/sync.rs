//! The lock and the waker of tasks on a microcontroller: embassy-sync's blocking mutex, and a line
//! of tasks that wait.
//!
//! Everything here that synchronises comes through this file, so that another library can be put in
//! its place. The mutex kind `R` is the firmware's choice: a critical section where interrupts add
//! keys, nothing at all where one executor has the queue for itself.
//!
//! # Order of locks
//!
//! The queue's lock comes first, the line's second. A task is woken under neither: its waker is
//! foreign code. It is cloned and dropped under both, which for an executor's tasks is to copy and
//! to forget a pointer.

use core::cell::RefCell;
use core::fmt;
use core::task;

use embassy_sync::blocking_mutex::Mutex;
use embassy_sync::blocking_mutex::raw::RawMutex;
use heapless::Vec;
use requeue_core::{Lock, Waker};

/// A blocking [`Mutex`] as core's [`Lock`]. [`Shared`](crate::Shared) has an example.
///
/// # Panics
///
/// If a key's own code (`Hash`, `Eq`, `Clone`, `Drop`) touches the queue that calls it.
#[derive(Debug)]
pub struct Locked<R: RawMutex, T>(Mutex<R, RefCell<T>>);

impl<R: RawMutex, T> Locked<R, T> {
    pub(crate) const fn new(state: T) -> Self {
        Self(Mutex::new(RefCell::new(state)))
    }
}

impl<R: RawMutex, T> Lock for Locked<R, T> {
    type State = T;

    #[inline]
    fn with<X>(&self, work: impl FnOnce(&mut T) -> X) -> X {
        self.0.lock(|state| work(&mut state.borrow_mut()))
    }
}

/// More calls wait for one queue than it has places for. The queue is as it was.
///
/// The number of places is a parameter of [`WorkQueue`](crate::WorkQueue). A call has its place
/// from the moment when it finds that it has to wait until it ends, whether it waits for a key or
/// for the drain.
///
/// # Examples
///
/// ```
/// use requeue_embassy::core::{NoLimit, NoMetrics};
/// use requeue_embassy::raw::NoopRawMutex;
/// use requeue_embassy::{Drained, TooManyWaiters, WorkQueue};
///
/// // Nobody may wait for this queue.
/// let queue: WorkQueue<NoopRawMutex, u16, 8, NoLimit, 0> = WorkQueue::new(NoLimit);
/// queue.add(7).unwrap();
/// let key = embassy_futures::block_on(queue.get()).unwrap();
/// let drained = embassy_futures::block_on(queue.shut_down_with_drain());
/// assert_eq!(drained, Err(TooManyWaiters));
///
/// key.forget().unwrap();
/// let drained = embassy_futures::block_on(queue.shut_down_with_drain());
/// assert_eq!(drained, Ok(Drained::Complete), "there is nothing to wait for");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct TooManyWaiters;

impl fmt::Display for TooManyWaiters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("more calls wait for the queue than it has places for")
    }
}

impl core::error::Error for TooManyWaiters {}

/// Wakes tasks: those that wait for a key, and those that wait for the drain. Part of
/// [`Shared`](crate::Shared).
#[derive(Debug)]
pub struct Wakers<R: RawMutex, const WAITERS: usize> {
    line: Locked<R, Line<WAITERS>>,
}

impl<R: RawMutex, const WAITERS: usize> Wakers<R, WAITERS> {
    pub(crate) const fn new() -> Self {
        Self {
            line: Locked::new(Line::new()),
        }
    }

    /// Stands in line to be woken by `waker`: at the end the first time, then at the same place.
    pub(crate) fn stand(
        &self,
        place: &mut Place,
        waits: For,
        waker: &task::Waker,
    ) -> Result<(), TooManyWaiters> {
        self.line.with(|line| line.stand(place, waits, waker))
    }

    /// Lets another waker stand at the place of one that has not been woken. Answers whether there
    /// was one.
    pub(crate) fn renew(&self, place: &Place, waker: &task::Waker) -> bool {
        self.line.with(|line| line.renew(place, waker))
    }

    /// Steps out of the line and gives the place up.
    pub(crate) fn step_out(&self, place: &mut Place) {
        // Most calls never had to wait, and the lock is not for nothing.
        if let Some(id) = place.0.take() {
            self.line.with(|line| line.remove(id));
        }
    }
}

impl<R: RawMutex, const WAITERS: usize> Waker for Wakers<R, WAITERS> {
    fn wake_one(&self) {
        if let Some(waker) = self.line.with(Line::take_first) {
            waker.wake();
        }
    }

    fn wake_all(&self) {
        for waker in self.line.with(Line::take_all) {
            waker.wake();
        }
    }

    /// Always: a task that is cancelled drops its guards without a panic, so that a guard which is
    /// dropped cannot tell whether its work is over. Only being told counts.
    fn is_abandoned(&self) -> bool {
        true
    }
}

/// Where somebody stands in a [`Line`]. It stays theirs when they are woken, so that whoever finds
/// nothing goes back to where they stood, and finds no place lost.
#[derive(Debug)]
pub(crate) struct Place(Option<u16>);

impl Place {
    /// Nowhere yet.
    pub(crate) const NONE: Self = Self(None);
}

/// What somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    Key,
    Drain,
}

/// Calls that wait, in the order in which they came. Every step is O(`WAITERS`).
#[derive(Debug)]
struct Line<const WAITERS: usize> {
    taken: Vec<Standing, WAITERS>,
    /// Numbers the places.
    next: u16,
}

#[derive(Debug)]
struct Standing {
    /// Absent in one who was woken and has not looked yet.
    waker: Option<task::Waker>,
    id: u16,
    waits: For,
}

impl<const WAITERS: usize> Line<WAITERS> {
    const fn new() -> Self {
        const {
            assert!(
                WAITERS < u16::MAX as usize,
                "the places are numbered in 16 bits"
            );
        }
        Self {
            taken: Vec::new(),
            next: 0,
        }
    }

    fn stand(
        &mut self,
        place: &mut Place,
        waits: For,
        waker: &task::Waker,
    ) -> Result<(), TooManyWaiters> {
        if let Some(present) = self.at(place) {
            renew(&mut present.waker, waker);
            return Ok(());
        }
        let id = self.vacant();
        let waker = Some(waker.clone());
        let standing = Standing { waker, id, waits };
        self.taken.push(standing).map_err(|_| TooManyWaiters)?;
        place.0 = Some(id);
        Ok(())
    }

    fn renew(&mut self, place: &Place, waker: &task::Waker) -> bool {
        match self.at(place) {
            Some(Standing { waker: present, .. }) if present.is_some() => {
                renew(present, waker);
                true
            }
            _ => false,
        }
    }

    fn remove(&mut self, id: u16) {
        self.taken.retain(|standing| standing.id != id);
    }

    fn take_first(&mut self) -> Option<task::Waker> {
        let mut getters = self.taken.iter_mut().filter(|one| one.waits == For::Key);
        getters.find_map(|standing| standing.waker.take())
    }

    fn take_all(&mut self) -> Vec<task::Waker, WAITERS> {
        let wakers = self.taken.iter_mut().map(|one| one.waker.take());
        wakers.flatten().collect()
    }

    fn at(&mut self, place: &Place) -> Option<&mut Standing> {
        let id = place.0?;
        self.taken.iter_mut().find(|standing| standing.id == id)
    }

    /// A number that nobody has. There are more numbers than places, so one is soon found.
    fn vacant(&mut self) -> u16 {
        loop {
            self.next = self.next.wrapping_add(1);
            let id = self.next;
            if self.taken.iter().all(|standing| standing.id != id) {
                return id;
            }
        }
    }
}

/// Puts a waker in the place of another, unless both wake the same task.
fn renew(present: &mut Option<task::Waker>, waker: &task::Waker) {
    let is_same = |present: &task::Waker| present.will_wake(waker);
    if !present.as_ref().is_some_and(is_same) {
        *present = Some(waker.clone());
    }
}
