//! Rules about the end of a queue, and about what it holds then.

#[doc(hidden)]
#[macro_export]
macro_rules! __rules_shutdown {
    (($($before:tt)*) { $($groups:tt)* } $($after:tt)*) => { $crate::__rules! {
        $($before)*
        {
            $($groups)*
            shutdown {
                keys_that_are_ready_are_still_handed_out: 2,
                "After shutdown keys that are ready are handed out, and then no more.",
                "client-go queue.go, Get";
                a_dirty_key_comes_back_after_shutdown: 1,
                "A key that is dirty when the queue shuts down is handed out once more.",
                "client-go queue.go, Done";
                a_delayed_key_does_not_become_ready_after_shutdown: 1,
                "After shutdown no delay ends.",
                "client-go delaying_queue.go, waitingLoop: stopCh";
            }
            drain {
                a_queue_with_nothing_to_do_has_drained: 0,
                "A queue with nothing to do has drained at once.",
                "client-go queue.go, ShutDownWithDrain";
                delayed_keys_are_not_waited_for: 1,
                "A drain does not wait for delayed keys.",
                "client-go queue.go, ShutDownWithDrain";
            }
            leftovers {
                nothing_that_was_not_worked_on_is_lost: 4,
                "After shutdown ready keys come back in order, then delayed ones by deadline.",
                "requeue-core, Queue::take_ready and take_delayed";
                an_active_key_is_no_leftover: 1,
                "An active key is not taken back.",
                "requeue-core, Queue::take_ready";
            }
            restore {
                what_was_left_goes_on_as_it_was: 4,
                "Leftovers that are restored keep their order, delays and failures.",
                "requeue-core, Queue::restore";
                a_key_that_is_there_takes_the_sooner_time_and_the_larger_count: 2,
                "A restored key that is there is added; the larger count of failures counts.",
                "requeue-core, Queue::restore";
                a_leftover_that_is_refused_is_handed_back_whole: 1,
                "A leftover for which there is no room comes back as it was.",
                "requeue-core, Queue::restore";
                a_restored_key_keeps_its_level: 2 levels,
                "A key is restored at its level, and refused if there is no such level.",
                "requeue-core, Queue::restore";
            }
            snapshot {
                the_counts_are_those_of_the_snapshot: 4,
                "The counts of a queue are of one moment, and each key is counted in its states.",
                "requeue-core, Queue::stats";
                each_key_is_seen_once_as_it_is: 4,
                "A snapshot shows each key that the queue holds once, as its state is.",
                "requeue-core, Queue::snapshot_some";
                a_key_that_is_due_is_seen_ready: 1,
                "A key whose deadline has passed is ready in a snapshot, and is handed out.",
                "requeue-core, Queue::snapshot_some; docs/design.md, Due keys";
            }
        }
        $($after)*
    }};
}
