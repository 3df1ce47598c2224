//! Combinations of a package's features.

/// Combinations of some features, smaller ones first: none, each, each pair, all but one, and all.
///
/// What two features do to each other is seen in a pair, and what one was lacking in its absence.
/// Of n features these are O(n²) combinations, not 2ⁿ; of four and fewer, all there are.
pub(crate) fn combinations(features: &[String]) -> Vec<Vec<&str>> {
    let count = features.len();
    let names = || features.iter().map(String::as_str);
    let mut sets: Vec<Vec<&str>> = vec![Vec::new()];
    sets.extend(names().map(|name| vec![name]));
    for (index, first) in names().enumerate() {
        sets.extend(names().skip(index + 1).map(|second| vec![first, second]));
    }
    if count > 3 {
        sets.extend((0..count).rev().map(|out| {
            let others = names().enumerate().filter(|(index, _)| *index != out);
            others.map(|(_, name)| name).collect()
        }));
    }
    if count > 2 {
        sets.push(names().collect());
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn nothing_has_one_combination() {
        assert_eq!(combinations(&[]), [Vec::<&str>::new()]);
    }

    #[test]
    fn few_features_have_all_combinations() {
        let all = ["a", "b", "c", "d"];
        for count in 0..=all.len() {
            let features = named(&all[..count]);
            let mut sets = combinations(&features);
            assert!(sets.is_sorted_by_key(Vec::len));
            sets.sort();
            sets.dedup();
            assert_eq!(sets.len(), 1 << count, "{sets:?}");
        }
    }

    #[test]
    fn of_six_features_each_pair_is_on_and_each_one_is_off_alone() {
        let features = named(&["a", "b", "c", "d", "e", "f"]);
        let mut sets = combinations(&features);
        assert_eq!(sets.len(), 1 + 6 + 15 + 6 + 1);
        assert!(sets.contains(&vec!["b", "e"]));
        assert!(sets.contains(&vec!["a", "b", "d", "e", "f"]));
        sets.sort();
        sets.dedup();
        assert_eq!(sets.len(), 29);
    }
}
