//! Finds the calls of a history that contradict each other.
//!
//! Without a call the rest may make no sense, such as a key that was handed out and never added. So
//! calls are kept, and what is known of them is reduced, which can only help to explain a history.
//! First the end of the history is cut off. Then, from the last call to the first, the search
//! forgets whether the call took effect, or at least what it returned, as long as the rest still
//! has no order.

use crate::search::{Stuck, search};
use crate::{CallId, History, Specification};

/// The beginning of a history without an order, and the calls that suffice for that.
pub(crate) struct Core {
    /// What happened from then on does not matter.
    pub(crate) end: u64,
    /// The calls that contradict each other.
    pub(crate) calls: Vec<CallId>,
}

/// Finds the core of a history without an order.
pub(crate) fn minimise<S: Specification>(
    initial: &S,
    history: &History<S::Request, S::Response>,
    states_max: usize,
) -> Core {
    let fails = |history: &History<S::Request, S::Response>| {
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
        let returned = call.returned.take();
        let response = call.response.take();
        if returned.is_none() || fails(&doubted) {
            history = doubted;
            continue;
        }
        calls.push(id);
        doubted.threads[id.thread][id.index].returned = returned;
        if response.is_some() && fails(&doubted) {
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
        let returned = call.returned.map(|at| at + 1);
        [Some(call.called + 1), returned]
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
pub(crate) fn up_to<O: Clone, A: Clone>(history: &History<O, A>, end: u64) -> History<O, A> {
    let mut history = history.clone();
    for calls in &mut history.threads {
        calls.retain(|call| call.called < end);
        for call in calls {
            if call.returned.is_some_and(|returned| returned >= end) {
                call.returned = None;
                call.response = None;
            }
        }
    }
    history
}
