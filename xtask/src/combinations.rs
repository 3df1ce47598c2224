//! Combinations of a package's features.

/// Combinations of some features, smaller ones first: none, each alone, all but one, and all. Of
/// four and fewer, all there are.
///
/// What features do to each other is seen where all are on, and what one of them lacked where
/// another one is off. Of n features these are O(n) combinations, not 2ⁿ.
pub(crate) fn combinations(features: &[String]) -> Vec<Vec<&str>> {
    let count = features.len();
    let names = || features.iter().map(String::as_str);
    if count <= 4 {
        let sets = (0_u8..1 << count).map(|set| {
            let chosen = names()
                .enumerate()
                .filter(|(index, _)| set >> index & 1 == 1);
            chosen.map(|(_, name)| name).collect()
        });
        let mut sets: Vec<Vec<&str>> = sets.collect();
        sets.sort_by_key(Vec::len);
        return sets;
    }
    let mut sets: Vec<Vec<&str>> = vec![Vec::new()];
    sets.extend(names().map(|name| vec![name]));
    sets.extend((0..count).rev().map(|out| {
        let others = names().enumerate().filter(|(index, _)| *index != out);
        others.map(|(_, name)| name).collect()
    }));
    sets.push(names().collect());
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
    fn of_six_features_each_one_is_on_alone_and_off_alone() {
        let features = named(&["a", "b", "c", "d", "e", "f"]);
        let mut sets = combinations(&features);
        assert_eq!(sets.len(), 1 + 6 + 6 + 1);
        assert!(sets.contains(&vec!["b"]));
        assert!(sets.contains(&vec!["a", "b", "d", "e", "f"]));
        sets.sort();
        sets.dedup();
        assert_eq!(sets.len(), 14);
    }
}
