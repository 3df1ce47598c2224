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
        let text = read(&page)?;
        if with_programs(&page, &text)? != text {
            mistakes.push(format!(
                "{page}: not the programs as they are: run `cargo xtask book`"
            ));
        }
        all += &text;
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

/// The comment above a program in a page, before its path.
const PROGRAM: &str = "<!-- program: ";

/// Copies the programs into the pages of the book, which a repository shows as they are.
pub(crate) fn write() -> Verdict {
    for page in committed(&format!("{SOURCES}/*.md"))? {
        let text = read(&page)?;
        let new = with_programs(&page, &text)?;
        if new != text {
            println!("{page}");
            fs::write(root().join(page), new)?;
        }
    }
    Ok(())
}

/// The page with the present text of the programs that its comments name.
fn with_programs(page: &str, text: &str) -> Verdict<String> {
    let (mut whole, mut lines) = (String::new(), text.lines());
    while let Some(line) = lines.next() {
        whole += line;
        whole.push('\n');
        let path = line.strip_prefix(PROGRAM);
        let Some(path) = path.and_then(|path| path.strip_suffix(" -->")) else {
            continue;
        };
        let begins = lines.next() == Some("```rust,ignore");
        if !begins || !lines.any(|line| line == "```") {
            return Err(format!("{page}: no code below {path}").into());
        }
        whole += &format!("```rust,ignore\n{}```\n", read(path)?);
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
/// address yet. `docs/book/src` is three folders deep, and mdBook has replaced `.md` by `.html`.
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
    fn a_page_shows_the_programs_that_it_names() {
        let shown = |code: &str| format!("a\n{PROGRAM}rust-toolchain.toml -->\n{code}b\n");
        let file = read("rust-toolchain.toml").unwrap();
        let new = format!("```rust,ignore\n{file}```\n");
        let old = "```rust,ignore\nfn main() {}\n```\n";
        for code in [old, &new] {
            let page = with_programs("a.md", &shown(code)).unwrap();
            assert_eq!(page, shown(&new));
        }
        for cut in ["", "```rust,ignore\nfn main() {}\n"] {
            assert!(with_programs("a.md", &shown(cut)).is_err(), "{cut:?}");
        }
    }

    #[test]
    fn a_histogram_is_found_by_any_of_its_names() {
        let text =
            "rate(workqueue_work_duration_seconds_bucket[5m]), `workqueue_depth`, workqueue_*";
        let expected = ["workqueue_work_duration_seconds", "workqueue_depth"];
        assert_eq!(metrics(text).collect::<Vec<_>>(), expected);
    }
}
