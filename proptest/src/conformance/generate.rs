//! Tests, made from the table of rules.

/// Makes the whole suite, as tests, for one queue.
///
/// The queue is a type that is a [`Subject`](crate::subject::Subject) and
/// [`Waits`](crate::subject::Waits). One that is core's `WorkQueue` with a lock, a clock and a
/// waker of its own is bound in a page: see the example. `proptest/tests/toy.rs` is such a binding
/// in full, and shows what the suite says of seven faults.
///
/// With `, steps` behind the type only those tests are made that need no
/// [`Waits`](crate::subject::Waits): for a queue that leaves waiting to others.
///
/// Each group of rules is a module, each rule a test, and a test that fails names its rule and
/// where that comes from. What a queue says it cannot do is not tried: see
/// [`Subject`](crate::subject::Subject). Sequences and histories are drawn besides, as many as
/// proptest is configured to draw (`PROPTEST_CASES`); those that have failed are kept in
/// `proptest-regressions/` beside the manifest.
///
/// # Examples
///
/// A runtime of one thread, whose tasks stand in line for keys. In a test of its crate it would end
/// with `requeue_proptest::conformance!(OnWorkQueue<Bound>);`.
///
/// ```
#[doc = include_str!("example.rs")]
/// // What a test of the suite does:
/// requeue_proptest::conformance::fifo::a_key_that_was_worked_on_goes_to_the_end::<
///     OnWorkQueue<Bound>,
/// >();
/// requeue_proptest::conformance::wake_obligations::whoever_is_served_wakes_the_next::<
///     OnWorkQueue<Bound>,
/// >();
/// ```
#[macro_export]
macro_rules! conformance {
    ($subject:ty) => {
        $crate::for_each_case!([$crate::__steps]($subject));
        $crate::for_each_case!([$crate::__waits]($subject));
    };
    ($subject:ty, steps) => {
        $crate::for_each_case!([$crate::__steps]($subject));
    };
}

/// A test for each case that every queue has.
#[doc(hidden)]
#[macro_export]
macro_rules! __steps {
    (($subject:ty)
        steps { $($group:ident {
            $($name:ident: $keys:literal, $rule:literal, $source:literal;)+
        })+ }
        waits $waits:tt
    ) => {
        $(
            mod $group {
                #[allow(unused_imports, reason = "the subject may be named in full")]
                use super::*;
                $(
                    #[doc = $rule]
                    #[test]
                    fn $name() {
                        $crate::conformance::$group::$name::<$subject>();
                    }
                )+
            }
        )+
        mod drawn_operations {
            #[allow(unused_imports, reason = "the subject may be named in full")]
            use super::*;

            const REGRESSIONS: &str = concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/proptest-regressions/suite.txt"
            );

            #[test]
            fn on_a_few_keys() {
                $crate::conformance::drawn::operations_on_a_few_keys::<$subject>(REGRESSIONS);
            }

            #[test]
            fn on_many_keys() {
                $crate::conformance::drawn::operations_on_many_keys::<$subject>(REGRESSIONS);
            }
        }
    };
}

/// A test for each case of a queue whose waiting is driven.
#[doc(hidden)]
#[macro_export]
macro_rules! __waits {
    (($subject:ty)
        steps $steps:tt
        waits { $($group:ident {
            $($name:ident: $keys:literal, $rule:literal, $source:literal;)+
        })+ }
    ) => {
        $(
            mod $group {
                #[allow(unused_imports, reason = "the subject may be named in full")]
                use super::*;
                $(
                    #[doc = $rule]
                    #[test]
                    fn $name() {
                        $crate::conformance::$group::$name::<$subject>();
                    }
                )+
            }
        )+
        mod drawn_histories {
            #[allow(unused_imports, reason = "the subject may be named in full")]
            use super::*;

            #[test]
            fn of_calls_that_wait() {
                $crate::conformance::drawn::histories_of_calls::<$subject>(concat!(
                    env!("CARGO_MANIFEST_DIR"),
                    "/proptest-regressions/histories.txt"
                ));
            }
        }
    };
}
