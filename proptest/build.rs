//! Lists the cases of the suite: a case is a function of `src/cases/`, and its comment says its
//! rule, where that comes from, and what it needs of a queue.

use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=src/cases");
    let entries = fs::read_dir("src/cases")?.map(|entry| Ok(entry?.path()));
    let mut files = entries.collect::<Result<Vec<_>, std::io::Error>>()?;
    files.sort();
    let (mut rules, mut cases) = (String::from("&["), String::from("&["));
    for file in files {
        let group = file.file_stem().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(&file)?;
        // Before each function stands the end of another, and then its comment.
        let mut before = "";
        for part in text.split("\npub(crate) fn ") {
            let comment = before.rsplit("\n\n/// ").next().unwrap_or_default();
            if !before.is_empty() {
                list(&group, comment, part, &mut rules, &mut cases)?;
            }
            before = part;
        }
    }
    let out = env::var("OUT_DIR")?;
    for (name, list) in [("rules.rs", rules), ("cases.rs", cases)] {
        fs::write(Path::new(&out).join(name), list + "]")?;
    }
    Ok(())
}

fn list(
    group: &str,
    comment: &str,
    function: &str,
    rules: &mut String,
    cases: &mut String,
) -> Result<(), Box<dyn Error>> {
    let name = function.split('(').next().unwrap_or_default();
    let line = |begin| comment.lines().find_map(|line| line.strip_prefix(begin));
    let rule = comment.lines().next().filter(|rule| rule.ends_with('.'));
    let (Some(rule), Some(source)) = (rule, line("/// Source: ")) else {
        return Err(format!("{group}::{name} says no rule, or no source").into());
    };
    let (mut keys, mut need) = (1, String::from("None"));
    let needs = line("/// Needs: ").into_iter();
    for needed in needs.flat_map(|needs| needs.split(", ")) {
        match needed.strip_suffix(" keys") {
            Some(number) => keys = number.parse()?,
            None => need = format!("Some(Need::{needed})"),
        }
    }
    let begin = function.split(" {\n").next().unwrap_or_default();
    let waits = begin.ends_with("-> CallScript");
    let kind = if waits { "Waits" } else { "Steps" };
    write!(
        rules,
        "Rule {{ group: {group:?}, name: {name:?}, keys: {keys}, need: {need}, text: {rule:?}, \
         source: {source:?} }},"
    )?;
    write!(cases, "Case::{kind}({group}::{name}),")?;
    Ok(())
}
