//! The documented differences from client-go that recordings can show, by name.
//!
//! A result may differ only if the reference model says so twice: with requeue's rules it must
//! predict what the subject did, and with client-go's what was recorded.

/// client-go drops a key that is added after shutdown; requeue hands it back.
pub const ADD_AFTER_SHUTDOWN: &str = "add_after_shutdown_is_an_error";

/// client-go charges its limiter for a rate-limited add after shutdown, of which nothing comes;
/// requeue does not.
pub const LIMITER_AFTER_SHUTDOWN: &str = "limiter_not_charged_after_shutdown";

/// client-go's drain ends once no key is in work; requeue's waits for ready keys too.
pub const DRAIN_WAITS: &str = "drain_waits_for_ready_keys";

/// client-go wakes one of those who wait for the drain; requeue wakes all.
pub const EVERY_DRAINER: &str = "every_drainer_is_woken";

/// client-go's second shutdown does not end a drain; requeue's does.
pub const SHUT_DOWN_INTERRUPTS: &str = "shut_down_interrupts_drain";

/// client-go's done takes any key and says nothing; requeue's answers that the key is not in work.
pub const DONE_OF_INACTIVE: &str = "done_of_inactive_key_is_an_error";

/// client-go's done of a key that is queued queues it twice, and what follows is the history of two
/// keys of the same name; requeue's changes nothing.
pub const QUEUED_ONCE: &str = "done_of_a_queued_key_does_not_queue_it_twice";

/// client-go leaves the order of equal deadlines to its heap; requeue's is that of insertion.
pub const TIES_IN_ORDER: &str = "equal_deadlines_leave_in_insertion_order";
