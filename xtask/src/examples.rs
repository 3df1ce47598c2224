//! The small programs of the book: each runs to its end, and prints what its first lines say.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::builds;
use crate::report::{Stop, Verdict};
use crate::workspace::Workspace;

/// Where they are.
pub(crate) const FOLDER: &str = "examples/cookbook";
/// The longest of them, in lines after its first comment.
const LINES_MAX: usize = 40;

/// Builds all of them and runs each.
pub(crate) fn run(workspace: &Workspace) -> Verdict {
    let names = names(&workspace.root)?;
    builds::programs(workspace)?;
    let built = workspace.target().join("debug/examples");
    let mut failures = Vec::new();
    for name in &names {
        println!("$ cargo run --example {name}");
        let source = workspace.root.join(FOLDER).join(format!("{name}.rs"));
        let source = fs::read_to_string(source).map_err(|error| error.to_string())?;
        if let Err(why) = check(&source, || output(&built.join(name))) {
            failures.push(format!("{name}: {why}"));
        }
    }
    println!("{} examples, {} failed", names.len(), failures.len());
    if failures.is_empty() {
        Ok(())
    } else {
        Err(Stop::Failed(failures.join("\n")))
    }
}

/// The names of all of them, in order.
pub(crate) fn names(root: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(root.join(FOLDER)).map_err(|error| error.to_string())?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        let stem = path.file_stem().unwrap_or_default();
        names.push(stem.to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn output(program: &Path) -> Result<String, String> {
    // As if no service manager had started it.
    let output = Command::new(program).env_remove("NOTIFY_SOCKET").output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}\n{said}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn check(source: &str, run: impl FnOnce() -> Result<String, String>) -> Result<(), String> {
    let lines = source
        .lines()
        .filter(|line| !line.starts_with("//!"))
        .count();
    if lines > LINES_MAX {
        return Err(format!("{lines} lines, {LINES_MAX} at most"));
    }
    let Some(promised) = promised(source) else {
        return Err("its first comment does not say what it prints".to_owned());
    };
    let printed = run()?;
    if printed.trim_end() == promised.trim_end() {
        Ok(())
    } else {
        Err(format!("it prints\n{printed}and says\n{promised}"))
    }
}

/// The text between the first two fences of the first comment.
pub(crate) fn promised(source: &str) -> Option<String> {
    let header = source.lines().take_while(|line| line.starts_with("//!"));
    let header = header.map(|line| line.trim_start_matches("//!"));
    let header = header.map(|line| line.strip_prefix(' ').unwrap_or(line));
    let text = header.skip_while(|line| *line != "```text").skip(1);
    let mut promised = String::new();
    for line in text {
        if line == "```" {
            return Some(promised).filter(|text| !text.is_empty());
        }
        promised += line;
        promised.push('\n');
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str =
        "//! Counts.\n//!\n//! ```text\n//! one\n//!   two\n//! ```\n\nfn main() {}";

    fn printing(text: &str) -> Result<(), String> {
        check(SOURCE, || Ok(text.to_owned()))
    }

    #[test]
    fn an_example_prints_what_it_says() {
        assert_eq!(printing("one\n  two\n"), Ok(()));
        assert!(printing("one\n").is_err());
        assert!(printing("one\n  two\nthree\n").is_err());
        assert!(check(SOURCE, || Err("it panicked".to_owned())).is_err());
    }

    #[test]
    fn an_example_that_says_nothing_has_failed() {
        for source in [
            "fn main() {}",
            "//! ```text\n//! ```\n",
            "//! ```text\n//! one\n",
        ] {
            assert!(check(source, || Ok(String::new())).is_err(), "{source}");
        }
    }

    #[test]
    fn an_example_is_short() {
        let long = SOURCE.to_owned() + &"\n".repeat(LINES_MAX);
        let run = || Ok("one\n  two\n".to_owned());
        assert!(check(&long, run).unwrap_err().contains("40 at most"));
    }
}
