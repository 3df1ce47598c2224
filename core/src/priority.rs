//! Priority levels: how many there are, and what is kept of them beside each key.
//!
//! A queue has one level unless its storage says otherwise, and then nothing of this takes room or
//! time: the marks are `()` and the list of ready keys is a single one.

use core::fmt::Debug;

use crate::id::Index;
#[cfg(feature = "alloc")]
use crate::lists::Link;
use crate::lists::Lists;
use crate::lists::leveled::LeveledLists;
use crate::slots::fixed::FixedLists;
#[cfg(feature = "alloc")]
use crate::slots::growable::GrowableLists;

/// How many priority levels a queue has: [`NoPriorities`] or [`Levels`]. The trait is sealed.
///
/// # Examples
///
/// ```
/// use requeue_core::{Levels, NoPriorities, Priorities};
///
/// assert_eq!(<NoPriorities as Priorities>::LEVELS, 1);
/// assert_eq!(<Levels<4> as Priorities>::LEVELS, 4);
/// ```
pub trait Priorities: sealed::Sealed {
    /// The number of levels. The lowest is 0, where keys are unless somebody asks for more.
    const LEVELS: u8;

    #[doc(hidden)]
    type Marks: Marks;
    #[doc(hidden)]
    type Level: Level;
    #[doc(hidden)]
    type FixedLists<const N: usize, I: Index>: Lists;
    #[cfg(feature = "alloc")]
    #[doc(hidden)]
    type GrowableLists: Lists;
}

/// One level for all keys: no room, no code.
///
/// # Examples
///
/// ```
/// use requeue_core::{Fixed, NoLimit, NoPriorities, Queue};
///
/// // What a queue has unless it is told otherwise.
/// let queue: Queue<u16, Fixed<8, u8, NoPriorities>, NoLimit> = Queue::new(NoLimit);
/// let same: Queue<u16, Fixed<8>, NoLimit> = queue;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NoPriorities;

/// `P` levels, from 0, the lowest, to `P - 1`; at most 32.
///
/// The rules are those of controller-runtime's priority queue:
///
/// - The highest level that has a ready key is served first, and within a level the key that became
///   ready first. Nothing keeps a busy level from starving those below it.
/// - An add never lowers a key's level. One that raises it sends the key to the end of the higher
///   level.
/// - A delayed key has its level with it, and joins the end of it when its deadline comes.
/// - A key that is retried comes back at the level of its run.
/// - A key that is added while it is in work takes its place when its run is completed.
///
/// [`add_with`](crate::Queue::add_with) names a level; every other add asks for 0.
///
/// # Cost
///
/// Three bytes per key and two lists' ends per level. Every operation costs what it costs without
/// levels; the highest level that has a ready key is found in one word of bits.
///
/// # Examples
///
/// ```
/// use requeue_core::{AddOptions, Fixed, Instant, Levels, NoLimit, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Fixed<16, u8, Levels<2>>, NoLimit> = Queue::new(NoLimit);
///
/// // A controller starts: it lists what there is, and meanwhile somebody makes a change.
/// let _ = queue.add_many(["node-1", "node-2", "node-3"], now, |_| {});
/// let urgent = AddOptions { priority: Some(1), ..AddOptions::new() };
/// queue.add_with("node-3", urgent, now).value.unwrap();
///
/// let work = queue.try_get(now).value.unwrap();
/// assert_eq!((work.key, work.priority()), ("node-3", 1));
/// # queue.done(work.ticket, now).value.unwrap();
/// ```
///
/// ```compile_fail
/// use requeue_core::{Fixed, Levels, NoLimit, Queue};
///
/// let too_many: Queue<u16, Fixed<8, u8, Levels<33>>, NoLimit> = Queue::new(NoLimit);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Levels<const P: usize>;

impl sealed::Sealed for NoPriorities {}

impl Priorities for NoPriorities {
    const LEVELS: u8 = 1;

    type Marks = ();
    type Level = ();
    type FixedLists<const N: usize, I: Index> = FixedLists<N, I>;
    #[cfg(feature = "alloc")]
    type GrowableLists = GrowableLists;
}

impl<const P: usize> sealed::Sealed for Levels<P> {}

impl<const P: usize> Priorities for Levels<P> {
    const LEVELS: u8 = P as u8;

    type Marks = ThreeMarks;
    type Level = u8;
    type FixedLists<const N: usize, I: Index> = LeveledLists<[crate::lists::Link<I>; N], I, P>;
    #[cfg(feature = "alloc")]
    type GrowableLists = LeveledLists<alloc::vec::Vec<Link<u32>>, u32, P>;
}

/// The levels of one key. All are 0 where there is one level.
///
/// A key can be in work, ready to be worked on once more, and delayed, all at a time: three levels.
#[doc(hidden)]
pub trait Marks: Copy + Debug + Default {
    /// At which level the key is ready, or will be when its run ends.
    fn queued(self) -> u8;
    fn set_queued(&mut self, level: u8);
    /// The level that its deadline brings.
    fn delayed(self) -> u8;
    fn set_delayed(&mut self, level: u8);
    /// The level of its run.
    fn running(self) -> u8;
    fn set_running(&mut self, level: u8);
}

impl Marks for () {
    #[inline]
    fn queued(self) -> u8 {
        0
    }

    #[inline]
    fn set_queued(&mut self, _: u8) {}

    #[inline]
    fn delayed(self) -> u8 {
        0
    }

    #[inline]
    fn set_delayed(&mut self, _: u8) {}

    #[inline]
    fn running(self) -> u8 {
        0
    }

    #[inline]
    fn set_running(&mut self, _: u8) {}
}

/// What is kept of each key where there are levels.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreeMarks {
    queued: u8,
    delayed: u8,
    running: u8,
}

impl Marks for ThreeMarks {
    #[inline]
    fn queued(self) -> u8 {
        self.queued
    }

    #[inline]
    fn set_queued(&mut self, level: u8) {
        self.queued = level;
    }

    #[inline]
    fn delayed(self) -> u8 {
        self.delayed
    }

    #[inline]
    fn set_delayed(&mut self, level: u8) {
        self.delayed = level;
    }

    #[inline]
    fn running(self) -> u8 {
        self.running
    }

    #[inline]
    fn set_running(&mut self, level: u8) {
        self.running = level;
    }
}

/// A level as work carries it: `u8`, or `()` where there is one.
#[doc(hidden)]
pub trait Level: Copy + Debug + PartialEq + Send + Sync + 'static {
    fn new(level: u8) -> Self;
    fn get(self) -> u8;
}

impl Level for () {
    #[inline]
    fn new(_: u8) -> Self {}

    #[inline]
    fn get(self) -> u8 {
        0
    }
}

impl Level for u8 {
    #[inline]
    fn new(level: u8) -> Self {
        level
    }

    #[inline]
    fn get(self) -> u8 {
        self
    }
}

mod sealed {
    pub trait Sealed {}
}
