//! Rules about room.

#[doc(hidden)]
#[macro_export]
macro_rules! __rules_capacity {
    (($($before:tt)*) { $($groups:tt)* } $($after:tt)*) => { $crate::__rules! {
        $($before)*
        {
            $($groups)*
            capacity {
                a_cancelled_key_gives_its_room_back: 1 capacity,
                "A key that is cancelled takes no room unless it is active or has failed.",
                "docs/design.md, Q4";
                a_key_that_is_done_gives_its_room_back: 1 capacity,
                "A key that is neither ready, active, delayed nor remembered takes no room.",
                "docs/design.md, Q4";
                delayed_and_active_keys_take_room: 2 capacity,
                "A delayed key and an active one each take up room.",
                "docs/design.md, One slot per key";
                a_lowered_limit_keeps_what_is_held: 0 limit,
                "If fewer keys fit than are held, all stay, and new ones are refused for so long.",
                "requeue-core, Queue::limit_keys";
                a_raised_limit_makes_room: 0 limit,
                "If more keys fit than before, new ones are taken.",
                "requeue-core, Queue::limit_keys";
            }
            reclaim {
                work_is_never_dropped_for_room: 1 capacity,
                "A key that is ready, active or delayed is not dropped, whatever its failures.",
                "docs/design.md, One slot per key";
                a_failure_record_that_is_forgotten_is_not_dropped_twice: 2 capacity,
                "A key that failed and is forgotten gives its room back.",
                "docs/design.md, Q5";
            }
        }
        $($after)*
    }};
}
