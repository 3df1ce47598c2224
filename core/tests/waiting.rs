//! Calls that wait: which of them is woken, and what is left of one that ends early. Wakes are
//! counted by wakers that do nothing else.

/// Tests each rule with a list of fixed length, and with one that grows.
macro_rules! with_both_lists {
    ($($rule:ident)+) => {$(
        #[test]
        fn $rule() {
            rules::$rule(&crate::waiting::call::queue::<FixedWaitList<3>>());
            #[cfg(feature = "alloc")]
            rules::$rule(&crate::waiting::call::queue::<GrowableWaitList>());
        }
    )+};
}

#[cfg(feature = "alloc")]
mod batch;
mod call;
mod drain;
mod interrupted;
mod next;
mod room;
mod timer;
mod wakes;
