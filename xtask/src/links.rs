//! Links of pages: whether what they lead to is there.

use std::fs;
use std::path::{Path, PathBuf};

/// Where a page says something that does not hold: its line, from 1, and what is wrong.
pub(crate) type Mistake = (usize, String);

/// Checks the links, pictures and inclusions of a Markdown page. Addresses of the web are left out.
pub(crate) fn check(page: &Path, text: &str) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    let mut is_code = false;
    for (index, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        let targets = match (is_fence, is_code) {
            (true, _) => Vec::new(),
            (false, true) => included(line),
            (false, false) => targets(line),
        };
        for target in targets {
            if let Some(what) = mistake(page, text, &target) {
                mistakes.push((index + 1, what));
            }
        }
    }
    mistakes
}

/// The inclusion of a line of code: a path, without its anchor.
fn included(line: &str) -> Vec<String> {
    let path = line.trim().strip_prefix("{{#include ");
    let path = path.and_then(|rest| rest.strip_suffix("}}"));
    let path = path.and_then(|path| path.split(':').next());
    path.map(|path| vec![path.trim().to_owned()])
        .unwrap_or_default()
}

/// What the links of a line of prose lead to. What stands between backticks is no link.
pub(crate) fn targets(line: &str) -> Vec<String> {
    // Every other piece is code; a link's text may be code, and its target is not.
    let prose: Vec<&str> = line.split('`').step_by(2).collect();
    let prose = prose.join("");
    let links = prose.split("](").skip(1);
    let links = links.filter_map(|rest| rest.split_once(')'));
    links.map(|(target, _)| target.to_owned()).collect()
}

fn mistake(page: &Path, text: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = match target.split_once('#') {
        Some((path, heading)) => (path, Some(heading)),
        None => (target, None),
    };
    let place = page.parent().unwrap_or(Path::new("")).join(path);
    if !path.is_empty() && !place.exists() {
        return Some(format!("`{target}` does not exist"));
    }
    let heading = heading.filter(|_| path.is_empty() || path.ends_with(".md"))?;
    let other = if path.is_empty() {
        Ok(text.to_owned())
    } else {
        fs::read_to_string(&place)
    };
    let is_there = other.is_ok_and(|other| headings(&other).iter().any(|name| name == heading));
    (!is_there).then(|| format!("`{target}` has no such heading"))
}

/// The names under which the headings of a page can be linked.
fn headings(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut names = Vec::new();
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        if line.starts_with('#') && !is_code {
            names.push(slug(line.trim_start_matches('#').trim()));
        }
    }
    names
}

fn slug(heading: &str) -> String {
    let heading = heading.to_lowercase().replace(' ', "-");
    let kept = heading.chars();
    kept.filter(|c| c.is_alphanumeric() || "-_".contains(*c))
        .collect()
}

/// Every file below a folder whose name ends so, in order.
///
/// # Errors
///
/// A folder that cannot be read.
pub(crate) fn files(folder: &Path, end: &str) -> std::io::Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(end) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(text: &str) -> Vec<Mistake> {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
        check(&page, text)
    }

    #[test]
    fn what_is_there_may_be_linked() {
        let text = "# How a run ends\n[a](src/main.rs), [`b`](#how-a-run-ends) [c](https://d.e)\n\
                    ```rust\n{{#include src/links.rs:anchor}}\n```\n`[no](link)`";
        assert_eq!(mistakes(text), []);
    }

    #[test]
    fn what_is_not_there_is_found_with_its_line() {
        let text = "\n[a](nowhere.md) [b](#no-heading)\n```\n{{#include nowhere.rs}}\n```";
        let found: Vec<usize> = mistakes(text).into_iter().map(|(line, _)| line).collect();
        assert_eq!(found, [2, 2, 4]);
        let found = mistakes("[a](../README.md#no-such-heading)");
        assert_eq!(
            found,
            [(
                1,
                "`../README.md#no-such-heading` has no such heading".to_owned()
            )]
        );
    }

    #[test]
    fn a_heading_is_named_as_pages_of_repositories_name_it() {
        assert_eq!(slug("What, if `N` is 2?"), "what-if-n-is-2");
    }
}
