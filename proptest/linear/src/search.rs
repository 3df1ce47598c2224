//! The search for an order.

use std::collections::HashSet;
use std::rc::Rc;

use crate::{CallId, History, Specification};

/// Why the search has not found an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stuck {
    /// There is none.
    Inexplicable,
    /// There were too many states to look at.
    Undecided,
}

/// How far the search has come: the calls of each thread that have happened, and the state that
/// they have led to.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Place<S> {
    happened: Vec<usize>,
    state: S,
}

/// A place, and what has not been tried from there.
struct Node<S> {
    place: Rc<Place<S>>,
    moves: Vec<Move>,
    /// How many calls have taken effect.
    effects: usize,
}

/// What may happen next.
#[derive(Clone, Copy)]
struct Move {
    thread: usize,
    /// The call takes effect; otherwise it never returned, and never does.
    takes_effect: bool,
}

/// An order that explains every response.
pub(crate) fn search<S: Specification>(
    initial: &S,
    history: &History<S::Request, S::Response>,
    states_max: usize,
) -> Result<Vec<CallId>, Stuck> {
    let deadlines = deadlines(history);
    let mut seen = HashSet::new();
    let mut order: Vec<CallId> = Vec::new();
    let start = Rc::new(Place {
        happened: vec![0; history.threads.len()],
        state: initial.clone(),
    });
    seen.insert(Rc::clone(&start));
    let mut path = vec![Node {
        moves: moves(history, &deadlines, &start.happened),
        place: start,
        effects: 0,
    }];
    while let Some(node) = path.last_mut() {
        order.truncate(node.effects);
        if is_complete(history, &node.place.happened) {
            return Ok(order);
        }
        let Some(next) = node.moves.pop() else {
            path.pop();
            continue;
        };
        let Some(place) = go(history, &node.place, next) else {
            continue;
        };
        let place = Rc::new(place);
        if !seen.insert(Rc::clone(&place)) {
            continue;
        }
        if seen.len() > states_max {
            return Err(Stuck::Undecided);
        }
        if next.takes_effect {
            let thread = next.thread;
            let index = place.happened[thread] - 1;
            order.push(CallId { thread, index });
        }
        path.push(Node {
            moves: moves(history, &deadlines, &place.happened),
            place,
            effects: order.len(),
        });
    }
    Err(Stuck::Inexplicable)
}

/// For each call, when the first of it and its successors in its thread returned.
fn deadlines<O, A>(history: &History<O, A>) -> Vec<Vec<u64>> {
    let of_thread = |calls: &Vec<crate::Call<O, A>>| {
        let mut first = u64::MAX;
        let mut deadlines: Vec<u64> = calls
            .iter()
            .rev()
            .map(|call| {
                first = first.min(call.returned.unwrap_or(u64::MAX));
                first
            })
            .collect();
        deadlines.reverse();
        deadlines
    };
    history.threads.iter().map(of_thread).collect()
}

/// Of each thread the next call, if it was called before any that has not happened returned.
/// The call that returned first is tried first, and so stands last.
fn moves<O, A>(history: &History<O, A>, deadlines: &[Vec<u64>], happened: &[usize]) -> Vec<Move> {
    let deadline = |thread: usize| deadlines[thread].get(happened[thread]).copied();
    let threads = 0..happened.len();
    let first = threads.clone().filter_map(deadline).min();
    let first = first.unwrap_or(u64::MAX);
    let mut moves = Vec::new();
    let mut ready: Vec<usize> = threads
        .filter(|&thread| {
            let next = history.threads[thread].get(happened[thread]);
            next.is_some_and(|call| call.called < first)
        })
        .collect();
    ready.sort_by_key(|&thread| std::cmp::Reverse(deadline(thread)));
    for thread in ready {
        if history.threads[thread][happened[thread]].returned.is_none() {
            let takes_effect = false;
            moves.push(Move {
                thread,
                takes_effect,
            });
        }
        let takes_effect = true;
        moves.push(Move {
            thread,
            takes_effect,
        });
    }
    moves
}

fn go<S: Specification>(
    history: &History<S::Request, S::Response>,
    from: &Place<S>,
    next: Move,
) -> Option<Place<S>> {
    let mut place = from.clone();
    let call = &history.threads[next.thread][place.happened[next.thread]];
    place.happened[next.thread] += 1;
    let fits = !next.takes_effect || place.state.step(&call.request, call.response.as_ref());
    fits.then_some(place)
}

/// Whether every call that returned has happened.
fn is_complete<O, A>(history: &History<O, A>, happened: &[usize]) -> bool {
    history
        .threads
        .iter()
        .zip(happened)
        .all(|(calls, &happened)| calls[happened..].iter().all(|call| call.returned.is_none()))
}
