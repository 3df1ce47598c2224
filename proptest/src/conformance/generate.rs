//! Tests, made from the table of rules.

/// Makes the whole suite, as tests, for one queue.
///
/// The queue is a type that is a [`Subject`](crate::subject::Subject). One that is core's
/// `WorkQueue` with a lock, a clock and a waker of its own is bound in a page: the crate's
/// documentation shows one, which is also its example `binding`.
///
/// Each group of rules is a module, each rule a test, and a test that fails names its rule and
/// where that comes from. Histories are drawn in addition, as many as proptest is configured to
/// draw (`PROPTEST_CASES`); those that have failed are kept in `proptest-regressions/` beside the
/// manifest. What the queue cannot do is skipped, and the test `skipped::rules` writes a line for
/// each reason.
///
/// With `, steps` behind the type only those tests are made that need no call which waits: for a
/// queue that leaves waiting to others.
///
/// # Examples
///
/// ```
/// use requeue_core::storage::Fixed;
/// use requeue_proptest::subject::Direct;
///
/// mod core_fixed {
///     use super::*;
///     requeue_proptest::conformance!(Direct<Plain, Fixed<8>>, steps);
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! conformance {
    ($subject:ty $(, $only:ident)?) => {
        $crate::for_each_case!([$crate::__tests]($subject $(, $only)?));

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

        mod skipped {
            #[allow(unused_imports, reason = "the subject may be named in full")]
            use super::*;

            #[test]
            fn rules() {
                $crate::conformance::report_skipped::<$subject>(module_path!());
            }
        }
    };
}

/// The tests that are made from the table: with `, steps` those of calls are left out.
#[doc(hidden)]
#[macro_export]
macro_rules! __tests {
    (($subject:ty) steps { $($steps:tt)+ } waits { $($waits:tt)+ }) => {
        $crate::__groups!(($subject) $($steps)+ $($waits)+);

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
    (($subject:ty, steps) steps { $($steps:tt)+ } waits $waits:tt) => {
        $crate::__groups!(($subject) $($steps)+);
    };
}

/// A test for each case.
#[doc(hidden)]
#[macro_export]
macro_rules! __groups {
    (($subject:ty)
        $($group:ident {
            $($name:ident: $keys:literal $($need:ident)?;)+
        })+
    ) => {
        $(
            mod $group {
                #[allow(unused_imports, reason = "the subject may be named in full")]
                use super::*;
                $(
                    #[test]
                    fn $name() {
                        $crate::conformance::hold::<$subject>(
                            stringify!($group),
                            stringify!($name),
                        );
                    }
                )+
            }
        )+
    };
}
