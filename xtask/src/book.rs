//! Pages: their links, and the guide, its table of contents and how it becomes pages for a browser.

use std::fs;

use crate::cmd::{read, root, target};
use crate::examples;
use crate::report::{Verdict, verdict};
use crate::tidy::committed;
use crate::tools::{LYCHEE, MDBOOK};

const SOURCES: &str = "docs/book/src";

/// Whether the files and headings to which pages link are there. The web is left out.
pub(crate) fn links() -> Verdict {
    lychee(committed("*.md")?)
}

fn lychee(pages: Vec<String>) -> Verdict {
    let line = LYCHEE
        .get()?
        .args("--offline --include-fragments --no-progress".split(' '));
    line.args(pages).run()
}

/// Checks the sources of the book, and builds it into `target/book`.
pub(crate) fn run() -> Verdict {
    verdict(&mistakes()?)?;
    let (pages, sources) = (target("book"), format!("file://{}", root().display()));
    let build = MDBOOK
        .get()?
        .args(["build", "docs/book", "--dest-dir", &pages]);
    build.run()?;
    let mut written = Vec::new();
    for entry in fs::read_dir(&pages)? {
        let page = entry?.path().display().to_string();
        // Nothing leads to the first, and the second is all chapters in one.
        let is_page = page.ends_with(".html") && !page.ends_with("/404.html");
        if !is_page || page.ends_with("/print.html") {
            continue;
        }
        let text = read(&page)?;
        // mdBook says so, and goes on.
        if text.contains("{{#include") {
            return Err(format!("{page}: includes a file that does not exist").into());
        }
        fs::write(&page, leave(&text, &sources))?;
        written.push(page);
    }
    println!("the book is in {pages}");
    lychee(written)
}

/// What is wrong with the sources: chapters that are not listed, examples that no chapter shows, and
/// figures that are not those of the code.
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
    for name in examples::names()? {
        let path = format!("{}/{name}.rs", examples::FOLDER);
        if !all.contains(&path) {
            mistakes.push(format!("{path}: no chapter names it"));
        }
    }
    let table = examples::promised(&read(format!("{}/delays.rs", examples::FOLDER))?);
    for row in table.iter().flat_map(|text| text.lines().skip(1)) {
        // The names take 18 columns.
        let delays: Vec<&str> = row
            .get(18..)
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        if !all.contains(&delays.join(" | ")) {
            mistakes.push(format!(
                "no table says what the example `delays` prints: {row}"
            ));
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

/// The names of metrics in a text, without what Prometheus appends to that of a histogram.
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

/// Makes links that leave the book lead to the files of this clone, because the repository has no
/// address yet. `docs/book/src` is three folders deep; mdBook has made `.html` of what ended in
/// `.md`.
fn leave(page: &str, sources: &str) -> String {
    let mut pieces = page.split("href=\"../");
    let mut whole = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (target, rest) = piece.split_once('"').unwrap_or((piece, ""));
        let target = match (target.strip_prefix("../../"), target.strip_prefix("../")) {
            (Some(of_root), _) => of_root.to_owned(),
            (None, Some(of_docs)) => format!("docs/{of_docs}"),
            (None, None) => format!("docs/book/{target}"),
        };
        let target = target.replace(".html", ".md");
        whole += &format!("href=\"{sources}/{target}\"{rest}");
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leaves_the_book_leads_to_the_sources() {
        let page = |to: &str| leave(&format!("<a href=\"{to}\">b</a>"), "file:///r");
        let at = |to: &str| format!("<a href=\"file:///r/{to}\">b</a>");
        assert_eq!(
            page("../../design.html#layout"),
            at("docs/design.md#layout")
        );
        assert_eq!(page("../../../examples/a.rs"), at("examples/a.rs"));
        assert_eq!(page("../grafana.json"), at("docs/book/grafana.json"));
        assert_eq!(page("cookbook.html"), "<a href=\"cookbook.html\">b</a>");
    }

    #[test]
    fn a_histogram_is_found_by_any_of_its_names() {
        let text =
            "rate(workqueue_work_duration_seconds_bucket[5m]), `workqueue_depth`, workqueue_*";
        let expected = ["workqueue_work_duration_seconds", "workqueue_depth"];
        assert_eq!(metrics(text).collect::<Vec<_>>(), expected);
    }
}
