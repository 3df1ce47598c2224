//! Every operation, as core's queue does it and as a queue behind a lock does.

use std::panic::resume_unwind;

use requeue_core::Finished;
use requeue_core::binding::{Host, Lock, Shared};

use super::direct::figures;
use super::held::Held;
use super::{Answer, Home, Key, Kind, Operation, Scheduled, in_order, map_next, panicking};
use crate::limiter::AnyLimiter;

/// Does an operation. `call` does it to a session, or to the queue behind the lock, which has the
/// same methods, and is told whether it needs the time. `session` does it to a session in any case.
/// `look` does it to the state machine, or to the queue behind the lock, and `machine` to the state
/// machine in any case.
macro_rules! answer {
    ($operation:expr, $held:expr, <$kind:ty, $home:ty>, $call:ident, $session:ident, $look:ident, $machine:ident) => {
        match *$operation {
            Operation::Add(key) => Answer::Added($call!(false, |queue| queue.add(key))),
            Operation::AddAfter(key, delay) => {
                Answer::Added($call!(true, |queue| queue.add_after(key, delay)))
            }
            Operation::AddAt(key, due) => {
                Answer::Added($call!(true, |queue| queue.add_at(key, due)))
            }
            Operation::AddRateLimited(key) => {
                let added = $call!(true, |queue| queue.add_rate_limited(key));
                Answer::Scheduled(added.map(Scheduled::from))
            }
            Operation::AddWith(key, options) => {
                let added = $call!(options.needs_time(), |queue| queue.add_with(key, options));
                Answer::Scheduled(added.map(Scheduled::from))
            }
            Operation::AddDisplacing(key, options) => {
                let timed = options.needs_time();
                let added = $call!(timed, |queue| queue.add_displacing(key, options));
                Answer::Displaced(added.map(|(scheduled, left)| (scheduled.into(), left)))
            }
            Operation::AddMany(ref keys) => {
                let (keys, mut rejected) = (keys.iter().copied(), Vec::new());
                let many = $call!(false, |queue| queue
                    .add_many(keys, |key| rejected.push(key)));
                Answer::AddedMany(many, rejected)
            }
            Operation::Restore(left) => {
                Answer::Restored($call!(!left.left.is_zero(), |queue| queue.restore(left)))
            }
            Operation::Forget(key) => {
                Answer::Count($call!(true, |queue| queue.forget(&key)) as usize)
            }
            Operation::CancelKey(key) => Answer::State($call!(false, |queue| queue.cancel(&key))),
            Operation::CancelDelay(key) => {
                Answer::Due($call!(false, |queue| queue.cancel_delay(&key)))
            }
            Operation::Expedite(key) => Answer::Is($call!(false, |queue| queue.expedite(&key))),
            Operation::Pause => {
                $call!(true, |queue| queue.pause());
                Answer::Done
            }
            Operation::Unpause => {
                $call!(true, |queue| queue.unpause());
                Answer::Done
            }
            Operation::AddDebounced(..)
            | Operation::AddWithin(..)
            | Operation::Suspend(..)
            | Operation::LimitKeys(_) => {
                $session!(true, |queue| <$home>::govern(queue, $operation))
            }
            Operation::SetPolicy(_) | Operation::Resume(_) => {
                $session!(false, |queue| <$home>::govern(queue, $operation))
            }
            Operation::Order(ref order) => {
                $session!(false, |queue| <$kind>::order(queue, order));
                Answer::Done
            }
            Operation::AgeAfter(after) => {
                $session!(true, |queue| <$kind>::age(queue, after));
                Answer::Done
            }
            Operation::Get(sleeper) => {
                let mut getter = $held.getter(sleeper);
                let next = $session!(false, |queue| queue.poll_get(&mut getter));
                $held.keep(sleeper, getter, &next);
                Answer::Next($held.hand_next(next))
            }
            Operation::GetMany(max, sleeper) => {
                let (mut getter, mut taken) = ($held.getter(sleeper), Vec::new());
                let next = $session!(false, |queue| {
                    queue.poll_get_many(max, &mut getter, |work| taken.push(work))
                });
                $held.keep(sleeper, getter, &next);
                Answer::NextMany(map_next(next, |count| {
                    assert_eq!(count, taken.len(), "as many keys as the queue says");
                    taken.into_iter().map(|work| $held.hand(work)).collect()
                }))
            }
            Operation::Next(run, action, sleeper) => {
                let (mut getter, ticket) = ($held.getter(sleeper), $held.ticket(run));
                let (finished, next) = $session!(action.needs_time(), |queue| {
                    let finish = |ticket| queue.finish(ticket, action);
                    let finished = ticket.map_or(Finished::Stale, finish);
                    (finished, queue.poll_get(&mut getter))
                });
                $held.keep(sleeper, getter, &next);
                Answer::Turn(finished, $held.hand_next(next))
            }
            Operation::Leave(sleeper) => {
                let mut getter = $held.getter(sleeper);
                $session!(true, |queue| queue.leave(&mut getter));
                Answer::Done
            }
            Operation::DoneKey(key) => {
                Answer::Finished($call!(false, |queue| queue.release_key(&key)))
            }
            Operation::Done(run) => Answer::Finished(match $held.ticket(run) {
                Some(ticket) => $session!(false, |queue| queue.release(ticket)),
                None => Finished::Stale,
            }),
            Operation::Complete(run, action) => Answer::Finished(match $held.ticket(run) {
                Some(ticket) => {
                    $call!(action.needs_time(), |queue| queue.finish(ticket, action))
                }
                None => Finished::Stale,
            }),
            Operation::CompleteMany(ref runs, action) => {
                let tickets = $held.tickets(runs);
                let used = runs.len() - tickets.len();
                let timed = action.needs_time();
                Answer::Count(used + $call!(timed, |queue| queue.finish_many(tickets, action)))
            }
            Operation::ReportRunning => {
                $call!(true, |queue| queue.report_running());
                Answer::Done
            }

            Operation::ShutDown => {
                $call!(true, |queue| queue.shut_down());
                Answer::Done
            }
            Operation::BeginDrain => {
                let drain = $call!(true, |queue| queue.begin_drain());
                Answer::Drain($held.keep_drain(drain))
            }
            Operation::Drained(drain) => match $held.drain(drain) {
                Some(drain) => Answer::Drained($look!(|queue| queue.drain_status(drain))),
                None => Answer::Lacking,
            },
            Operation::TakeDelayed => Answer::Left($call!(true, |queue| queue.take_delayed())),
            Operation::TakeReady => Answer::Left($call!(true, |queue| queue.take_ready())),

            Operation::Len => Answer::Count($call!(false, |queue| queue.len())),
            Operation::State(key) => Answer::State($call!(false, |queue| queue.state(&key))),
            Operation::Contains(key) => Answer::Is($look!(|queue| queue.contains(&key))),
            Operation::Failures(key) => {
                Answer::Count($look!(|queue| queue.failures(&key)) as usize)
            }
            Operation::Why(key) => Answer::Why($session!(false, |queue| queue.why(&key))),
            Operation::Stats => Answer::Stats($machine!(|queue| queue.stats())),
            Operation::Group(group) => {
                let state = $machine!(|queue| <$kind>::group(queue, group));
                Answer::Group(state.and_then(figures))
            }
            Operation::IsPaused => Answer::Is($look!(|queue| queue.is_paused())),
            Operation::IsIdle => Answer::Is($call!(false, |queue| queue.is_idle())),
            Operation::IsSettled => Answer::Is($look!(|queue| queue.is_settled())),
            Operation::IsShuttingDown => Answer::Is($look!(|queue| queue.is_shutting_down())),
            Operation::NextLook => Answer::Look($session!(false, |queue| queue.next_look())),
            Operation::IsWithin(ready_max, run_max) => {
                Answer::Is($call!(true, |queue| queue.is_within(ready_max, run_max)))
            }
            _ => Answer::Lacking,
        }
    };
}

