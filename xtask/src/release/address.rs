//! Whether pages link to what is not there yet.

use std::fs;

use super::verdict;
use super::versions::committed;
use crate::invocation::Invocation;
use crate::report::{Stop, Verdict};
use crate::workspace::Workspace;

/// Asks for the repository of the manifests. As long as it does not answer, no page may link to it
/// or to what is published from it.
pub(super) fn check(workspace: &Workspace) -> Verdict {
    let first = workspace.published().next();
    let Some(address) = first.and_then(|package| package.repository.as_deref()) else {
        return Err(Stop::Failed("the manifests name no repository".to_owned()));
    };
    let ask = Invocation::new("git ls-remote --exit-code")
        .args([address, "HEAD"])
        .variable("GIT_TERMINAL_PROMPT", "0");
    if ask.run(&workspace.root).is_ok() {
        return Ok(());
    }
    let mut found = Vec::new();
    for path in committed(&workspace.root, &["*.md", "*.rs", "*.toml", "*.yml"])? {
        let file = workspace.root.join(&path);
        let text = fs::read_to_string(&file).map_err(|error| format!("{path}: {error}"))?;
        let lines = pretending(&text, address);
        found.extend(lines.map(|line| format!("{path}:{line}: links to what is not there")));
    }
    verdict(&found)?;
    Err(Stop::NotRun(format!(
        "{address} does not answer from here; no page links to it"
    )))
}

/// The lines that link to the repository, or to a page about a published crate. The manifest's own
/// line is none of them.
fn pretending(text: &str, address: &str) -> impl Iterator<Item = usize> {
    // In halves, because this file is looked at as well.
    let places =
        ["crates.io/crates/", "docs.rs/", "lib.rs/crates/"].map(|page| page.to_owned() + "requeue");
    let names = move |line: &str| {
        let is_manifests = line.starts_with("repository = ");
        let mut all = places.iter().map(String::as_str).chain([address]);
        !is_manifests && all.any(|place| line.contains(place))
    };
    let lines: Vec<usize> = (1..)
        .zip(text.lines())
        .filter(|(_, line)| names(line))
        .map(|(at, _)| at)
        .collect();
    lines.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_what_is_not_there_is_found() {
        let text = format!(
            "repository = \"https://example.org/requeue\"\n[a](https://{}/requeue-core)\n\
             https://example.org/requeue/issues\nrequeue\nhttps://docs.rs/tokio\n",
            "docs.rs"
        );
        let found: Vec<usize> = pretending(&text, "https://example.org/requeue").collect();
        assert_eq!(found, [2, 3]);
    }
}
