//! What CHANGELOG.md says about what is released.

use std::fs;

use super::verdict;
use crate::report::Verdict;
use crate::workspace::Workspace;

/// Looks for what is to be released; at a tag of the version, for what it has released.
pub(super) fn check(workspace: &Workspace) -> Verdict {
    println!("$ cargo xtask release --dry-run changelog");
    let file = workspace.root.join("CHANGELOG.md");
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    let version = workspace.published().next().map(|first| &first.version);
    let version = version.ok_or_else(|| "nothing is published".to_owned())?;
    let arguments = vec!["tag", "--points-at", "HEAD"];
    let tags = super::printed("git", arguments, &workspace.root)?;
    let is_tagged = tags.lines().any(|tag| tag == format!("v{version}"));
    let mistake = mistake(&text, version, is_tagged);
    verdict(&mistake.into_iter().collect::<Vec<_>>())
}

/// What is wrong: before a tag something has to be there, at a tag nothing may be left over.
fn mistake(text: &str, version: &str, is_tagged: bool) -> Option<String> {
    let unreleased = section(text, "[Unreleased]");
    let has_more = unreleased.is_some_and(|(_, entries)| entries > 0);
    let released = section(text, &format!("[{version}]"));
    match released {
        Some((rest, _)) if !rest.strip_prefix(" - ").is_some_and(is_date) => {
            let wanted = format!("## [{version}] - YYYY-MM-DD");
            Some(format!("CHANGELOG.md: {version} has no date: `{wanted}`"))
        }
        Some((_, 0)) => Some(format!("CHANGELOG.md: {version} has no entries")),
        None if is_tagged => Some(format!("CHANGELOG.md: no section [{version}], the tag's")),
        Some(_) if is_tagged && has_more => {
            Some("CHANGELOG.md: [Unreleased] has entries at a tag".to_owned())
        }
        None if !has_more => Some(format!(
            "CHANGELOG.md: nothing under [Unreleased], and no section [{version}]"
        )),
        _ => None,
    }
}

/// What stands behind a title in its line, and how many entries its section has.
fn section<'a>(text: &'a str, title: &str) -> Option<(&'a str, usize)> {
    let mut lines = text.lines();
    let rest = lines.find_map(|line| line.strip_prefix("## ")?.strip_prefix(title))?;
    let section = lines.take_while(|line| !line.starts_with("## "));
    let entries = section.filter(|line| line.starts_with("- ")).count();
    Some((rest, entries))
}

fn is_date(text: &str) -> bool {
    let digit = |c: char| if c.is_ascii_digit() { '0' } else { c };
    text.chars().map(digit).eq("0000-00-00".chars())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &str = "## [Unreleased]\n- b\n## [1.2.3] - 2026-01-31\n### Added\n- a\n";
    const RELEASED: &str = "## [Unreleased]\n\n## [1.2.3] - 2026-01-31\n- a\n";

    #[test]
    fn something_is_to_be_released() {
        assert_eq!(mistake("## [Unreleased]\n- a\n", "1.2.3", false), None);
        assert_eq!(mistake(RELEASED, "1.2.3", false), None);
        assert_eq!(mistake(BOTH, "1.2.3", false), None);
        let found = mistake("## [Unreleased]\n", "1.2.3", false).unwrap();
        assert!(found.contains("nothing under"), "{found}");
        let found = mistake("## [1.2.2] - 2026-01-31\n- a\n", "1.2.3", false).unwrap();
        assert!(found.contains("nothing under"), "{found}");
    }

    #[test]
    fn at_a_tag_nothing_is_left_over() {
        assert_eq!(mistake(RELEASED, "1.2.3", true), None);
        let found = mistake(BOTH, "1.2.3", true).unwrap();
        assert!(found.contains("at a tag"), "{found}");
        let found = mistake("## [Unreleased]\n- a\n", "1.2.3", true).unwrap();
        assert!(found.contains("no section [1.2.3]"), "{found}");
    }

    #[test]
    fn a_release_has_a_date_and_entries() {
        for title in ["## [1.2.3]", "## [1.2.3] - soon", "## [1.2.3] 2026-01-31"] {
            let found = mistake(&format!("{title}\n- a\n"), "1.2.3", false).unwrap();
            assert!(found.contains("no date"), "{found}");
        }
        let found = mistake("## [1.2.3] - 2026-01-31\n", "1.2.3", false).unwrap();
        assert!(found.contains("no entries"), "{found}");
    }
}
