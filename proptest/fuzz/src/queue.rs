//! The queue beside the reference model.

use arbitrary::{Result, Unstructured};
use requeue_proptest::combinations::{Combination, Uses, core, options};
use requeue_proptest::histories::{Looks, Operation, check_on, operations_of};
use requeue_proptest::subject::GroupOrder;

/// Does what the bytes say to one of core's queues and to the model of it.
///
/// Every outcome is compared, the invariants are checked after every operation, and everything that
/// can be seen is compared after every operation or in the end.
///
/// # Panics
///
/// Where they part, or where an invariant does not hold.
pub fn queue(bytes: &[u8]) {
    let mut bytes = Unstructured::new(bytes);
    // Too few bytes say nothing.
    let _ = combination(&mut bytes).and_then(|combination| compare(combination, &mut bytes));
}

/// The same on a clock that breaks its contract: it jumps, stands still and goes back.
///
/// Metrics are not compared then.
///
/// # Panics
///
/// As [`queue`].
pub fn clock(bytes: &[u8]) {
    let mut bytes = Unstructured::new(bytes);
    let _ = combination(&mut bytes).and_then(|mut combination| {
        combination.configuration.metrics = false;
        combination.uses = Uses {
            suspend: true,
            poll: true,
            merge: true,
            restore: true,
            rewind: true,
            ..Uses::default()
        };
        compare(combination, &mut bytes)
    });
}

/// Any value of each option.
fn combination(bytes: &mut Unstructured) -> Result<Combination> {
    let values = options().map(|option| bytes.int_in_range(0..=option.values() - 1));
    Ok(Combination::new(values.collect::<Result<_>>()?, 1))
}

#[expect(clippy::panic, reason = "this is how a fuzzer learns of it")]
fn compare(combination: Combination, bytes: &mut Unstructured) -> Result<()> {
    let keys = *bytes.choose(&[6, 40])?;
    let looks = *bytes.choose(&[Looks::Always, Looks::Last])?;
    let mut operations = operations_of(bytes.bytes(bytes.len())?, keys, combination.uses);
    let configuration = &combination.configuration;
    if let Some(cap) = configuration.groups.filter(|_| combination.uses.rewind) {
        // A group without limits of its own is forgotten once its bucket is full. If the clock goes
        // back then, the bucket stays full.
        let limits = (0..3).map(|group| Operation::Order(GroupOrder::Limit(group, Some(cap))));
        operations.splice(0..0, limits);
    }
    let checked = check_on(core, configuration, &operations, looks);
    if let Err(failure) = checked {
        panic!("{combination}, looks: {looks:?}\n{operations:#?}\n{failure}");
    }
    Ok(())
}
