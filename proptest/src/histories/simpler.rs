//! Making a history that fails shorter and plainer, after proptest has.

use super::Operation;

/// Leaves out every step without which the history still fails. proptest does so before it makes
/// the steps simpler, and not again after.
pub(super) fn without_needless(
    mut steps: Vec<Operation>,
    fails: &dyn Fn(&[Operation]) -> bool,
) -> Vec<Operation> {
    let mut index = steps.len();
    while let Some(last) = index.checked_sub(1) {
        index = last;
        let needed = steps.remove(index);
        if fails(&steps) {
            // Something before it may be needless now.
            index = steps.len();
        } else {
            steps.insert(index, needed);
        }
    }
    steps
}

/// Puts plain adds in the place of others, or before it, where the history still fails. What
/// proptest ends with depends on which kinds of steps there are, and this much less.
pub(super) fn with_plain_adds(
    mut steps: Vec<Operation>,
    fails: &dyn Fn(&[Operation]) -> bool,
) -> Vec<Operation> {
    while let Some(plainer) = plainer(&steps, fails) {
        steps = plainer;
    }
    steps
}

/// The same history with one add made plain. Then it is shorter, or has one plain add more.
fn plainer(steps: &[Operation], fails: &dyn Fn(&[Operation]) -> bool) -> Option<Vec<Operation>> {
    (0..steps.len()).find_map(|index| {
        let key = match &steps[index] {
            Operation::Add(1) => return None,
            Operation::AddMany(_) => 1,
            step => Some(step.highest_key()).filter(|_| step.adds())?,
        };
        let places = (0..=index).rev();
        let tries = places.flat_map(|place| [(place, 1), (place, key)]);
        tries.into_iter().find_map(|(place, key)| {
            let mut tried = steps.to_vec();
            let before = tried.remove(index);
            tried.insert(place, Operation::Add(key));
            if !fails(&tried) {
                return None;
            }
            let tried = without_needless(tried, fails);
            let is_plainer = place == index && before != Operation::Add(key);
            (tried.len() < steps.len() || is_plainer).then_some(tried)
        })
    })
}
