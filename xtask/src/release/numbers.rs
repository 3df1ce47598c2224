//! The numbers of pages that are those of manifests: the oldest Rust, and what to depend on.

use std::fs;

use super::verdict;
use super::versions::{asked, committed, short};
use crate::report::Verdict;
use crate::workspace::{Package, Workspace};

/// The pages that promise an oldest Rust, each with how it says so. `{}` is the number.
const PROMISES: [(&str, &str); 2] = [
    ("README.md", "https://img.shields.io/badge/rust-{}%2B-blue"),
    ("README.md", "**Minimum Rust**: {},"),
];
const KUBE_PROMISES: [(&str, &str); 1] = [("kube/README.md", "and Rust {}.")];

/// Compares pages with manifests.
pub(super) fn check(workspace: &Workspace) -> Verdict {
    println!("$ cargo xtask release --dry-run numbers");
    let kube = workspace.kube()?;
    let mut found = Vec::new();
    for (of, promises) in [(workspace, &PROMISES[..]), (&kube, &KUBE_PROMISES[..])] {
        let oldest = oldest_rust(of)?;
        for (page, promise) in promises {
            let text = read(workspace, page)?;
            let promise = promise.replace("{}", &oldest);
            if !text.contains(&promise) {
                found.push(format!("{page} does not say `{promise}`"));
            }
        }
    }
    let packages: Vec<&Package> = workspace.published().chain(kube.published()).collect();
    for page in committed(&workspace.root, &["*.md"])? {
        let text = read(workspace, &page)?;
        let wrong = old_versions(&text, &packages);
        found.extend(wrong.into_iter().map(|what| format!("{page}:{what}")));
    }
    verdict(&found)
}

/// The `rust-version` that all that is published shares.
fn oldest_rust(workspace: &Workspace) -> Result<String, String> {
    let mut versions: Vec<&str> = workspace
        .published()
        .map(|package| package.rust_version.as_deref().unwrap_or("none"))
        .collect();
    versions.dedup();
    match versions.as_slice() {
        [only] => Ok((*only).to_owned()),
        several => Err(format!("not one rust-version: {}", several.join(", "))),
    }
}

fn read(workspace: &Workspace, page: &str) -> Result<String, String> {
    let path = workspace.root.join(page);
    fs::read_to_string(path).map_err(|error| format!("{page}: {error}"))
}

/// The lines of manifests on a page that ask for another version than the present one.
fn old_versions(page: &str, packages: &[&Package]) -> Vec<String> {
    let mut found = Vec::new();
    for (index, line) in page.lines().enumerate() {
        let Some((name, version)) = asked(line) else {
            continue;
        };
        let at = index + 1;
        match packages.iter().find(|package| package.name == name) {
            None => found.push(format!("{at}: no package is called {name}")),
            Some(package) if version != short(&package.version) => {
                let now = &package.version;
                found.push(format!("{at}: asks for {name} {version}, which is {now}"));
            }
            Some(_) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::{package, workspace};
    use super::*;

    #[test]
    fn a_page_asks_for_the_present_version() {
        let package = package("requeue", "0.2.1", &[]);
        let found = |text| old_versions(text, &[&package]);
        assert_eq!(found("```\nrequeue = \"0.2\"\n"), [""; 0]);
        assert_eq!(
            found("\nrequeue = \"0.1\""),
            ["2: asks for requeue 0.1, which is 0.2.1"]
        );
        assert_eq!(
            found("requeue-java = \"0.2\""),
            ["1: no package is called requeue-java"]
        );
    }

    #[test]
    fn one_oldest_rust_is_promised() {
        let with = |name, rust: &str| Package {
            rust_version: Some(rust.to_owned()),
            ..package(name, "1.0.0", &[])
        };
        let same = workspace(vec![with("a", "1.88"), with("b", "1.88")]);
        assert_eq!(oldest_rust(&same), Ok("1.88".to_owned()));
        let other = workspace(vec![with("a", "1.88"), with("b", "1.89")]);
        assert!(oldest_rust(&other).is_err());
    }
}
