//! What the kit shows, names and quotes is there: in its README, in the documentation, and among
//! the public items of core.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use requeue_proptest::combinations::options;
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
    let lines = binding.lines().map(str::trim);
    let code = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    assert!(code.count() <= 60);
}

#[test]
fn the_readme_shows_a_story_as_it_is() {
    let mut stories = include_str!("../src/stories/waits.txt").split("\n\n");
    assert!(README.contains(stories.next().unwrap()));
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

const API: &str = include_str!("../../docs/api/requeue-core.txt");

/// The paths of the public items of core, without the name of the crate and without generics.
fn items_of_core() -> BTreeSet<String> {
    let items = API.lines().filter_map(|line| {
        let (kind, item) = line.split_once("requeue_core::")?;
        let mut depth = 0;
        let outside = item.chars().filter(|it| {
            depth += i32::from(*it == '<') - i32::from(*it == '>');
            depth == 0 && *it != '>'
        });
        let is_in_path = |it: &char| it.is_alphanumeric() || matches!(it, '_' | ':');
        let path: String = outside.take_while(is_in_path).collect();
        let path = path.trim_end_matches(':').to_owned();
        kind.contains("pub ").then_some(path)
    });
    items.collect()
}

#[test]
fn each_item_of_core_that_a_rule_names_is_there() {
    let items = items_of_core();
    let is_there = |name: &str| {
        // A session is one access to the queue.
        let names = [name, &name.replace("Queue::", "Session::")].map(|name| format!("::{name}"));
        let is = |item: &String| names.iter().any(|name| format!("::{item}").ends_with(name));
        items.iter().any(is)
    };
    assert!(!is_there("Waker") && !is_there("Queue::get_many"));
    let missing = cited("requeue-core").filter(|item| !is_there(item));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0]);
}

/// Each option that a builder, a policy or the limits of groups have, and its name in combinations.
const OPTIONS: [(&str, &str); 18] = [
    ("Builder::aging", "levels"),
    ("Builder::backoff", "limiter"),
    ("Builder::cool_down", "cool-down"),
    ("Builder::failure_records", "failure records"),
    ("Builder::hold_failures", "failures"),
    ("Builder::levels", "levels"),
    ("Builder::limiter", "limiter"),
    ("Builder::max_keys", "storage"),
    ("Builder::retry_rate", "limiter"),
    ("Builder::no_retry_rate", "limiter"),
    ("Builder::run_rate", "rate of runs"),
    ("Builder::build_with_groups", "groups"),
    ("GroupLimits::max_active", "a group's limit"),
    ("GroupLimits::rate", "a group's rate"),
    ("GroupLimits::weight", "a group's weight"),
    ("Policy::cool_down", "cool-down"),
    ("Policy::hold_failures", "failures"),
    ("Policy::run_rate", "rate of runs"),
];

/// They make a queue, give it a clock, a name, metrics and memory in advance, or change nothing.
const NO_OPTIONS: [&str; 10] = [
    "Builder::build",
    "Builder::capacity",
    "Builder::clock",
    "Builder::default",
    "Builder::metrics",
    "Builder::report_to",
    "GroupLimits::default",
    "GroupLimits::new",
    "Policy::default",
    "Policy::new",
];

#[test]
fn every_option_is_combined() {
    let items = items_of_core();
    let prefixes = ["Builder::", "Policy::", "GroupLimits::"];
    let is_method = |item: &&String| prefixes.iter().any(|prefix| item.starts_with(prefix));
    let methods = items.iter().filter(is_method).map(String::as_str);
    let known = OPTIONS.iter().map(|(method, _)| *method).chain(NO_OPTIONS);
    assert_eq!(methods.collect::<BTreeSet<_>>(), known.collect());
    for (_, name) in OPTIONS {
        let is_there = options().any(|option| option.name == name);
        assert!(is_there, "there is no option {name}");
    }
}

const GUIDE: &str = concat!(
    include_str!("../../docs/book/src/model.md"),
    include_str!("../../docs/book/src/rules.md")
);

/// The texts of a file, or of all files below a folder.
fn text_of(path: &str) -> String {
    let mut paths = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(path)];
    let mut text = String::new();
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(path).unwrap();
            paths.extend(entries.map(|entry| entry.unwrap().path()));
        } else {
            text += &fs::read_to_string(path).unwrap();
        }
    }
    text
}

/// The words of comments, without their marks, links and breaks.
fn words<'t>(lines: impl Iterator<Item = &'t str>) -> String {
    let comments = lines.filter_map(|line| line.trim().strip_prefix("///"));
    let words = comments.flat_map(|line| {
        let line = line.trim_start_matches([' ', '>', '|']);
        line.split_whitespace()
    });
    let words = words.collect::<Vec<_>>().join(" ").replace(['[', ']'], "");
    words.replace("(crate::Session::expedite)", "")
}

#[test]
fn what_the_model_quotes_is_in_the_documentation() {
    let core = words(text_of("../../core/src").lines());
    let guide = GUIDE.split_whitespace().collect::<Vec<_>>().join(" ");
    let model = text_of("../src/model.rs");
    let lines: Vec<&str> = model.lines().map(str::trim).collect();
    let is_quote = |line: &str| line.starts_with("/// > ");
    let parts = lines.chunk_by(|line, next| is_quote(line) == is_quote(next));
    let quotes = parts.filter(|lines| is_quote(lines[0]));
    let quotes: Vec<_> = quotes.map(|lines| words(lines.iter().copied())).collect();
    let missing = quotes
        .iter()
        .filter(|quote| !core.contains(*quote) && !guide.contains(*quote));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0]);
    assert!(quotes.len() > 15, "{quotes:?}");
}
