//! Every scripted case on each of our queues.

use requeue_core::{Fixed, Growable};
use requeue_proptest::Model;
use requeue_proptest::for_each_case;
use requeue_proptest::subject::{Bare, Direct, Embassy, OnWorkQueue, Tasks, Threads};

macro_rules! cases {
    ($($module:ident { $($case:ident)+ })+) => {
        mod core_fixed {
            use super::*;
            $(cases!(@ $module $($case)+ => Direct<Fixed<64>>);)+
        }
        mod core_growable {
            use super::*;
            $(cases!(@ $module $($case)+ => Direct<Growable>);)+
        }
        mod work_queue {
            use super::*;
            $(cases!(@ $module $($case)+ => OnWorkQueue<Bare<Fixed<64>>>);)+
        }
        mod std {
            use super::*;
            $(cases!(@ $module $($case)+ => OnWorkQueue<Threads>);)+
        }
        mod tokio {
            use super::*;
            $(cases!(@ $module $($case)+ => OnWorkQueue<Tasks>);)+
        }
        mod embassy {
            use super::*;
            $(cases!(@ $module $($case)+ => OnWorkQueue<Embassy<64>>);)+
        }
        mod model {
            use super::*;
            $(cases!(@ $module $($case)+ => Model);)+
        }
    };
    (@ $module:ident $($case:ident)+ => $subject:ty) => {
        $(
            #[test]
            fn $case() {
                requeue_proptest::cases::$module::$case::<$subject>();
            }
        )+
    };
}

for_each_case!(cases);
