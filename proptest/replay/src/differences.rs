//! The documented differences from client-go and controller-runtime that recordings can show, by
//! name, and where each is allowed.
//!
//! A result may differ only if both models predict it: the reference model what our queue does, and
//! the model of the upstream queue what was recorded.

use requeue_proptest::Model;
use requeue_proptest::subject::Operate;

use crate::recording::{Kind, Op};
use crate::upstream::Upstream;

/// client-go drops a key that is added after shutdown; requeue hands it back.
pub const ADD_AFTER_SHUTDOWN: &str = "add_after_shutdown_is_an_error";

/// client-go charges its limiter for a rate-limited add after shutdown, which has no effect;
/// requeue does not.
pub const LIMITER_AFTER_SHUTDOWN: &str = "limiter_not_charged_after_shutdown";

/// client-go's drain ends once no key is active; requeue's waits for ready keys too.
pub const DRAIN_WAITS: &str = "drain_waits_for_ready_keys";

/// client-go wakes one of those who wait for the drain; requeue wakes all.
pub const EVERY_DRAINER: &str = "every_drainer_is_woken";

/// client-go's second shutdown does not end a drain; requeue's does.
pub const SHUT_DOWN_INTERRUPTS: &str = "shut_down_interrupts_drain";

/// client-go's done takes any key and says nothing; requeue's returns an error for a key that is
/// not active.
pub const DONE_OF_INACTIVE: &str = "done_of_inactive_key_is_an_error";

/// client-go's done of a key that is queued queues it twice, and from then on one key behaves as
/// two; requeue's changes nothing.
pub const QUEUED_ONCE: &str = "done_of_a_queued_key_does_not_queue_it_twice";

/// controller-runtime gives a key that is added while it is active its place among the ready keys
/// at once; requeue when its run ends, as client-go does.
pub const ADDED_ACTIVE: &str = "a_key_added_while_active_takes_its_place_at_done";

/// controller-runtime counts such a key as ready; requeue counts keys that can be handed out, as
/// client-go does.
pub const LEN_COUNTS_READY: &str = "len_counts_keys_that_can_be_handed_out";

/// controller-runtime gives a key whose delay is ended by an add the place that it had when the
/// delay began; requeue the end of its level, since it has become ready now.
pub const DELAY_ENDED: &str = "a_key_whose_delay_is_ended_goes_to_the_end";

/// controller-runtime does not count a retry whose delay is zero; requeue does, as client-go does.
pub const RETRY_WITHOUT_DELAY: &str = "a_retry_without_delay_is_counted";

/// controller-runtime hands out nothing after shutdown; requeue what is ready, as client-go does.
pub const SHUT_DOWN_HANDS_OUT: &str = "ready_keys_are_handed_out_after_shutdown";

/// client-go leaves the order of equal deadlines to its heap, controller-runtime's is that of the
/// first adds; requeue's is that in which the deadlines were set.
pub const TIES_IN_ORDER: &str = "equal_deadlines_leave_in_insertion_order";

/// Go leaves the delay to the processor if an exponential limiter computes exactly 2^63 ns.
pub const DELAY_OF_2_POW_63: &str = "an exponential delay of exactly 2^63 ns";

/// Returns the difference by which what was recorded may differ from what our queue did, if there
/// is one.
pub(crate) fn allowed(
    kind: Kind,
    recorded: &Op,
    ours: &Op,
    model: &mut Model,
    theirs: &Upstream,
) -> Option<&'static str> {
    let closed = model.is_shutting_down();
    match (kind, ours) {
        (Kind::Ties, _) => recorded.leaves_open(ours).then_some(TIES_IN_ORDER),
        (Kind::Limiter, _) => recorded.leaves_open(ours).then_some(DELAY_OF_2_POW_63),
        (Kind::Queue, Op::Add(_) | Op::AddAfter { .. }) if closed => Some(ADD_AFTER_SHUTDOWN),
        (Kind::Queue, Op::AddRateLimited { .. } | Op::NumRequeues { .. }) if closed => {
            Some(LIMITER_AFTER_SHUTDOWN)
        }
        (Kind::Queue, Op::Done { unpaired: true, .. }) => Some(DONE_OF_INACTIVE),
        (Kind::Queue, _) => theirs.has_duplicates.then_some(QUEUED_ONCE),
        (Kind::Priority, Op::Final { name, .. }) => {
            (name == "retries" && theirs.has_undelayed).then_some(RETRY_WITHOUT_DELAY)
        }
        (Kind::Priority, Op::Ready(len)) if *recorded == Op::Ready(len + model.stats().dirty) => {
            Some(LEN_COUNTS_READY)
        }
        (Kind::Priority, _) if closed => Some(SHUT_DOWN_HANDS_OUT),
        (Kind::Priority, Op::Get(_)) => match theirs {
            _ if theirs.has_kept_place => Some(DELAY_ENDED),
            _ if theirs.has_added_active => Some(ADDED_ACTIVE),
            _ => theirs.has_tied.then_some(TIES_IN_ORDER),
        },
        (Kind::Priority, _) => None,
    }
}

/// Whether nothing can be compared after this difference: the histories of priority queues have
/// nothing in common from then on.
pub(crate) fn parts(kind: Kind, name: &str) -> bool {
    kind == Kind::Priority && ![LEN_COUNTS_READY, RETRY_WITHOUT_DELAY].contains(&name)
}
