//! The README names the tests that hold its promises: they are there.

use std::fs;
use std::path::Path;

const README: &str = include_str!("../../README.md");

/// All sources below a folder, in one text.
fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn tests_that_the_readme_names_are_there() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    for folder in ["src", "tests"] {
        sources(&package.join(folder), &mut text);
    }
    let (_, page) = README.split_once("## What it withstands").unwrap();
    let (page, _) = page.split_once("And what it does not").unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| **"));
    let mut count = 0;
    for row in rows {
        let tests = row.trim_end_matches('|').rsplit('|').next().unwrap();
        for name in tests.split(", ").map(|name| name.trim().trim_matches('`')) {
            assert!(text.contains(&format!("fn {name}(")), "{name}: {row}");
            count += 1;
        }
    }
    assert!(count > 30, "{count}");
}
