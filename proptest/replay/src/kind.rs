//! The kinds of recordings of queues, and the differences from the upstream queue that each kind may show.

use requeue_proptest::Model;
use requeue_proptest::subject::Abilities;
use requeue_proptest::subject::Operate;

use crate::differences::{
    ADD_AFTER_SHUTDOWN, ADDED_ACTIVE, DELAY_ENDED, DONE_OF_INACTIVE, LEN_COUNTS_READY,
    LIMITER_AFTER_SHUTDOWN, QUEUED_ONCE, SHUT_DOWN_HANDS_OUT, TIES_IN_ORDER,
};
use crate::player::{Outcome, Seen};
use crate::recording::{LEVELS, Op, Step};
use crate::upstream::Upstream;

/// What a file of recordings is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// client-go's rate-limiting queue, misuse included.
    Queue,
    /// client-go's delaying queue, with deadlines that tie.
    Ties,
    /// controller-runtime's priority queue.
    Priority,
}

/// What was compared when a result differed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Outcome,
    Gauges,
    Len,
    State,
    Figures,
    NumRequeues,
}

/// The step in which a result differed.
pub(crate) struct Place<'p> {
    pub(crate) step: &'p Step,
    /// What requeue's rules say.
    pub(crate) seen: &'p Seen,
}

impl Kind {
    /// The name of that queue's library.
    pub(crate) const fn upstream_name(self) -> &'static str {
        match self {
            Self::Priority => "controller-runtime",
            _ => "client-go",
        }
    }

    /// What our queue needs: levels.
    pub(crate) fn abilities(self) -> Abilities {
        let mut abilities = Abilities::default();
        if self == Self::Priority {
            abilities.levels = LEVELS as u8;
        }
        abilities
    }

    /// Whether a recording is compared with the subject only up to the first result that a
    /// documented difference changes. The histories of priority queues have nothing in common from
    /// then on.
    pub(crate) const fn parts_at_differences(self) -> bool {
        matches!(self, Self::Priority)
    }

    /// Returns the documented difference by which a result may differ, if there is one.
    pub(crate) fn difference(
        self,
        what: What,
        place: Option<Place<'_>>,
        ours: &mut Model,
        theirs: &Upstream,
    ) -> Option<&'static str> {
        match self {
            Self::Priority => priority_difference(what, place?, ours, theirs),
            Self::Ties => {
                let place = place.filter(|_| what == What::Outcome)?;
                let allowed = place.step.leaves_open([place.seen]);
                allowed.then_some(TIES_IN_ORDER)
            }
            _ => {
                let closed = ours.is_shutting_down();
                let named = match (what, place.map(|place| &place.seen.outcome)) {
                    (What::Outcome, Some(outcome)) => queue_difference(outcome, closed),
                    (What::NumRequeues, _) => closed.then_some(LIMITER_AFTER_SHUTDOWN),
                    _ => None,
                };
                named.or(theirs.has_duplicates.then_some(QUEUED_ONCE))
            }
        }
    }
}

fn queue_difference(ours: &Outcome, closed: bool) -> Option<&'static str> {
    match ours {
        Outcome::Taken(false) if closed => Some(ADD_AFTER_SHUTDOWN),
        Outcome::Delays(delays) if closed && delays.is_empty() => Some(LIMITER_AFTER_SHUTDOWN),
        Outcome::Count(_) if closed => Some(LIMITER_AFTER_SHUTDOWN),
        Outcome::Done(false) => Some(DONE_OF_INACTIVE),
        _ => None,
    }
}

fn priority_difference(
    what: What,
    place: Place<'_>,
    ours: &mut Model,
    theirs: &Upstream,
) -> Option<&'static str> {
    if what == What::Len && place.seen.len + ours.stats().dirty == place.step.len {
        return Some(LEN_COUNTS_READY);
    }
    match place.step.op {
        _ if ours.is_shutting_down() => Some(SHUT_DOWN_HANDS_OUT),
        Op::Get(_) if theirs.has_kept_place => Some(DELAY_ENDED),
        Op::Get(_) if theirs.has_added_active => Some(ADDED_ACTIVE),
        Op::Get(_) if theirs.has_tied => Some(TIES_IN_ORDER),
        _ => None,
    }
}
