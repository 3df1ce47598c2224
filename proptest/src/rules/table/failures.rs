//! Rules about failures and how long they delay a key.

#[doc(hidden)]
#[macro_export]
macro_rules! __rules_failures {
    (($($before:tt)*) { $($groups:tt)* } $($after:tt)*) => { $crate::__rules! {
        $($before)*
        {
            $($groups)*
            limiters {
                each_failure_of_a_key_doubles_its_delay: 2,
                "Each failure of a key doubles its own delay, up to the longest.",
                "client-go default_rate_limiters.go, ItemExponentialFailureRateLimiter";
                the_first_failures_are_fast: 1,
                "The first failures of a key take the short delay, the others the long one.",
                "client-go default_rate_limiters.go, ItemFastSlowRateLimiter";
                the_longest_of_several_delays_counts: 1,
                "Of the delays of several limiters the longest counts.",
                "client-go default_rate_limiters.go, MaxOfRateLimiter";
                a_run_that_failed_is_charged: 1,
                "A run that is completed as failed counts a failure, and its key comes back.",
                "controller-runtime controller.go, reconcileHandler: AddRateLimited";
                a_run_that_is_put_off_is_not_charged: 1,
                "A run that is put off counts no failure and forgets none.",
                "requeue-core, Action::Snooze";
            }
            forget {
                a_key_that_is_forgotten_starts_again: 1,
                "A key whose failures are forgotten waits as after its first.",
                "client-go default_rate_limiters.go, Forget";
                a_run_that_succeeded_forgets: 1,
                "A run that is completed as succeeded forgets the failures of its key.",
                "controller-runtime controller.go, reconcileHandler: Forget";
                forgetting_leaves_the_delay: 1,
                "Forgetting the failures of a key leaves the delay that it has.",
                "client-go default_rate_limiters.go, Forget";
            }
        }
        $($after)*
    }};
}
