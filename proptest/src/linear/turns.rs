//! Threads of which one runs at a time. Wherever one would take a lock, dice say who goes on.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use requeue_core::Lock;

/// Threads that take turns. The same seed gives the same turns.
#[derive(Debug)]
pub(super) struct Turns {
    state: Mutex<State>,
    /// Where each thread waits for its turn.
    calls: Vec<Condvar>,
}

#[derive(Debug)]
struct State {
    /// Whose turn it is.
    turn: usize,
    /// Who has not ended.
    present: Vec<usize>,
    dice: u64,
    /// How many turns there may be yet.
    left: u32,
}

/// Many times what a program takes whose threads wait for nothing that does not come.
const TURNS_MAX: u32 = 100_000;

thread_local! {
    static SEAT: RefCell<Option<Seat>> = const { RefCell::new(None) };
}

/// A thread's place among those that take turns.
#[derive(Clone, Debug)]
struct Seat {
    turns: Arc<Turns>,
    thread: usize,
}

impl Turns {
    pub(super) fn new(threads: usize, seed: u64) -> Arc<Self> {
        let mut state = State {
            turn: 0,
            present: (0..threads).collect(),
            dice: seed,
            left: TURNS_MAX,
        };
        state.turn = state.draw(None);
        Arc::new(Self {
            state: Mutex::new(state),
            calls: (0..threads).map(|_| Condvar::new()).collect(),
        })
    }

    /// Does what `thread` has to do, in its turns.
    pub(super) fn take_part<T>(self: &Arc<Self>, thread: usize, work: impl FnOnce() -> T) -> T {
        let seat = Seat {
            turns: Arc::clone(self),
            thread,
        };
        drop(self.wait(self.state(), thread));
        SEAT.set(Some(seat));
        let _leaves = Leaves;
        work()
    }

    fn wait<'t>(&'t self, state: MutexGuard<'t, State>, thread: usize) -> MutexGuard<'t, State> {
        let is_not_mine = |state: &mut State| state.turn != thread;
        let state = self.calls[thread].wait_while(state, is_not_mine);
        state.unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// One of those who are present, and not `but` where there is another.
    fn draw(&mut self, but: Option<usize>) -> usize {
        // SplitMix64, Steele et al. 2014.
        self.dice = self.dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut dice = self.dice;
        dice = (dice ^ (dice >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        dice = (dice ^ (dice >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        dice ^= dice >> 31;
        let others = self.present.iter().filter(|thread| Some(**thread) != but);
        let others: Vec<usize> = others.copied().collect();
        let index = (dice as usize).checked_rem(others.len());
        index.map_or(but.unwrap_or(0), |index| others[index])
    }
}

/// Lets dice say who goes on; another than this thread, if it has nothing to do.
///
/// # Panics
///
/// If there have been so many turns that somebody must be waiting for nothing.
pub(super) fn pass(is_idle: bool) {
    let Some(Seat { turns, thread }) = SEAT.with_borrow(Clone::clone) else {
        return;
    };
    let mut state = turns.state();
    state.left = state.left.saturating_sub(1);
    let is_endless = state.left == 0;
    if !is_endless {
        state.turn = state.draw(is_idle.then_some(thread));
        if state.turn != thread {
            turns.calls[state.turn].notify_one();
            state = turns.wait(state, thread);
        }
    }
    drop(state);
    assert!(!is_endless, "somebody waits for nothing");
}

/// Dropped when a thread has ended, be it by a panic.
struct Leaves;

impl Drop for Leaves {
    fn drop(&mut self) {
        let Some(Seat { turns, thread }) = SEAT.take() else {
            return;
        };
        let mut state = turns.state();
        state.present.retain(|other| *other != thread);
        if !state.present.is_empty() {
            state.turn = state.draw(None);
            turns.calls[state.turn].notify_one();
        }
    }
}

/// A lock of threads that take turns: before it is taken, others may come.
#[derive(Debug)]
pub(super) struct InTurn<T>(Mutex<T>);

impl<T> InTurn<T> {
    pub(super) const fn new(state: T) -> Self {
        Self(Mutex::new(state))
    }
}

impl<T> Lock for InTurn<T> {
    type State = T;

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        pass(false);
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
