//! The tests of client-go, and what is different from it.

#[doc(hidden)]
#[macro_export]
macro_rules! __rules_client_go {
    (($($before:tt)*) { $($groups:tt)* } $($after:tt)*) => { $crate::__rules! {
        $($before)*
        {
            $($groups)*
            client_go {
                basic: 51,
                "Of ten workers no two have a key at once; what is added too late comes back.",
                "client-go queue_test.go, TestBasic";
                add_while_processing: 50,
                "Each of fifty keys that is added once more while active is worked on twice.",
                "client-go queue_test.go, TestAddWhileProcessing";
                len: 2,
                "A second add of a key does not count.",
                "client-go queue_test.go, TestLen";
                reinsert: 1,
                "A key that is added while active comes back.",
                "client-go queue_test.go, TestReinsert";
                collapse: 1,
                "Two adds make one run.",
                "client-go queue_test.go, TestCollapse";
                collapse_while_processing: 1,
                "Two adds while active make one more run, and not before the present one is over.",
                "client-go queue_test.go, TestCollapseWhileProcessing";
                queue_drainage_using_shut_down_with_drain: 2,
                "A drain lasts until the active keys are done.",
                "client-go queue_test.go, TestQueueDrainageUsingShutDownWithDrain";
                no_queue_drainage_using_shut_down: 2,
                "A shutdown does not wait for active keys.",
                "client-go queue_test.go, TestNoQueueDrainageUsingShutDown";
                force_queue_shutdown_using_shut_down: 2,
                "A shutdown ends a drain.",
                "client-go queue_test.go, TestForceQueueShutdownUsingShutDown";
                queue_drainage_using_shut_down_with_drain_with_dirty_item: 1,
                "A key that is dirty when the drain begins is worked on once more.",
                "client-go queue_test.go, TestQueueDrainageUsingShutDownWithDrainWithDirtyItem";
                garbage_collection: 1,
                "Nothing is kept of a key that is done.",
                "client-go queue_test.go, TestGarbageCollection";
                simple_queue: 1,
                "A delayed key comes once.",
                "client-go delaying_queue_test.go, TestSimpleQueue";
                deduping: 1,
                "Of two delays the one that ends first counts, whichever was asked for first.",
                "client-go delaying_queue_test.go, TestDeduping";
                add_two_fire_early: 3,
                "Keys come in the order of their deadlines, whichever was asked for first.",
                "client-go delaying_queue_test.go, TestAddTwoFireEarly";
                copy_shifting: 3,
                "Three keys that were asked for in the opposite order come together.",
                "client-go delaying_queue_test.go, TestCopyShifting";
                rate_limiting_queue: 2,
                "Each failure doubles the delay of its key, until it is forgotten.",
                "client-go rate_limiting_queue_test.go, TestRateLimitingQueue";
            }
            differences {
                drain_waits_for_ready_keys: 2,
                "A drain waits for ready keys; client-go's ends once no key is active.",
                "docs/design.md, Differences from client-go";
                drain_waits_for_dirty_keys: 1,
                "A drain waits for dirty keys; client-go's ends although one is queued again.",
                "docs/design.md, Differences from client-go";
                getters_wait_for_dirty_keys: 1,
                "In a drain getters wait for dirty keys; client-go's find the queue closed.",
                "docs/design.md, Differences from client-go";
                every_drainer_is_woken: 1,
                "Every call that waits for the drain is woken; client-go wakes one.",
                "docs/design.md, Differences from client-go";
                shut_down_interrupts_drain: 1,
                "Every shutdown ends a drain; of client-go's delaying queue only the first does.",
                "docs/design.md, Differences from client-go";
                done_of_inactive_key_is_an_error: 2,
                "Completing a key that is not active is an error; client-go says nothing.",
                "docs/design.md, Differences from client-go";
                done_of_a_queued_key_does_not_queue_it_twice: 1,
                "Completing a queued key does not queue it twice, as client-go does.",
                "docs/design.md, Differences from client-go";
                done_with_a_stale_ticket_does_nothing: 1,
                "A worker that is late cannot complete another's run; client-go has no tickets.",
                "docs/design.md, Differences from client-go";
                add_after_shutdown_is_an_error: 1,
                "A key added after shutdown is handed back; client-go drops it silently.",
                "docs/design.md, Differences from client-go";
                limiter_not_charged_after_shutdown: 1,
                "A rate-limited add after shutdown is not charged, as client-go does.",
                "docs/design.md, Differences from client-go";
                delayed_keys_are_handed_back_after_shutdown: 3,
                "Delayed keys can be taken back after shutdown; client-go drops them.",
                "docs/design.md, Differences from client-go";
                ready_keys_can_be_taken_back_after_shutdown: 1,
                "Ready keys can be taken back after shutdown; client-go's have to be worked on.",
                "docs/design.md, Differences from client-go";
                a_retry_after_shutdown_is_kept_among_the_delayed: 1,
                "A key that fails after shutdown is kept among the delayed; client-go drops it.",
                "docs/design.md, Differences from client-go";
                delays_saturate: 1,
                "Delays saturate; client-go's overflow into the past.",
                "docs/design.md, Differences from client-go";
                duration_max_is_never: 1,
                "The longest delay never ends and arms no timer; client-go has no such delay.",
                "docs/design.md, Differences from client-go";
                equal_deadlines_leave_in_insertion_order: 10,
                "Equal deadlines leave in the order in which they were set, unlike client-go's.",
                "docs/design.md, Differences from client-go";
                a_full_queue_hands_the_key_back: 1 capacity,
                "A new key for which there is no room comes back, and nothing changes.",
                "docs/design.md, One slot per key";
                a_key_that_is_held_is_never_refused: 1 capacity,
                "Whatever happens to a key that has room needs no more.",
                "docs/design.md, One slot per key";
                the_oldest_failure_record_makes_room: 1 capacity,
                "Where room is short the oldest mere record of failures goes.",
                "docs/design.md, One slot per key";
                failure_records_can_be_limited: 3 growth,
                "A queue that grows can limit how many mere records of failures it keeps.",
                "docs/design.md, One slot per key";
            }
        }
        $($after)*
    }};
}
