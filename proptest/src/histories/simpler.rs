//! Making a history that fails shorter and plainer, after proptest has.

use super::Operation;
use crate::subject::Call;

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

/// Puts plain adds and gets in the place of others, or elsewhere, where the history still fails.
/// What proptest ends with depends on which kinds of steps there are, and this much less.
pub(super) fn with_plain_steps(
    mut steps: Vec<Operation>,
    fails: &dyn Fn(&[Operation]) -> bool,
) -> Vec<Operation> {
    while let Some(plainer) = plainer(&steps, fails) {
        steps = plainer;
    }
    steps
}

/// The same history with one step made plain. Then it is shorter, or has one plain step more.
fn plainer(steps: &[Operation], fails: &dyn Fn(&[Operation]) -> bool) -> Option<Vec<Operation>> {
    (0..steps.len()).find_map(|index| {
        let key = match &steps[index] {
            Operation::Add(1) | Operation::Start(Call::Get) => return None,
            Operation::Start(_) => {
                let mut tried = steps.to_vec();
                tried[index] = Operation::Start(Call::Get);
                return fails(&tried).then_some(tried);
            }
            Operation::AddMany(_) => 1,
            step => Some(step.highest_key()).filter(|_| step.adds())?,
        };
        let later = index + 1..steps.len();
        let places = (0..=index).rev().chain(later);
        let tries = places.flat_map(|place| [(place, 1), (place, key)]);
        tries.into_iter().find_map(|(place, key)| {
            let mut tried = steps.to_vec();
            let before = tried.remove(index);
            tried.insert(place, Operation::Add(key));
            if !fails(&tried) {
                return None;
            }
            let was_plain = matches!(before, Operation::Add(_));
            let is_plainer = !was_plain || place == index && before != Operation::Add(key);
            let tried = without_needless(tried, fails);
            (tried.len() < steps.len() || is_plainer).then_some(tried)
        })
    })
}
