//! The queue beside the reference model.

use arbitrary::{Result, Unstructured};
use requeue_proptest::Figures;
use requeue_proptest::combinations::{Combination, core, options};
use requeue_proptest::histories::{Looks, check_on, operations_of};

/// Does what the bytes say to one of core's queues and to the model of it.
///
/// Every outcome is compared, the invariants are checked after every operation, and everything that
/// can be seen is compared after every operation or in the end.
///
/// # Panics
///
/// Where they part, or where an invariant does not hold.
pub fn queue(bytes: &[u8]) {
    // Too few bytes say nothing.
    let _ = compare(&mut Unstructured::new(bytes));
}

#[expect(clippy::panic, reason = "this is how a fuzzer learns of it")]
fn compare(bytes: &mut Unstructured) -> Result<()> {
    let combination = combination(bytes)?;
    let keys = *bytes.choose(&[6, 40])?;
    let looks = *bytes.choose(&[Looks::Always, Looks::Last])?;
    let operations = operations_of(bytes.bytes(bytes.len())?, keys, combination.uses);
    let configuration = &combination.configuration;
    let checked = check_on(core::<Figures>, configuration, &operations, looks);
    if let Err(failure) = checked {
        panic!("{combination}, looks: {looks:?}\n{operations:#?}\n{failure}");
    }
    Ok(())
}

/// Any value of each option.
pub(crate) fn combination(bytes: &mut Unstructured) -> Result<Combination> {
    let values = options().map(|option| bytes.int_in_range(0..=option.values() - 1));
    Ok(Combination::new(values.collect::<Result<_>>()?, 1))
}
