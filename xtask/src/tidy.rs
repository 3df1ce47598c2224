//! The state machine knows no runtime, every package has the lints, every test is run, and pages name
//! only tests that exist. `deny.toml` has the layers of packages.

use std::fs;
use std::path::Path;

use crate::cmd::{cmd, read, root};
use crate::report::{Verdict, verdict};
use crate::steps::STEPS;
use crate::workspace::{OURS, Package, members};

/// Checks every source, every manifest and every page that names tests.
///
/// # Errors
///
/// The places where a rule is broken, as links for an editor, or a file that cannot be read.
pub(crate) fn run() -> Verdict {
    println!("$ cargo xtask ci tidy");
    let mut found = Vec::new();
    for path in committed(STATE_MACHINE)? {
        check_state_machine(&path, &read(&path)?, &mut found);
    }
    for path in committed("core/src/*.rs runtime-*/src/*.rs core/README.md runtime-*/README.md")? {
        check_examples(&path, &read(&path)?, &mut found);
    }
    for page in committed(PAGES)? {
        check_page(&page, &read(&page)?, &mut found);
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

fn check_state_machine(path: &str, text: &str, found: &mut Vec<String>) {
    let code = text.lines().take_while(|line| *line != "#[cfg(test)]");
    let code = (1..)
        .zip(code)
        .filter(|(_, line)| !line.trim_start().starts_with("//"));
    for (number, line) in code {
        for name in RUNTIME_TRAITS.iter().filter(|name| has_word(line, name)) {
            found.push(format!(
                "{path}:{number}: the state machine knows no {name}"
            ));
        }
    }
}

/// Examples write the path of the facade, which their readers write.
fn check_examples(path: &str, text: &str, found: &mut Vec<String>) {
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let is_shown = line.starts_with("//") || path.ends_with(".md");
        if is_shown
            && line
                .trim_start_matches(['/', '!', ' ', '#'])
                .starts_with("use requeue_")
        {
            found.push(format!("{path}:{number}: an example writes `requeue::…`"));
        }
    }
}

fn check_package(package: &Package, found: &mut Vec<String>) -> Verdict {
    let manifest = &package.manifest;
    // Their lints are those of the workspace, but for an `unsafe impl` and for exported names.
    let has_own_lints = ["requeue-interrupts", "requeue-wasm"].contains(&package.name.as_str());
    if !has_own_lints && !read(manifest)?.contains("[lints]\nworkspace = true") {
        found.push(format!(
            "{manifest}: the lints of the workspace are not inherited"
        ));
    }
    if let Some(library) = package.library.as_ref().filter(|_| package.published)
        && !read(library)?.contains("\n#![forbid(unsafe_code)]\n")
    {
        found.push(format!("{library}: no #![forbid(unsafe_code)]"));
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
            found.push(format!(
                "{}: no program of tests contains it",
                path.display()
            ));
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

/// Checks each piece of code between backticks on a page:
///
/// - `path/to/file.rs::name` is a file that contains the word, as a function or in a macro. A story of
///   the kit is named in the same way, with its `.txt`.
/// - A word with a slash and the beginning of a path is a file or a folder.
/// - `cargo xtask ci step` names a step of this program.
fn check_page(page: &str, text: &str, found: &mut Vec<String>) {
    for (number, line) in (1..).zip(text.lines()) {
        // Every second piece is between two backticks.
        let mistakes = line.split('`').skip(1).step_by(2).filter_map(mistake);
        found.extend(mistakes.map(|what| format!("{page}:{number}: {what}")));
    }
}

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
    match name {
        None if Path::exists(&root().join(path)) => None,
        Some(name) if read(path).is_ok_and(|source| has_word(&source, name)) => None,
        None => Some(format!("`{path}` does not exist")),
        Some(name) => Some(format!("nothing in `{path}` is called `{name}`")),
    }
}

fn has_word(text: &str, word: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|other| other == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_machine_knows_no_runtime() {
        let text = "/// Not a Clock.\nuse crate::time::{Clock, Instant};\n#[cfg(test)]\nClock";
        let mut found = Vec::new();
        check_state_machine("core/src/queue/query.rs", text, &mut found);
        assert_eq!(
            found,
            ["core/src/queue/query.rs:2: the state machine knows no Clock"]
        );
        assert!(committed("core/src/nowhere.rs").is_err());
    }

    #[test]
    fn examples_write_the_path_of_their_readers() {
        let text =
            "use requeue_core::Queue;\n/// use requeue::Queue;\n/// use requeue_std::WorkQueue;";
        let mut found = Vec::new();
        check_examples("core/src/a.rs", text, &mut found);
        assert_eq!(found, ["core/src/a.rs:3: an example writes `requeue::…`"]);
    }

    fn mistakes(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        check_page("page.md", text, &mut found);
        found
    }

    #[test]
    fn what_is_there_may_be_named() {
        let text = "`xtask/src/tidy.rs::what_is_there_may_be_named`, `docs/design.md`\n\
                    `core/src`, `cargo xtask ci tidy`, `core::fmt`, `a / b`, `Queue`";
        assert_eq!(mistakes(text), [""; 0]);
    }

    #[test]
    fn what_is_not_there_is_found_with_its_line() {
        let name = ["no", "such", "test"].join("_");
        let nothing = format!("page.md:2: nothing in `xtask/src/tidy.rs` is called `{name}`");
        assert_eq!(
            mistakes(&format!("\n`xtask/src/tidy.rs::{name}`")),
            [nothing]
        );
        let page = "`core/nowhere.rs`, `cargo xtask ci tidiness`";
        let expected = [
            "page.md:1: `core/nowhere.rs` does not exist",
            "page.md:1: no step is called `tidiness`",
        ];
        assert_eq!(mistakes(page), expected);
        assert_eq!(mistakes("`core/nowhere.rs::name`").len(), 1);
    }
}
