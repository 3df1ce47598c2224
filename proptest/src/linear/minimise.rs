//! What of a history is to blame.
//!
//! To leave a call out could make nonsense of the rest: a key that was handed out and never added.
//! So calls are not left out but believed less, which can only help to explain a history. First the
//! end of the history is cut off; then of each call, from the last to the first, it is forgotten
//! whether it took effect, or at least what it has answered, as long as the rest still cannot be
//! explained. No call can be believed less than it is in the end.

use super::search::{Stuck, search};
use super::{CallId, History, Specification};

/// The beginning of a history that nothing explains, and the calls that suffice for that.
pub(super) struct Core {
    /// Nothing that happened from then on matters.
    pub(super) end: u64,
    /// The calls that contradict each other.
    pub(super) calls: Vec<CallId>,
}

/// Finds the core of a history that nothing explains.
pub(super) fn minimise<S: Specification>(
    initial: &S,
    history: &History<S::Op, S::Answer>,
    states_max: usize,
) -> Core {
    let fails = |history: &History<S::Op, S::Answer>| {
        search(initial, history, states_max) == Err(Stuck::Inexplicable)
    };
    let end = first_end(history, fails);
    let mut history = up_to(history, end);
    let mut ids: Vec<CallId> = history.calls().map(|(id, _)| id).collect();
    ids.sort_by_key(|id| std::cmp::Reverse(history.threads[id.thread][id.index].called));
    let mut calls = Vec::new();
    for id in ids {
        let mut doubted = history.clone();
        let call = &mut doubted.threads[id.thread][id.index];
        let answered = call.answered.take();
        let answer = call.answer.take();
        if answered.is_none() || fails(&doubted) {
            history = doubted;
            continue;
        }
        calls.push(id);
        doubted.threads[id.thread][id.index].answered = answered;
        if answer.is_some() && fails(&doubted) {
            history = doubted;
        }
    }
    Core { end, calls }
}

/// The end of the shortest beginning that fails. A longer one fails, too.
fn first_end<O: Clone, A: Clone>(
    history: &History<O, A>,
    fails: impl Fn(&History<O, A>) -> bool,
) -> u64 {
    let events = history.calls().flat_map(|(_, call)| {
        let answered = call.answered.map(|at| at + 1);
        [Some(call.called + 1), answered]
    });
    let (mut passes, mut end) = (0, events.flatten().max().unwrap_or(0));
    while passes + 1 < end {
        let middle = passes + (end - passes) / 2;
        if fails(&up_to(history, middle)) {
            end = middle;
        } else {
            passes = middle;
        }
    }
    end
}

/// What had happened before `end`.
pub(super) fn up_to<O: Clone, A: Clone>(history: &History<O, A>, end: u64) -> History<O, A> {
    let mut history = history.clone();
    for calls in &mut history.threads {
        calls.retain(|call| call.called < end);
        for call in calls {
            if call.answered.is_some_and(|answered| answered >= end) {
                call.answered = None;
                call.answer = None;
            }
        }
    }
    history
}
