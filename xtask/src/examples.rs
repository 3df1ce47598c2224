//! The programs of the guide. Each runs to its end and prints what its first comment says.

use crate::builds::services;
use crate::cmd::{all, cmd, read, target};
use crate::report::Verdict;
use crate::tidy::committed;

/// Their folder.
pub(crate) const FOLDER: &str = "examples/cookbook";

/// Builds all programs and runs each.
pub(crate) fn run() -> Verdict {
    services("cargo build --examples --bin webhooks").run()?;
    all(names()?.iter().map(|name| {
        let source = read(format!("{FOLDER}/{name}.rs"))?;
        let program = cmd("").arg(target(&format!("debug/examples/{name}")));
        println!("$ cargo run --example {name}");
        let printed = program.read()?;
        Ok(check(&source, &printed).map_err(|why| format!("{name}: {why}"))?)
    }))
}

/// The names of all programs, in order.
///
/// # Errors
///
/// As [`committed`].
pub(crate) fn names() -> Verdict<Vec<String>> {
    let files = committed(&format!("{FOLDER}/*.rs"))?;
    let name = |file: &String| Some(file.rsplit_once('/')?.1.strip_suffix(".rs")?.to_owned());
    Ok(files.iter().filter_map(name).collect())
}

fn check(source: &str, printed: &str) -> Result<(), String> {
    // The guide promises at most 40 lines.
    let lines = source.lines().filter(|line| !line.starts_with("//!"));
    if lines.count() > 40 {
        return Err("more than 40 lines".to_owned());
    }
    let promised = promised(source).ok_or("its first comment does not show the output")?;
    match printed.trim_end() == promised.trim_end() {
        true => Ok(()),
        false => Err(format!("it prints\n{printed}but promises\n{promised}")),
    }
}

/// The text between the first two fences of the first comment.
pub(crate) fn promised(source: &str) -> Option<String> {
    let header = source.lines().map_while(|line| line.strip_prefix("//!"));
    let header = header.map(|line| line.strip_prefix(' ').unwrap_or(line));
    let header: Vec<&str> = header.collect();
    let header = header.join("\n");
    let (_, text) = header.split_once("```text\n")?;
    let (text, _) = text.split_once("```")?;
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_prints_what_it_says() {
        let source = "//! Counts.\n//!\n//! ```text\n//! one\n//!   two\n//! ```\n\nfn main() {}";
        assert_eq!(check(source, "one\n  two\n"), Ok(()));
        let long = source.to_owned() + &"\n".repeat(40);
        for (source, printed) in [
            (source, "one\n"),
            (&long, "one\n  two\n"),
            ("fn main() {}", ""),
        ] {
            assert!(check(source, printed).is_err(), "{printed}");
        }
    }
}
