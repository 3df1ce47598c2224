//! Pages: links, and the guide with its contents, programs and HTML.

use std::fs;

use crate::cmd::{read, root, target};
use crate::examples;
use crate::report::{Verdict, verdict};
use crate::tidy::committed;
use crate::tools::wheel;

const SOURCES: &str = "docs/book/src";

/// Checks that the files and headings exist to which pages link. Links to the web are not checked.
pub(crate) fn links() -> Verdict {
    lychee(committed("*.md")?)
}

fn lychee(pages: Vec<String>) -> Verdict {
    let line = wheel("bin/lychee")?.args("--offline --include-fragments --no-progress".split(' '));
    line.args(pages).run()
}

/// Checks the sources of the book, and builds it into `target/book`.
pub(crate) fn run() -> Verdict {
    verdict(&mistakes()?)?;
    let (pages, sources) = (target("book"), format!("file://{}", root().display()));
    let build = wheel("bin/mdbook")?.args(["build", "docs/book", "--dest-dir", &pages]);
    build.run()?;
    let mut written = Vec::new();
    for entry in fs::read_dir(&pages)? {
        let page = entry?.path().display().to_string();
        // No page links to the first, and the second has all chapters in one.
        let is_page = page.ends_with(".html") && !page.ends_with("/404.html");
        if !is_page || page.ends_with("/print.html") {
            continue;
        }
        let text = read(&page)?;
        fs::write(&page, leave(&text, &sources))?;
        written.push(page);
    }
    println!("the book is in {pages}");
    lychee(written)
}

/// The mistakes in the sources: chapters that are not listed, examples that no chapter shows, and
/// figures that differ from the code.
fn mistakes() -> Verdict<Vec<String>> {
    let mut mistakes = Vec::new();
    let summary = read(format!("{SOURCES}/SUMMARY.md"))?;
    let mut all = String::new();
    for page in committed(&format!("{SOURCES}/*.md"))? {
        let name = page.trim_start_matches(SOURCES).trim_start_matches('/');
        if name != "SUMMARY.md" && !summary.contains(&format!("]({name})")) {
            mistakes.push(format!("{page}: SUMMARY.md does not list it"));
        }
        all += &read(&page)?;
    }
    for page in committed(SHOWING)? {
        let text = read(&page)?;
        if with_programs(&page, &text)? != text {
            let what = "not the programs as they are: run `cargo xtask book`";
            mistakes.push(format!("{page}: {what}"));
        }
    }
    for name in examples::names()? {
        let path = format!("{}/{name}.rs", examples::FOLDER);
        if !all.contains(&format!("{PROGRAM}{path} -->")) && !all.contains(&format!("{path})")) {
            mistakes.push(format!("{path}: no chapter shows it"));
        }
    }
    let table = examples::promised(&read(format!("{}/delays.rs", examples::FOLDER))?);
    for row in table.iter().flat_map(|text| text.lines().skip(1)) {
        // The names take 18 columns.
        let delays = row.get(18..).unwrap_or_default().split_whitespace();
        if !all.contains(&delays.collect::<Vec<_>>().join(" | ")) {
            mistakes.push(format!("no table says what `delays` prints: {row}"));
        }
    }
    let mut code = String::new();
    for file in committed("core/src/metrics* core/src/workers/metrics.rs")? {
        code += &read(file)?;
    }
    let shown = all + &read("docs/book/grafana.json")?;
    let unknown = metrics(&shown).filter(|name| !code.contains(&format!("\"{name}\"")));
    mistakes.extend(unknown.map(|name| format!("{SOURCES}: no metric is called `{name}`")));
    Ok(mistakes)
}

/// The pages that show files of this repository.
const SHOWING: &str = "docs/book/src/*.md docs/firmware.md docs/firmware/*.md";
/// The comment above a file in a page, before its path.
const PROGRAM: &str = "<!-- program: ";

/// Copies the files into the pages, which a repository shows as they are.
pub(crate) fn write() -> Verdict {
    for page in committed(SHOWING)? {
        let text = read(&page)?;
        let new = with_programs(&page, &text)?;
        if new != text {
            println!("{page}");
            fs::write(root().join(page), new)?;
        }
    }
    Ok(())
}

/// The page with the present text of the files that its comments name. Of a manifest it shows what a
/// reader writes: the rest says where the repository has the crates.
fn with_programs(page: &str, text: &str) -> Verdict<String> {
    let (mut whole, mut lines) = (String::new(), text.lines());
    while let Some(line) = lines.next() {
        whole += &format!("{line}\n");
        let path = line.strip_prefix(PROGRAM);
        let Some(path) = path.and_then(|path| path.strip_suffix(" -->")) else {
            continue;
        };
        let fence = lines.next().filter(|fence| fence.starts_with("```"));
        let (Some(fence), true) = (fence, lines.any(|line| line == "```")) else {
            return Err(format!("{page}: no code below {path}").into());
        };
        let file = read(path)?;
        let shown = file.split("\n# A workspace").next().unwrap_or(&file);
        whole += &format!("{fence}\n{shown}```\n");
    }
    Ok(whole)
}

/// The names of metrics in a text, without the endings that Prometheus appends for a histogram.
fn metrics(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_lowercase() && c != '_');
    let begins = ["workqueue_", "controller_runtime_"];
    let names = words.filter(move |word| begins.iter().any(|begin| word.starts_with(begin)));
    let names = names.filter(|name| !name.ends_with('_'));
    names.map(|name| {
        let ends = ["_bucket", "_sum", "_count"].iter();
        ends.fold(name, |name, end| name.strip_suffix(end).unwrap_or(name))
    })
}

/// Points links that leave the book to the files of this clone, because the repository has no
/// address yet. mdBook has replaced `.md` by `.html` in them.
fn leave(page: &str, clone: &str) -> String {
    let mut pieces = page.split("href=\"../");
    let mut whole = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (to, rest) = piece.split_once('"').unwrap_or((piece, ""));
        let to = to.replacen(".html", ".md", 1);
        whole += &format!("href=\"{clone}/{SOURCES}/../{to}\"{rest}");
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leaves_the_book_leads_to_the_sources() {
        let page = |to: &str| leave(&format!("<a href=\"{to}\">b</a>"), "file:///r");
        let at = |to: &str| format!("<a href=\"file:///r/docs/book/src/{to}\">b</a>");
        assert_eq!(page("../../a.html#b"), at("../../a.md#b"));
        assert_eq!(page("../grafana.json"), at("../grafana.json"));
        assert_eq!(page("cookbook.html"), "<a href=\"cookbook.html\">b</a>");
    }

    #[test]
    fn a_page_shows_the_programs_that_it_names() {
        let shown = |code: &str| format!("a\n{PROGRAM}rust-toolchain.toml -->\n{code}b\n");
        let file = read("rust-toolchain.toml").unwrap();
        let new = format!("```rust,ignore\n{file}```\n");
        let old = "```rust,ignore\nfn main() {}\n```\n";
        assert_eq!(with_programs("a.md", &shown(old)).unwrap(), shown(&new));
        assert_eq!(with_programs("a.md", &shown(&new)).unwrap(), shown(&new));
        assert!(with_programs("a.md", &shown("```rust,ignore\n")).is_err());
    }

    #[test]
    fn a_histogram_is_found_by_any_of_its_names() {
        let text =
            "rate(workqueue_work_duration_seconds_bucket[5m]), `workqueue_depth`, workqueue_*";
        let expected = ["workqueue_work_duration_seconds", "workqueue_depth"];
        assert_eq!(metrics(text).collect::<Vec<_>>(), expected);
    }
}
