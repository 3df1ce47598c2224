//! The state machine knows no runtime, every package has the lints, every test is run, and pages name
//! only tests that exist. `deny.toml` has the layers of packages.

use std::fs;
use std::path::Path;

use crate::cmd::{cmd, read, root};
use crate::report::{Verdict, verdict};
use crate::steps::STEPS;
use crate::workspace::{OURS, Package, members};

/// A rule: the files of which it holds, and the mistake in one of their lines.
type Rule = (&'static str, fn(&str) -> Option<String>);

const RULES: [Rule; 4] = [
    (STATE_MACHINE, runtime_trait),
    ("core/src/*.rs runtime-*/src/*.rs", |line| {
        line.trim_start().strip_prefix("//").and_then(other_path)
    }),
    ("core/README.md runtime-*/README.md", other_path),
    // Every second piece is between two backticks.
    (PAGES, |line| {
        line.split('`').skip(1).step_by(2).find_map(mistake)
    }),
];

/// Checks every source, every manifest and every page that names tests.
///
/// # Errors
///
/// The places where a rule is broken, as links for an editor, or a file that cannot be read.
pub(crate) fn run() -> Verdict {
    println!("$ cargo xtask ci tidy");
    let mut found = Vec::new();
    for (patterns, rule) in RULES {
        for path in committed(patterns)? {
            let text = read(&path)?;
            let is_before_tests = |line: &&str| !path.ends_with(".rs") || *line != "#[cfg(test)]";
            for (number, line) in (1..).zip(text.lines().take_while(is_before_tests)) {
                found.extend(rule(line).map(|what| format!("{path}:{number}: {what}")));
            }
        }
    }
    for package in &members(OURS)? {
        check_package(package, &mut found)?;
    }
    verdict(&found)
}

/// The files of the repository that match, including uncommitted ones.
///
/// # Errors
///
/// There is no git, or a pattern matches nothing, perhaps because a file was renamed.
pub(crate) fn committed(patterns: &str) -> Verdict<Vec<String>> {
    let mut files = Vec::new();
    for pattern in patterns.split_whitespace() {
        let list = cmd("git ls-files --cached --others --exclude-standard --").arg(pattern);
        let list = list.read()?;
        let there = list.lines().filter(|path| root().join(path).is_file());
        let before = files.len();
        files.extend(there.map(str::to_owned));
        if files.len() == before {
            return Err(format!("no file is called {pattern}").into());
        }
    }
    Ok(files)
}

/// The state machine and its parts: time is an argument, and results are values.
const STATE_MACHINE: &str = "core/src/queue.rs core/src/queue core/src/store.rs core/src/store \
                             core/src/delay.rs core/src/lists.rs core/src/lists \
                             core/src/segments.rs core/src/sleepers.rs core/src/limiter";
/// The traits of a runtime, which the state machine must not know.
const RUNTIME_TRAITS: [&str; 4] = ["Clock", "Lock", "Timer", "Waker"];

fn runtime_trait(line: &str) -> Option<String> {
    let is_known = |name: &&&str| !line.trim_start().starts_with("//") && has_word(line, name);
    let name = RUNTIME_TRAITS.iter().find(is_known)?;
    Some(format!("the state machine knows no {name}"))
}

/// Examples write the path of the facade, which their readers write.
fn other_path(line: &str) -> Option<String> {
    let code = line.trim_start_matches(['/', '!', ' ', '#']);
    let is_other = code.starts_with("use requeue_");
    is_other.then(|| "an example writes `requeue::…`".to_owned())
}

fn check_package(package: &Package, found: &mut Vec<String>) -> Verdict {
    let manifest = &package.manifest;
    // Their lints are those of the workspace, but for an `unsafe impl` and for exported names.
    let has_own_lints = ["requeue-interrupts", "requeue-wasm"].contains(&package.name.as_str());
    if !has_own_lints && !read(manifest)?.contains("[lints]\nworkspace = true") {
        found.push(format!("{manifest}: no lints of the workspace"));
    }
    let tests = Path::new(manifest).with_file_name("tests");
    let parts = read(tests.join("main.rs")).unwrap_or_default();
    for entry in fs::read_dir(&tests).into_iter().flatten() {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let is_named = parts.contains(&format!("mod {name};"))
            || read(manifest)?.contains(&format!("[[test]]\nname = \"{name}\""));
        // Without `main.rs`, each file is a program.
        if !parts.is_empty() && name != "main" && path.is_file() && !is_named {
            found.push(format!("{}: is not compiled", path.display()));
        }
    }
    Ok(())
}

/// The pages that name the tests of promises.
const PAGES: &str = "docs/verification.md docs/stability.md docs/several-machines.md kube/README.md \
                     examples/mirror/README.md docs/book/*.md";

/// The beginnings of paths on these pages.
const FOLDERS: &str = "core/ runtime-std/ runtime-tokio/ runtime-embassy/ runtime-bare/ proptest/ examples/ \
                       kube/ shards/ inspect/ xtask/ docs/ .c";

/// The mistake in a piece of code between backticks:
///
/// - `path/to/file.rs::name` is a file that contains the word, as a function or in a macro. A story of
///   the kit is named in the same way, with its `.txt`.
/// - A word with a slash and the beginning of a path is a file or a folder.
/// - `cargo xtask ci step` names a step of this program.
fn mistake(quoted: &str) -> Option<String> {
    if let Some(step) = quoted.strip_prefix("cargo xtask ci ") {
        let is_known = STEPS.iter().any(|known| known.name == step);
        return (!is_known).then(|| format!("no step is called `{step}`"));
    }
    let (path, name) = match quoted.split_once("::") {
        Some((path, name)) if path.ends_with(".rs") || path.ends_with(".txt") => (path, Some(name)),
        _ => (quoted, None),
    };
    let mut folders = FOLDERS.split_whitespace();
    if path.contains(char::is_whitespace) || !folders.any(|folder| path.starts_with(folder)) {
        return None;
    }
    let is_there = match name {
        None => root().join(path).exists(),
        Some(name) => read(path).is_ok_and(|source| has_word(&source, name)),
    };
    (!is_there).then(|| format!("there is no `{quoted}`"))
}

fn has_word(text: &str, word: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|other| other == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_break_a_rule_are_found() {
        assert!(runtime_trait("use crate::time::{Clock, Instant};").is_some());
        assert_eq!(runtime_trait("/// Not a Clock, but Clocks."), None);
        assert_eq!(runtime_trait("use crate::time::Clocks;"), None);
        assert!(other_path("/ # use requeue_std::WorkQueue;").is_some());
        assert_eq!(other_path("/ use requeue::Queue;"), None);
        assert!(committed("core/src/nowhere.rs").is_err());
    }

    #[test]
    fn only_what_is_there_may_be_named() {
        let there = "xtask/src/tidy.rs::only_what_is_there_may_be_named";
        for good in [there, "core/src", "core::fmt", "cargo xtask ci tidy"] {
            assert_eq!(mistake(good), None);
        }
        let name = ["no", "such", "test"].join("_");
        assert!(mistake(&format!("xtask/src/tidy.rs::{name}")).is_some());
        for wrong in [
            "core/nowhere.rs",
            "core/nowhere.rs::name",
            "cargo xtask ci tidiness",
        ] {
            assert!(mistake(wrong).is_some(), "{wrong}");
        }
    }
}
