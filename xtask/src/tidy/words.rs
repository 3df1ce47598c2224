//! Words that may not occur in prose or in names, because no reader expects them there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Breach;
use super::source::Source;

/// This file, which has to name the words.
pub(super) const LIST: &str = "xtask/src/tidy/words.rs";

/// What may not be written, and what is written instead.
const BANNED: [(&str, &str); 23] = [
    ("whom", "name the thing: \"wakes one waiter\""),
    ("whomever", "\"the caller\", or name the thing"),
    ("whoever", "\"the caller\", or name the thing"),
    ("nobody", "\"no\" and the thing: \"no getter\""),
    ("somebody", "name the thing"),
    ("everybody", "\"every\" and the thing"),
    ("anew", "\"again\", or \"rebuilt\""),
    ("himself", "name the thing"),
    ("besides", "\"also\", or leave it out"),
    ("in work", "\"active\""),
    ("put to rest", "\"retired\""),
    ("is told", "\"learns\", or \"reports\""),
    ("are told", "\"learn\", or \"reports\""),
    ("being told", "\"reported\""),
    ("be told", "\"learn\", or \"see\""),
    ("been told", "\"seen\", or \"learnt\""),
    ("was told", "\"saw\", or \"learnt\""),
    ("not told", "\"does not learn\""),
    ("keeper", "\"timer owner\""),
    ("memories", "\"failure records\""),
    ("nothing if", "\"`None` if\""),
    ("answers whether", "\"returns whether\""),
    ("answers how", "\"returns how\""),
];

/// The first banned word or phrase of a text, whole words only.
pub(super) fn banned(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    let mut words = BANNED.iter().map(|(word, _)| *word);
    words.find(|word| {
        text.match_indices(word).any(|(at, found)| {
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let before = text[..at].chars().next_back();
            let after = text[at + found.len()..].chars().next();
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        })
    })
}

/// The banned words of a Rust file, in comments, in literals, and in the parts of identifiers, with
/// their line numbers from 1.
pub(super) fn in_source(source: &Source) -> Vec<(usize, &'static str)> {
    let pieces = source.comments.iter().chain(&source.literals);
    let texts = pieces.map(|(line, text)| (*line, text.replace('_', " ")));
    let names = source.all_words().into_iter();
    let names = names.map(|(line, name)| (line, parts(&name)));
    let mut found: Vec<_> = texts
        .chain(names)
        .filter_map(|(line, text)| Some((line, banned(&text)?)))
        .collect();
    found.sort_unstable();
    found
}

/// The words of an identifier: `is_ready` and `IsReady` are two.
fn parts(name: &str) -> String {
    let mut parts = String::with_capacity(name.len());
    let mut was_lower = false;
    for c in name.chars() {
        if c == '_' || (c.is_uppercase() && was_lower) {
            parts.push(' ');
        }
        was_lower = c.is_lowercase();
        if c != '_' {
            parts.push(c);
        }
    }
    parts
}

/// What to do about a banned word.
pub(super) fn advice(word: &str) -> String {
    let instead = BANNED.iter().find(|(banned, _)| *banned == word);
    let instead = instead.map_or("", |(_, instead)| instead);
    format!("\"{word}\": write {instead}")
}

/// Checks a page. Code between fences does not count.
pub(super) fn check(page: &Path, text: &str, found: &mut Vec<Breach>) {
    let mut is_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if let Some(word) = banned(line).filter(|_| !is_code) {
            let at = format!("{}:{}", page.display(), index + 1);
            let what = advice(word);
            found.push(Breach { at, what });
        }
    }
}

/// Every Markdown page of the repository: below the root, and three folders deep.
pub(super) fn pages(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    let mut folders = vec![(root.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_symlink() || name.starts_with('.') || name == "target" {
                continue;
            }
            if path.is_dir() && depth < 3 {
                folders.push((path, depth + 1));
            } else if name.ends_with(".md") && name != "FORMAT.md" {
                pages.push(path);
            }
        }
    }
    pages.sort();
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_banned_phrase_is_found_in_whole_words() {
        assert_eq!(banned("A key that is in work is kept."), Some("in work"));
        assert_eq!(banned("It was made Anew."), Some("anew"));
        assert_eq!(banned("a renewed key, in workers, told"), None);
    }

    #[test]
    fn an_identifier_has_parts() {
        assert_eq!(parts("is_ready"), "is ready");
        assert_eq!(parts("IsReady"), "Is Ready");
        assert_eq!(parts("NEVER"), "NEVER");
    }

    #[test]
    fn each_phrase_has_its_advice() {
        for (word, instead) in BANNED {
            assert!(advice(word).contains(instead), "{word}");
        }
    }

    #[test]
    fn code_on_a_page_does_not_count() {
        let mut found = Vec::new();
        check(
            Path::new("a.md"),
            "```\nnobody\n```\nsomebody\n",
            &mut found,
        );
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].at, "a.md:4");
    }
}
