//! Whether what a page says is there is there.

use std::fs;
use std::path::Path;

use super::Breach;

/// The pages that say which test holds which promise.
pub(super) const PAGES: [&str; 4] = [
    "docs/verification.md",
    "docs/several-machines.md",
    "kube/README.md",
    "examples/mirror/README.md",
];

/// Holds each piece of code that a page quotes between backticks against the repository:
///
/// - `path/to/file.rs::name` is a file in which the word occurs: a function, or a row of a macro;
/// - a word with a slash in it that begins as a path does is a file or a folder;
/// - `cargo xtask ci step` names a step of this program.
pub(super) fn check(page: &str, text: &str, root: &Path, steps: &[&str], found: &mut Vec<Breach>) {
    for (index, line) in text.lines().enumerate() {
        // Every other piece stands between two backticks.
        for quoted in line.split('`').skip(1).step_by(2) {
            if let Some(what) = mistake(quoted, root, steps) {
                let at = format!("{page}:{}", index + 1);
                found.push(Breach { at, what });
            }
        }
    }
}

fn mistake(quoted: &str, root: &Path, steps: &[&str]) -> Option<String> {
    if let Some(step) = quoted.strip_prefix("cargo xtask ci ") {
        let unknown = !steps.contains(&step);
        return unknown.then(|| format!("no step is called `{step}`"));
    }
    let (path, name) = match quoted.split_once(".rs::") {
        Some((stem, name)) => (format!("{stem}.rs"), Some(name)),
        None => (quoted.to_owned(), None),
    };
    let begins = |folder: &&str| path.starts_with(*folder);
    if path.contains(char::is_whitespace) || !FOLDERS.iter().any(begins) {
        return None;
    }
    let place = root.join(&path);
    let Some(name) = name else {
        return (!place.exists()).then(|| format!("`{path}` does not exist"));
    };
    match fs::read_to_string(&place) {
        Ok(source) if has_word(&source, name) => None,
        Ok(_) => Some(format!("nothing in `{path}` is called `{name}`")),
        Err(error) => Some(format!("`{path}`: {error}")),
    }
}

/// What paths begin with.
const FOLDERS: [&str; 11] = [
    "core/",
    "runtime-std/",
    "runtime-tokio/",
    "runtime-embassy/",
    "proptest/",
    "examples/",
    "kube/",
    "shards/",
    "xtask/",
    "docs/",
    ".c",
];

fn has_word(source: &str, word: &str) -> bool {
    let mut words = source.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|other| other == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(text: &str) -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut found = Vec::new();
        check("page.md", text, &root, &["tidy", "fmt"], &mut found);
        let show = |breach: &Breach| format!("{}: {}", breach.at, breach.what);
        found.iter().map(show).collect()
    }

    #[test]
    fn what_is_there_may_be_named() {
        let text = "`xtask/src/tidy/pages.rs::what_is_there_may_be_named`, `docs/design.md`\n\
                    `core/src`, `cargo xtask ci tidy`, `core::fmt`, `a / b`, `Queue`";
        assert_eq!(mistakes(text), [""; 0]);
    }

    #[test]
    fn what_is_not_there_is_found_with_its_line() {
        let name = ["no", "such", "test"].join("_");
        let text = format!("\n`xtask/src/tidy/pages.rs::{name}`");
        let file = "`xtask/src/tidy/pages.rs`";
        let expected = format!("page.md:2: nothing in {file} is called `{name}`");
        assert_eq!(mistakes(&text), [expected]);
        assert_eq!(
            mistakes("`core/nowhere.rs`, `cargo xtask ci tidiness`"),
            [
                "page.md:1: `core/nowhere.rs` does not exist",
                "page.md:1: no step is called `tidiness`"
            ]
        );
        assert_eq!(mistakes("`core/nowhere.rs::name`").len(), 1);
    }
}
