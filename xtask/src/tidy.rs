//! The layers: which package may use which, and what the state machine may not know. And that a page
//! which names tests names tests that exist.

mod pages;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::steps::STEPS;
use crate::workspace::{Package, Workspace};
use pages::PAGES;

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
    for path in files(&workspace.root.join("core/src"), "rs")? {
        let shown = path.strip_prefix(&workspace.root).unwrap_or(&path);
        let name = shown.to_string_lossy().replace('\\', "/");
        if STATE_MACHINE.iter().any(|place| name.starts_with(place)) {
            check_state_machine(&name, &fs::read_to_string(&path)?, &mut found);
        }
    }
    let steps: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
    let mut pages: Vec<PathBuf> = PAGES.iter().map(PathBuf::from).collect();
    for path in files(&workspace.root.join("docs/book"), "md")? {
        pages.push(
            path.strip_prefix(&workspace.root)
                .unwrap_or(&path)
                .to_owned(),
        );
    }
    for page in pages {
        let text = fs::read_to_string(workspace.root.join(&page))?;
        let page = page.to_string_lossy();
        pages::check(&page, &text, &workspace.root, &steps, &mut found);
    }
    for package in &workspace.packages {
        check_package(package, &workspace.root, &mut found)?;
    }
    Ok(found)
}

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

fn check_state_machine(name: &str, text: &str, found: &mut Vec<Breach>) {
    let code = text.lines().take_while(|line| *line != "#[cfg(test)]");
    for (index, line) in code.enumerate() {
        if line.trim_start().starts_with("//") {
            continue;
        }
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        if let Some(word) = words.find(|word| RUNTIME_TRAITS.contains(word)) {
            let at = format!("{name}:{}", index + 1);
            let what = format!("the state machine knows no {word}");
            found.push(Breach { at, what });
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
    // Its lints are those of the workspace, but for one `unsafe impl`.
    let has_own_lints = package.name == "requeue-interrupts";
    if !has_own_lints && !manifest.contains("[lints]\nworkspace = true") {
        let what = "the lints of the workspace are not inherited".to_owned();
        report(&package.manifest, what);
    }
    if let Some(library) = package.library.as_ref().filter(|_| package.published) {
        let source = fs::read_to_string(library)?;
        if !source.lines().any(|line| line == "#![forbid(unsafe_code)]") {
            report(library, "no #![forbid(unsafe_code)]".to_owned());
        }
    }
    let tests = package.manifest.with_file_name("tests");
    if let Ok(parts) = fs::read_to_string(tests.join("main.rs")) {
        for path in files(&tests, "rs")?
            .iter()
            .filter(|path| path.parent() == Some(&tests))
        {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let is_named = parts.contains(&format!("mod {name};"))
                || manifest.contains(&format!("[[test]]\nname = \"{name}\""));
            if !is_named {
                report(path, "no program of tests contains it".to_owned());
            }
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

/// The files below a folder whose names end so, in order.
fn files(folder: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    entries.sort();
    let mut found = Vec::new();
    for path in entries {
        if path.is_dir() {
            found.extend(files(&path, extension)?);
        } else if path.extension().is_some_and(|own| own == extension) {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_machine_knows_no_runtime() {
        let text = "/// Not a Clock.\nuse crate::time::{Clock, Instant};\n#[cfg(test)]\nClock";
        let mut found = Vec::new();
        check_state_machine("core/src/queue/query.rs", text, &mut found);
        let breach = Breach {
            at: "core/src/queue/query.rs:2".to_owned(),
            what: "the state machine knows no Clock".to_owned(),
        };
        assert_eq!(found, [breach]);
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
