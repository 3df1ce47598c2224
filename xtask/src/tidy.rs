//! The rules of the sources that no compiler knows: columns, reminders with a name, words, and
//! which package may use which; and that a page which names tests names tests that exist.

mod pages;
mod source;
mod words;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::steps::STEPS;
use crate::workspace::{Package, Workspace};
use pages::PAGES;
use source::Source;

/// A rule that was broken, and where.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Breach {
    /// `path` or `path:line`, for an editor to follow.
    pub(crate) at: String,
    /// What is wrong.
    pub(crate) what: String,
}

/// Holds every source and every manifest of the workspace against the rules.
///
/// # Errors
///
/// A file or a folder that cannot be read.
pub(crate) fn breaches(workspace: &Workspace) -> io::Result<Vec<Breach>> {
    let mut found = Vec::new();
    for path in rust_files(&workspace.root)? {
        let text = fs::read_to_string(&path)?;
        let shown = path.strip_prefix(&workspace.root).unwrap_or(&path);
        check_file(shown, &text, &mut found);
    }
    let steps: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
    for page in PAGES {
        let text = fs::read_to_string(workspace.root.join(page))?;
        pages::check(page, &text, &workspace.root, &steps, &mut found);
    }
    for path in words::pages(&workspace.root)? {
        let shown = path.strip_prefix(&workspace.root).unwrap_or(&path);
        let text = fs::read_to_string(&path)?;
        words::check(shown, &text, &mut found);
        if shown.starts_with("docs/book") {
            let page = shown.to_string_lossy();
            pages::check(&page, &text, &workspace.root, &steps, &mut found);
        }
    }
    for package in &workspace.packages {
        check_package(package, &workspace.root, &mut found)?;
    }
    Ok(found)
}

/// The longest line, in characters. A line that holds an address may be longer.
const COLUMNS_MAX: usize = 100;

/// The state machine and its parts: time is an argument, and results are values.
const STATE_MACHINE: [&str; 10] = [
    "core/src/queue.rs",
    "core/src/queue/",
    "core/src/store.rs",
    "core/src/store/",
    "core/src/delay.rs",
    "core/src/lists.rs",
    "core/src/lists/",
    "core/src/segments.rs",
    "core/src/sleepers.rs",
    "core/src/limiter/",
];
/// The traits of a runtime, which the state machine does not know.
const RUNTIME_TRAITS: [&str; 4] = ["Clock", "Lock", "Timer", "Waker"];

fn check_file(path: &Path, text: &str, found: &mut Vec<Breach>) {
    let name = path.to_string_lossy().replace('\\', "/");
    let source = Source::scan(text);
    let mut report = |line: usize, what: String| {
        let at = format!("{name}:{line}");
        found.push(Breach { at, what });
    };

    for (index, line) in text.lines().enumerate() {
        let columns = line.chars().count();
        if columns > COLUMNS_MAX && !line.contains("://") {
            let what = format!("{columns} columns, {COLUMNS_MAX} at most");
            report(index + 1, what);
        }
    }
    for (line, comment) in &source.comments {
        if let Some(marker) = anonymous_marker(comment) {
            let what = format!("{marker} without a name, write {marker}(name)");
            report(*line, what);
        }
        if hides_the_end(comment) {
            let what = "an example ends only by a hidden line: show it".to_owned();
            report(*line, what);
        }
    }
    if name != words::LIST {
        for (line, word) in words::in_source(&source) {
            report(line, words::advice(word));
        }
    }
    if within(&name, &STATE_MACHINE) {
        for (line, word) in source.words() {
            if RUNTIME_TRAITS.contains(&word.as_str()) {
                report(line, format!("the state machine knows no {word}"));
            }
        }
    }
}

fn check_package(package: &Package, root: &Path, found: &mut Vec<Breach>) -> io::Result<()> {
    let mut report = |path: &Path, what: String| {
        let shown = path.strip_prefix(root).unwrap_or(path);
        let at = shown.to_string_lossy().into_owned();
        found.push(Breach { at, what });
    };

    let manifest = fs::read_to_string(&package.manifest)?;
    if !manifest.contains("[lints]\nworkspace = true") {
        let what = "the lints of the workspace are not inherited".to_owned();
        report(&package.manifest, what);
    }
    if let Some(library) = package.library.as_ref().filter(|_| package.published) {
        let source = Source::scan(&fs::read_to_string(library)?);
        if !source.contains("#![forbid(unsafe_code)]") {
            report(library, "no #![forbid(unsafe_code)]".to_owned());
        }
    }
    let (from, dependencies) = (&package.name, package.dependencies.iter());
    for to in dependencies.filter(|d| !d.only_for_tests).map(|d| &d.name) {
        if !arrow_points_down(from, to) {
            let what = format!("{from} may not depend on {to}: arrows point down only");
            report(&package.manifest, what);
        }
    }
    Ok(())
}

/// Whether one package may depend on another: on those below it, and on those from outside.
fn arrow_points_down(from: &str, to: &str) -> bool {
    match (floor(from), floor(to)) {
        (Some(from), Some(to)) => from > to,
        // A package without a floor is an example or a tool, above all, or comes from outside.
        _ => true,
    }
}