pub(super) use answer;

/// Whether queues of this kind have no such operation.
pub(super) fn lack<P: Kind>(operation: &Operation) -> bool {
    match operation {
        Operation::Order(_) => !P::GROUPS,
        Operation::AgeAfter(_) => !P::AGES,
        Operation::IsWithin(..) => P::GROUPS,
        _ => false,
    }
}

/// Does an operation that neither waits nor names a run to a queue behind a lock.
pub fn answer_of<H>(queue: &Shared<H>, operation: &Operation) -> Answer
where
    H: Host<Key = Key, Priorities: Kind, Limiter = AnyLimiter, Storage: Home>,
{
    behind_lock(queue, &mut Held::default(), operation)
}

/// Does an operation that never waits to a queue behind a lock, as its users do.
pub(super) fn behind_lock<H>(shared: &Shared<H>, held: &mut Held, operation: &Operation) -> Answer
where
    H: Host<Key = Key, Priorities: Kind, Limiter = AnyLimiter, Storage: Home>,
{
    if lack::<H::Priorities>(operation) {
        return Answer::Lacking;
    }
    macro_rules! call {
        ($timed:expr, |$queue:ident| $work:expr) => {{
            let _ = $timed;
            let $queue = shared;
            $work
        }};
    }
    macro_rules! session {
        ($timed:expr, |$queue:ident| $work:expr) => {
            shared.timed($timed, |$queue| $work)
        };
    }
    macro_rules! look {
        (|$queue:ident| $work:expr) => {{
            let $queue = shared;
            $work
        }};
    }
    macro_rules! machine {
        (|$queue:ident| $work:expr) => {
            shared.look(|$queue| $work)
        };
    }
    match *operation {
        Operation::TryGet => {
            let work = shared.with(|session| session.try_get());
            Answer::Work(work.map(|work| held.hand(work)))
        }
        Operation::ExpediteAll => {
            shared.expedite_all();
            Answer::Done
        }
        Operation::RetainBelow(0) => Answer::Count(shared.clear()),
        Operation::RetainBelow(key) => Answer::Count(shared.retain(|other| *other < key)),
        Operation::Snapshot => Answer::Snapshot(in_order(shared.snapshot())),
        Operation::PanicUnderLock => {
            let panic = || resume_unwind(Box::new("a panic while the lock is held"));
            Answer::Is(panicking(|| shared.lock().with(|_| panic())))
        }
        _ => {
            answer!(operation, held, <H::Priorities, H::Storage>, call, session, look, machine)
        }
    }
}
