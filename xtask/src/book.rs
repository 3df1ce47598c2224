//! The guide: its table of contents, its links, and how it becomes pages for a browser.

use std::fs;
use std::io;
use std::path::Path;

use crate::examples;
use crate::invocation::Invocation;
use crate::links;
use crate::report::{Stop, Verdict};
use crate::workspace::Workspace;

const SOURCES: &str = "docs/book/src";
/// The column after the names in what the example `delays` prints.
const DELAYS_FROM: usize = 18;
const DASHBOARD: &str = "docs/book/grafana.json";
/// Built below `target`, once: it costs a minute and a half of processor time.
const MDBOOK: &str = "0.4.52";

/// Checks the sources of the book, and builds it into `target/book`.
pub(crate) fn run(workspace: &Workspace) -> Verdict {
    let mistakes = mistakes(&workspace.root)?;
    if !mistakes.is_empty() {
        return Err(Stop::Failed(mistakes.join("\n")));
    }
    let tools = workspace.target().join("tools");
    let program = tools.join("bin/mdbook");
    if !program.exists() {
        install(&tools, workspace)?;
    }
    let pages = workspace.target().join("book");
    let (program, shown) = (program.display().to_string(), pages.display().to_string());
    let line = Invocation::new("").args([program.as_str(), "build", "docs/book", "--dest-dir"]);
    line.args([shown.as_str()]).run(&workspace.root)?;
    let sources = format!("file://{}", workspace.root.display());
    let broken = finish(&pages, &sources).map_err(|error| error.to_string())?;
    println!("the book is in {shown}");
    if broken.is_empty() {
        Ok(())
    } else {
        Err(Stop::Failed(broken.join("\n")))
    }
}

/// Without search, because its index is most of what a build of mdBook waits for.
fn install(tools: &Path, workspace: &Workspace) -> Verdict {
    let line = Invocation::new("cargo install mdbook --locked --no-default-features --profile dev")
        .args(["--version", MDBOOK, "--root"])
        .args([tools.display().to_string()]);
    let line = line.variable(
        "CARGO_TARGET_DIR",
        tools.join("build").display().to_string(),
    );
    let why = |why| Stop::Skipped(format!("mdbook cannot be installed: {why}"));
    line.run(&workspace.root).map_err(why)?;
    fs::remove_dir_all(tools.join("build")).map_err(|error| error.to_string().into())
}

/// What is wrong with the sources: chapters that are not listed, links that lead nowhere, and
/// examples that no chapter shows.
fn mistakes(root: &Path) -> Result<Vec<String>, String> {
    let said = |error: io::Error| error.to_string();
    let folder = root.join(SOURCES);
    let summary = fs::read_to_string(folder.join("SUMMARY.md")).map_err(said)?;
    let listed: Vec<String> = summary.lines().flat_map(links::targets).collect();
    let (mut mistakes, mut all) = (Vec::new(), String::new());
    for page in links::files(&folder, ".md").map_err(said)? {
        let text = fs::read_to_string(&page).map_err(said)?;
        let name = page
            .strip_prefix(&folder)
            .unwrap_or(&page)
            .display()
            .to_string();
        if name != "SUMMARY.md" && !listed.contains(&name) {
            mistakes.push(format!("{SOURCES}/{name}: SUMMARY.md does not list it"));
        }
        for (line, what) in links::check(&page, &text) {
            mistakes.push(format!("{SOURCES}/{name}:{line}: {what}"));
        }
        all += &text;
    }
    for name in examples::names(root)? {
        let path = format!("{}/{name}.rs", examples::FOLDER);
        if !all.contains(&path) {
            mistakes.push(format!("{path}: no chapter names it"));
        }
    }
    let table = fs::read_to_string(root.join(examples::FOLDER).join("delays.rs")).map_err(said)?;
    for row in examples::promised(&table)
        .iter()
        .flat_map(|text| text.lines().skip(1))
    {
        let delays = row.get(DELAYS_FROM..).unwrap_or_default();
        let delays: Vec<&str> = delays.split_whitespace().collect();
        if !all.contains(&delays.join(" | ")) {
            mistakes.push(format!(
                "no table says what the example `delays` prints: {row}"
            ));
        }
    }
    let dashboard = fs::read_to_string(root.join(DASHBOARD)).map_err(said)?;
    let code = links::files(&root.join("core/src/metrics"), ".rs").map_err(said)?;
    let code: Vec<String> = code.iter().flat_map(fs::read_to_string).collect();
    for name in figures(&dashboard).chain(figures(&all)) {
        if !code
            .iter()
            .any(|code| code.contains(&format!("\"{name}\"")))
        {
            mistakes.push(format!(
                "{SOURCES}, {DASHBOARD}: no metric is called `{name}`"
            ));
        }
    }
    Ok(mistakes)
}

/// The names of metrics in a text, without what Prometheus appends to that of a histogram.
fn figures(text: &str) -> impl Iterator<Item = &str> {
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
/// address yet. Returns the links within the book that lead nowhere.
fn finish(pages: &Path, sources: &str) -> io::Result<Vec<String>> {
    let mut broken = Vec::new();
    for page in links::files(pages, ".html")? {
        let text = fs::read_to_string(&page)?;
        let text = leave(&text, sources);
        let folder = page.parent().unwrap_or(pages);
        for target in within(&text) {
            if page != pages.join("404.html") && !folder.join(target).exists() {
                broken.push(format!("{}: `{target}` does not exist", page.display()));
            }
        }
        fs::write(&page, text)?;
    }
    Ok(broken)
}

/// `docs/book/src` is three folders deep; mdBook has made `.html` of what ended in `.md`.
fn leave(page: &str, sources: &str) -> String {
    let mut pieces = page.split("href=\"../");
    let mut whole = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (target, rest) = piece.split_once('"').unwrap_or((piece, ""));
        let target = match target.strip_prefix("../") {
            Some(above) => above
                .strip_prefix("../")
                .map_or(format!("docs/{above}"), str::to_owned),
            None => format!("docs/book/{target}"),
        };
        let target = target.replace(".html", ".md");
        whole += &format!("href=\"{sources}/{target}\"{rest}");
    }
    whole
}

/// The files of the book to which a page links, or that it shows.
fn within(page: &str) -> impl Iterator<Item = &str> {
    let after = ["href=\"", "src=\""]
        .into_iter()
        .flat_map(|start| page.split(start).skip(1));
    let targets = after.filter_map(|rest| rest.split(['"', '#']).next());
    targets.filter(|target| !target.is_empty() && !target.contains(':'))
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
        assert_eq!(figures(text).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_page_names_what_it_links_to() {
        let page =
            "<a href=\"a.html#b\"> <img src=\"c.svg\"> <a href=\"#d\"> <a href=\"https://e\">";
        assert_eq!(within(page).collect::<Vec<_>>(), ["a.html", "c.svg"]);
    }
}