/// The layer of a published package. The suite is above the runtimes that it compares.
fn floor(package: &str) -> Option<u8> {
    match package {
        "requeue-core" => Some(0),
        "requeue-std" | "requeue-tokio" | "requeue-embassy" => Some(1),
        "requeue" => Some(2),
        "requeue-proptest" => Some(3),
        _ => None,
    }
}

/// The first reminder of a comment that has no name.
fn anonymous_marker(comment: &str) -> Option<&'static str> {
    ["TODO", "FIXME"].into_iter().find(|marker| {
        comment.match_indices(marker).any(|(at, _)| {
            let before = comment[..at].chars().next_back();
            let after = &comment[at + marker.len()..];
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let whole = !before.is_some_and(is_word) && !after.starts_with(is_word);
            let named = after
                .strip_prefix('(')
                .and_then(|rest| rest.split_once(')'))
                .is_some_and(|(name, _)| !name.trim().is_empty());
            whole && !named
        })
    })
}

/// Whether a comment is a line of an example that is not shown and ends the program. A reader who
/// copies the rest waits for ever.
fn hides_the_end(comment: &str) -> bool {
    let line = comment.trim_start_matches(['/', '!']).trim_start();
    line.starts_with("# ") && line.contains("shut_down")
}

fn within(name: &str, places: &[&str]) -> bool {
    places.iter().any(|place| name.starts_with(place))
}

/// Whether a whole file is tests: under `tests/` or `benches/`, or a `tests.rs`.
/// Every Rust file below a folder, in order; what is built and what is hidden is left out.
fn rust_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    entries.sort();
    let mut files = Vec::new();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_symlink() || name.starts_with('.') {
            continue;
        }
        if path.is_dir() && name != "target" {
            files.extend(rust_files(&path)?);
        } else if name.ends_with(".rs") {
            files.push(path);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_file(name: &str, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        check_file(Path::new(name), text, &mut found);
        let show = |breach: &Breach| format!("{}: {}", breach.at, breach.what);
        found.iter().map(show).collect()
    }

    #[test]
    fn a_line_has_its_longest() {
        let (fits, too_long) = ("ä".repeat(100), "ä".repeat(101));
        assert_eq!(in_file("a.rs", &fits), [""; 0]);
        let found = in_file("a.rs", &format!("\n{too_long}"));
        assert_eq!(found, ["a.rs:2: 101 columns, 100 at most"]);
        assert_eq!(in_file("a.rs", &format!("// https://{too_long}")), [""; 0]);
    }

    #[test]
    fn an_example_shows_how_it_ends() {
        let expected = ["a.rs:1: an example ends only by a hidden line: show it"];
        for doc in ["///", "//!", "    ///"] {
            assert_eq!(
                in_file("a.rs", &format!("{doc} # queue.shut_down();")),
                expected
            );
            assert_eq!(
                in_file("a.rs", &format!("{doc} queue.shut_down();")),
                [""; 0]
            );
            assert_eq!(
                in_file("a.rs", &format!("{doc} # async fn main() {{")),
                [""; 0]
            );
        }
    }

    #[test]
    fn a_reminder_has_a_name() {
        let expected = ["a.rs:1: TODO without a name, write TODO(name)"];
        for text in [
            "// TODO: later",
            "/* TODO() */",
            "a(); // TODO",
            "// TODO(me) TODO",
        ] {
            assert_eq!(in_file("a.rs", text), expected);
        }
        for text in ["// TODO(me): later", "// TODOS", "a(\"TODO\");", "todo!();"] {
            assert_eq!(in_file("a.rs", text), [""; 0]);
        }
        assert_eq!(in_file("a.rs", "// FIXME").len(), 1);
    }

    #[test]
    fn a_banned_word_is_found_in_comments_strings_and_names() {
        // In halves, because this file is checked as well.
        let (prose, name) = (format!("who{}", 'm'), format!("some{}", "body"));
        let text = format!("// {prose}\nfn is_{name}_here() {{}}\na(\"{prose} it\");");
        let text = format!("{text}\nstruct Every{}Sleeps;", "body");
        assert_eq!(in_file("a.rs", &text).len(), 4);
        assert_eq!(in_file(words::LIST, &text), [""; 0]);
        // Two identifiers are no phrase, and a part of a word is no word.
        let text = format!("for key in {} {{}}\nlet renewed;", "work");
        assert_eq!(in_file("a.rs", &text), [""; 0]);
    }

    #[test]
    fn the_state_machine_knows_no_runtime() {
        let text = "/// Not a Clock.\nuse crate::time::{Clock, Instant};\n";
        let found = in_file("core/src/queue/query.rs", text);
        assert_eq!(
            found,
            ["core/src/queue/query.rs:2: the state machine knows no Clock"]
        );
        assert_eq!(in_file("core/src/shared.rs", text), [""; 0]);
    }

    #[test]
    fn arrows_point_down() {
        let allowed = |from, to| arrow_points_down(from, to);
        assert!(allowed("requeue-std", "requeue-core"));
        assert!(allowed("requeue", "requeue-std"));
        assert!(allowed("requeue-proptest", "requeue-std"));
        assert!(allowed("mirror", "requeue-proptest"));
        assert!(allowed("requeue-core", "heapless"));
        assert!(!allowed("requeue-core", "requeue-std"));
        assert!(!allowed("requeue-std", "requeue-tokio"));
        assert!(!allowed("requeue", "requeue-proptest"));
    }
}
