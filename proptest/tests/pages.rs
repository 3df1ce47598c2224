//! What the README of the kit shows, and what rules name as their source, is there.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::fs;
use std::path::Path;

use requeue_proptest::conformance::RULES;

const README: &str = include_str!("../README.md");
const BINDING: &str = include_str!("../examples/binding.rs");

#[test]
fn the_readme_shows_the_whole_binding() {
    let begins = BINDING.find("use std::").unwrap();
    let ends = BINDING.find("// An example is a program").unwrap();
    let shown = BINDING[begins..ends].trim();
    assert!(README.contains(shown), "the README shows another binding");
    let binding = &shown[shown.find("struct Bound").unwrap()..];
    let code = binding
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("//"));
    assert!(code.count() <= 60);
}

#[test]
fn the_readme_shows_a_story_as_it_is() {
    let story = include_str!("../src/stories/waits.txt")
        .split("\n\n")
        .next();
    assert!(README.contains(story.unwrap()));
}

/// Readers on crates.io and docs.rs have the package, not the repository.
#[test]
fn the_readme_names_no_file_that_is_not_published() {
    for folder in ["tests/", "traces/", "replay/", "schedules/"] {
        let named = README
            .split(|c: char| c.is_whitespace() || c == '`')
            .find(|word| word.starts_with(folder) && word.len() > folder.len());
        assert_eq!(named, None);
    }
}

const DESIGN: &str = include_str!("../../docs/design.md");

/// The places that sources name after `from`.
fn cited(from: &str) -> impl Iterator<Item = &'static str> {
    let sources = RULES.iter().flat_map(|rule| rule.source.split("; "));
    let places = sources.filter_map(move |source| source.strip_prefix(from)?.strip_prefix(", "));
    places.flat_map(|places| places.split(", ").flat_map(|place| place.split(" and ")))
}

/// A heading, a paragraph with a title, or a row of a table.
fn is_in_the_design(place: &str) -> bool {
    DESIGN.lines().any(|line| {
        let heading = line.trim_start_matches('#').trim();
        (line.starts_with('#') && heading == place)
            || line.contains(&format!("**{place}.**"))
            || (line.starts_with('|') && line.contains(&format!("`{place}`")))
            || line.starts_with(&format!("| {place} |"))
    })
}

#[test]
fn each_part_of_the_design_that_a_rule_names_is_there() {
    let missing: Vec<_> = cited("docs/design.md")
        .filter(|place| !is_in_the_design(place))
        .collect();
    assert_eq!(missing, [""; 0]);
    assert!(cited("docs/design.md").count() > 40);
    assert!(!is_in_the_design("One owner"));
}

/// The sources of core below a folder or a file, one after the other.
fn text_of(path: &Path) -> String {
    if path.is_file() {
        return fs::read_to_string(path).unwrap();
    }
    let entries = fs::read_dir(path).unwrap();
    entries
        .map(|entry| text_of(&entry.unwrap().path()))
        .collect()
}

#[test]
fn each_item_of_core_that_a_rule_names_is_there() {
    let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../core/src");
    let all = text_of(&core).replace("const fn", "fn");
    let of_queue = text_of(&core.join("queue.rs")) + &text_of(&core.join("queue"));
    let of_queue = of_queue.replace("const fn", "fn");
    let is_there = |item: &str| {
        let (of, name) = item.rsplit_once("::").unwrap_or(("", item));
        let text = if of == "Queue" { &of_queue } else { &all };
        let kinds = ["fn", "struct", "enum", "trait"];
        let defines = |kind: &str| {
            let begin = format!("pub {kind} {name}");
            text.match_indices(&begin).any(|(at, begin)| {
                let next = text[at + begin.len()..].chars().next();
                next.is_some_and(|c| !c.is_alphanumeric() && c != '_')
            })
        };
        let is_part = |line: &str| {
            let line = line.trim_start_matches("pub ");
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with([',', '(', ':']))
        };
        kinds.into_iter().any(defines) || text.lines().any(|line| is_part(line.trim()))
    };
    assert!(!is_there("Waker") && !is_there("Queue::get_many"));
    let missing: Vec<_> = cited("requeue-core")
        .filter(|item| !is_there(item))
        .collect();
    assert_eq!(missing, [""; 0]);
}

const GUIDE: &str = include_str!("../../docs/book/src/model.md");

/// The words of comments, without their marks and breaks.
fn words(text: &str) -> String {
    let lines = text
        .lines()
        .map(str::trim)
        .filter_map(|line| line.strip_prefix("///"));
    let lines = lines.map(|line| {
        line.trim()
            .trim_start_matches("> ")
            .trim_start_matches("| ")
    });
    let words = lines
        .flat_map(str::split_whitespace)
        .collect::<Vec<_>>()
        .join(" ");
    words
        .replace(['[', ']'], "")
        .replace("(crate::Session::expedite)", "")
}

#[test]
fn what_the_model_quotes_is_in_the_documentation() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let core = words(&text_of(&here.join("../../core/src")));
    let guide = GUIDE.split_whitespace().collect::<Vec<_>>().join(" ");
    let model = text_of(&here.join("../src/model.rs")) + &text_of(&here.join("../src/model"));
    let mut quotes = vec![String::new()];
    for line in model.lines().map(str::trim) {
        match line.starts_with("/// > ") {
            true => quotes
                .iter_mut()
                .last()
                .unwrap()
                .push_str(&format!("{line}\n")),
            false => quotes.push(String::new()),
        }
    }
    quotes.retain(|quote| !quote.is_empty());
    let missing = quotes
        .iter()
        .map(|quote| words(quote))
        .filter(|quote| !core.contains(quote) && !guide.contains(quote));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0]);
    assert!(quotes.len() > 15, "{quotes:?}");
}
