//! Every combination of a package's features.

/// All subsets of some features, the empty one first, smaller ones before larger ones.
///
/// There are `2^n` of them, for `n` of at most [`FEATURES_MAX`].
///
/// # Errors
///
/// More features than that: checking all of their sets would take too long.
pub(crate) fn powerset(features: &[String]) -> Result<Vec<Vec<&str>>, String> {
    if features.len() > FEATURES_MAX {
        let count = features.len();
        return Err(format!("{count} features, {FEATURES_MAX} at most"));
    }
    let mut sets: Vec<Vec<&str>> = (0..1_u32 << features.len())
        .map(|mask| {
            let is_in = |index: &usize| mask >> index & 1 == 1;
            let chosen = (0..features.len()).filter(is_in);
            chosen.map(|index| features[index].as_str()).collect()
        })
        .collect();
    sets.sort_by_key(Vec::len);
    Ok(sets)
}

/// 64 combinations.
const FEATURES_MAX: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn nothing_has_one_subset() {
        assert_eq!(powerset(&[]), Ok(vec![vec![]]));
    }

    #[test]
    fn three_features_make_eight_combinations() {
        let expected: [&[&str]; 8] = [
            &[],
            &["a"],
            &["b"],
            &["c"],
            &["a", "b"],
            &["a", "c"],
            &["b", "c"],
            &["a", "b", "c"],
        ];
        let features = named(&["a", "b", "c"]);
        let sets = powerset(&features);
        assert_eq!(sets, Ok(expected.map(<[&str]>::to_vec).to_vec()));
    }

    #[test]
    fn no_combination_comes_twice() {
        let features = named(&["a", "b", "c", "d", "e", "f"]);
        let mut sets = powerset(&features).unwrap();
        assert_eq!(sets.len(), 64);
        sets.sort();
        sets.dedup();
        assert_eq!(sets.len(), 64);
    }

    #[test]
    fn too_many_features_are_an_error() {
        let features = named(&["a", "b", "c", "d", "e", "f", "g"]);
        assert!(powerset(&features).is_err());
    }
}
