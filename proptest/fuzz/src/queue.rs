//! The queue beside the reference model.

use arbitrary::{Result, Unstructured};
use requeue_core::priority::{Aging, Groups, Levels, Plain, WithSuspension};
use requeue_core::storage::{Fixed, Growable};
use requeue_proptest::Figures;
use requeue_proptest::combinations::{Combination, Uses, core, options};
use requeue_proptest::histories::{Looks, Operation, check_on, operations_of};
use requeue_proptest::subject::{Bare, Configuration, Direct, Key, NewSubject, OnWorkQueue, boxed};

use crate::script;

/// Does what the bytes say to one of core's queues and to the model of it.
///
/// Every outcome is compared, the invariants are checked after every operation, and everything that
/// can be seen is compared after every operation or in the end.
///
/// # Panics
///
/// Where they part, or where an invariant does not hold.
pub fn queue(bytes: &[u8]) {
    if let Ok(script) = Script::draw(&mut Unstructured::new(bytes)) {
        script.run();
    }
}

struct Script {
    subject: &'static Candidate,
    setup: Configuration,
    looks: Looks,
    ops: Vec<Operation>,
}

struct Candidate {
    name: &'static str,
    keys: Key,
    new: NewSubject,
    /// The bytes say also which kind of queue it is.
    is_combined: bool,
}

impl Script {
    fn draw(bytes: &mut Unstructured) -> Result<Self> {
        let subject = bytes.choose(&CANDIDATES)?;
        let (setup, uses) = if subject.is_combined {
            let Combination {
                configuration,
                uses,
                ..
            } = combination(bytes)?;
            (configuration, uses)
        } else {
            (script::setup(bytes)?, Uses::ANY)
        };
        Ok(Self {
            subject,
            setup,
            looks: *bytes.choose(&[Looks::Always, Looks::Last])?,
            ops: operations_of(bytes.bytes(bytes.len())?, subject.keys, uses),
        })
    }

    fn run(&self) {
        let Err(failure) = check_on(self.subject.new, &self.setup, &self.ops, self.looks) else {
            return;
        };
        let (name, setup, looks) = (self.subject.name, &self.setup, self.looks);
        let ops = self.ops.iter().map(|op| format!("  {op:?}\n"));
        let ops = ops.collect::<String>();
        #[expect(clippy::panic, reason = "this is how a fuzzer learns of it")]
        {
            panic!("{name}, {setup:?}, looks: {looks:?}\n{ops}{failure}");
        }
    }
}

/// Any value of each option.
fn combination(bytes: &mut Unstructured) -> Result<Combination> {
    let values = options().map(|option| bytes.int_in_range(0..=option.values() - 1));
    Ok(Combination::new(values.collect::<Result<_>>()?, 1))
}

macro_rules! candidates {
    ($($subject:ty, $keys:literal keys;)+) => {
        [$(Candidate {
            name: stringify!($subject),
            keys: $keys,
            new: boxed::<$subject>,
            is_combined: false,
        },)+
        Candidate {
            name: "a combination",
            keys: 6,
            new: core::<Figures>,
            is_combined: true,
        }]
    };
}

static CANDIDATES: [Candidate; 22] = candidates! {
    Direct<WithSuspension, Fixed<1>>, 3 keys;
    Direct<WithSuspension, Fixed<2>>, 4 keys;
    Direct<Plain, Fixed<3>>, 5 keys;
    Direct<WithSuspension, Fixed<4>, ()>, 6 keys;
    Direct<WithSuspension, Fixed<8>>, 9 keys;
    Direct<WithSuspension, Fixed<64>>, 40 keys;
    Direct<WithSuspension, Fixed<64, u16>>, 6 keys;
    Direct<Plain, Growable>, 6 keys;
    Direct<Groups<u8>, Growable>, 6 keys;
    Direct<Groups<u8, WithSuspension<Levels<3>>>, Fixed<4>>, 6 keys;
    Direct<Plain, Growable>, 40 keys;
    Direct<Plain, Growable, ()>, 6 keys;
    OnWorkQueue<Bare<WithSuspension, Fixed<2>>>, 4 keys;
    OnWorkQueue<Bare<Plain, Growable>>, 6 keys;
    Direct<WithSuspension<Levels<3>>, Fixed<4>>, 6 keys;
    Direct<WithSuspension<Levels<3>>, Fixed<64>>, 40 keys;
    Direct<Levels<3>, Growable>, 9 keys;
    Direct<Aging<Levels<3>>, Growable>, 9 keys;
    Direct<Groups<u8, Aging<WithSuspension<Levels<3>>>>, Fixed<4>>, 6 keys;
    Direct<Groups<u8, Aging<Levels<3>>>, Growable>, 9 keys;
    Direct<Plain, Growable, Figures, 4>, 6 keys;
};
