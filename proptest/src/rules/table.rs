//! The table, in sections.

mod capacity;
mod client_go;
mod control;
mod failures;
mod groups;
mod order;
mod runs;
mod shutdown;
mod waits;

/// Calls a macro with every case there is: its group, its name, how many keys it needs room for and
/// what else of the queue, the rule in a line, and where the rule comes from.
///
/// The first argument is the macro in brackets, the second is handed on to it. The cases under
/// `steps` never wait; those under `waits` are histories of calls that do.
///
/// # Examples
///
/// ```
/// macro_rules! count {
///     ($what:ident $(
///         $kind:ident {
///             $($group:ident {
///                 $($name:ident: $keys:literal $($need:ident)?, $rule:literal, $source:literal;)+
///             })+
///         }
///     )+) => {
///         let $what = [$($($(stringify!($name)),+),+),+].len();
///     };
/// }
/// requeue_proptest::for_each_case!([count] cases);
/// assert_eq!(cases, requeue_proptest::conformance::RULES.len());
/// ```
#[macro_export]
macro_rules! for_each_case {
    ([$($call:tt)+] $args:tt) => { $crate::__rules! {
        [$($call)+]
        $args
        steps {
            [
                __rules_order __rules_failures __rules_control __rules_shutdown
                __rules_capacity __rules_runs __rules_groups __rules_client_go
            ]
        }
        waits { [__rules_waits] }
    }};
}

/// Lets one section after another add its groups, and then makes the call.
#[doc(hidden)]
#[macro_export]
macro_rules! __rules {
    ($call:tt $args:tt
        steps { [$section:ident $($left:ident)*] $($groups:tt)* }
        waits $waits:tt
    ) => {
        $crate::$section! { ($call $args steps) { [$($left)*] $($groups)* } waits $waits }
    };
    ($call:tt $args:tt
        steps $steps:tt
        waits { [$section:ident $($left:ident)*] $($groups:tt)* }
    ) => {
        $crate::$section! { ($call $args steps $steps waits) { [$($left)*] $($groups)* } }
    };
    ([$($call:tt)+] $args:tt
        steps { [] $($steps:tt)* }
        waits { [] $($waits:tt)* }
    ) => {
        $($call)+! { $args steps { $($steps)* } waits { $($waits)* } }
    };
}
