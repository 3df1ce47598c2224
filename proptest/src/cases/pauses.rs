use super::calls::{add, add_after, advance, get, settle, start};
use crate::histories::{CallScript, Operation};
use crate::subject::Call;

/// A call that waits for a key gets none while the queue is paused, and then does.
///
/// Source: requeue-core, Queue::unpause
pub(crate) fn getters_wait_until_the_queue_is_unpaused() -> CallScript {
    CallScript::new([
        get(),
        settle(),
        Operation::Pause,
        add(1),
        settle(),
        Operation::Unpause,
        settle(),
    ])
}

/// A key whose deadline passes while the queue is paused is handed out after it.
///
/// Source: requeue-core, Queue::unpause
pub(crate) fn a_deadline_that_passes_in_a_pause_is_noticed_after_it() -> CallScript {
    CallScript::new([
        Operation::Pause,
        get(),
        add_after(1, 10),
        settle(),
        advance(10),
        settle(),
        Operation::Unpause,
        settle(),
    ])
}

/// A call with a time limit gives up at its time while the queue is paused.
///
/// Source: requeue-core, Queue::pause
pub(crate) fn a_call_with_a_time_limit_gives_up_in_a_pause() -> CallScript {
    CallScript::new([
        add(1),
        Operation::Pause,
        start(Call::GetTimeout(super::ms(10))),
        settle(),
        advance(10),
        settle(),
        Operation::Unpause,
        get(),
        settle(),
    ])
}
