//! The versions of what is published, in the manifests and in what pages show of manifests.

use std::fs;
use std::path::Path;

use super::verdict;
use crate::invocation::Invocation;
use crate::report::Verdict;
use crate::workspace::{Package, Workspace};

/// Whose version is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// Of every crate but the next.
    All,
    /// Of `requeue-kube`, which goes with the major versions of kube.
    Kube,
}

/// Compares the versions of the packages with each other, and with what asks for them.
pub(super) fn check(workspace: &Workspace) -> Verdict {
    println!("$ cargo xtask release --dry-run versions");
    let kube = workspace.kube()?;
    verdict(&mistakes(workspace, &kube))
}

fn mistakes(workspace: &Workspace, kube: &Workspace) -> Vec<String> {
    let mut found = Vec::new();
    let published = || workspace.published().chain(kube.published());
    let Some(first) = workspace.published().next() else {
        return vec!["nothing is published".to_owned()];
    };
    for package in workspace.published() {
        if package.version != first.version {
            let (name, version) = (&package.name, &package.version);
            found.push(format!(
                "{name} is {version}, and {} is {}",
                first.name, first.version
            ));
        }
    }
    for package in published() {
        if package.repository != first.repository {
            found.push(format!("{} has another repository", package.name));
        }
        found.extend(package.dependencies.iter().filter_map(|dependency| {
            let (versions, to) = (&dependency.versions, &dependency.name);
            // Without a version, a dependency of tests is left out of the package.
            if !dependency.is_local || (dependency.only_for_tests && versions == "*") {
                return None;
            }
            let other = published().find(|other| &other.name == to);
            let what = match other {
                None => format!("{} depends on {to}, which is not published", package.name),
                Some(other) if *versions != format!("^{}", other.version) => {
                    let (from, version) = (&package.name, &other.version);
                    format!("{from} asks for {to} {versions}, which is {version}")
                }
                Some(_) => return None,
            };
            Some(what)
        }));
    }
    found
}

/// Writes a version wherever the one before stands: into manifests, and into what pages show.
///
/// # Errors
///
/// No version of three numbers, or files that cannot be written.
pub(super) fn set(workspace: &Workspace, version: &str, of: Of) -> Result<bool, String> {
    if !is_version(version) {
        return Err(format!("`{version}` is no version of three numbers"));
    }
    let kube = workspace.kube()?;
    let owner = if of == Of::Kube { &kube } else { workspace };
    let packages: Vec<&Package> = owner.published().collect();
    let old = packages.first().map_or("", |package| &package.version);
    let names: Vec<&str> = packages.iter().map(|p| p.name.as_str()).collect();
    let own = if of == Of::Kube { "kube/" } else { "" }.to_owned() + "Cargo.toml";
    for path in committed(&workspace.root, &["*Cargo.toml", "*.md"])? {
        let file = workspace.root.join(&path);
        let text = fs::read_to_string(&file).map_err(|error| format!("{path}: {error}"))?;
        let changed = raised(&text, path == own, &names, old, version);
        if changed != text {
            println!("{path}: {old} is {version}");
            fs::write(&file, changed).map_err(|error| format!("{path}: {error}"))?;
        }
    }
    for lock in committed(&workspace.root, &["*Cargo.lock"])? {
        let manifest = lock.replace("Cargo.lock", "Cargo.toml");
        Invocation::new("cargo update --quiet --workspace --offline --manifest-path")
            .args([manifest])
            .run(&workspace.root)?;
    }
    Ok(true)
}

/// The files in the repository whose names match.
pub(super) fn committed(root: &Path, patterns: &[&str]) -> Result<Vec<String>, String> {
    let list = super::printed("git", [&["ls-files", "--"], patterns].concat(), root)?;
    Ok(list.lines().map(str::to_owned).collect())
}

/// A manifest or a page with another version of some packages: in its own line `version`, if it is
/// the manifest that has it, and in lines that ask for one of them.
fn raised(text: &str, is_own: bool, names: &[&str], old: &str, new: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let is_its_own = is_own && line.starts_with("version = ");
        let line = match asked(line) {
            Some((name, _)) if names.contains(&name) => line
                .replace(
                    &format!("\"{}\"", short(old)),
                    &format!("\"{}\"", short(new)),
                )
                .replace(&format!("\"{old}\""), &format!("\"{new}\"")),
            _ if is_its_own => line.replace(&format!("\"{old}\""), &format!("\"{new}\"")),
            _ => line.to_owned(),
        };
        lines.push(line + "\n");
    }
    lines.concat()
}

/// Which package a line of a manifest asks for, and which version: `requeue = "0.1"`.
pub(super) fn asked(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.trim_start().split_once(" = ")?;
    let is_ours = name == "requeue" || name.starts_with("requeue-");
    let value = match rest.strip_prefix('"') {
        Some(value) => value,
        None => rest.split_once("version = \"")?.1,
    };
    let (version, _) = value.split_once('"')?;
    is_ours.then_some((name, version))
}

/// As pages ask for a version: as far as it breaks nothing.
pub(super) fn short(version: &str) -> &str {
    let numbers = if version.starts_with("0.") { 2 } else { 1 };
    let mut dots = version.match_indices('.').map(|(at, _)| at);
    let end = dots.nth(numbers - 1);
    &version[..end.unwrap_or(version.len())]
}

fn is_version(version: &str) -> bool {
    let is_number = |part: &str| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        digits && (part == "0" || !part.starts_with('0'))
    };
    version.split('.').count() == 3 && version.split('.').all(is_number)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{package, workspace};
    use super::*;

    #[test]
    fn a_version_of_its_own_and_one_asked_for_in_vain_are_found() {
        let ours = |version, asked| {
            workspace(vec![
                package("a", "1.2.3", &[]),
                package("b", version, &[("a", asked), ("tools", "*")]),
            ])
        };
        let kube = |asked| workspace(vec![package("kube", "7.0.0", &[("a", asked)])]);
        let found = |ours, kube| mistakes(&ours, &kube);
        assert_eq!(found(ours("1.2.3", "^1.2.3"), kube("^1.2.3")), [""; 0]);
        assert_eq!(
            found(ours("1.2.4", "^1.2.3"), kube("^1.2.3")),
            ["b is 1.2.4, and a is 1.2.3"]
        );
        assert_eq!(
            found(ours("1.2.3", "^1.2.2"), kube("^1.2.0")),
            [
                "b asks for a ^1.2.2, which is 1.2.3",
                "kube asks for a ^1.2.0, which is 1.2.3"
            ]
        );
    }

    #[test]
    fn what_is_not_published_is_no_dependency() {
        let ours = workspace(vec![package("a", "1.2.3", &[("tools", "^1.2.3")])]);
        let found = mistakes(&ours, &workspace(Vec::new()));
        assert_eq!(found, ["a depends on tools, which is not published"]);
    }

    #[test]
    fn a_version_is_raised_where_it_stands() {
        let text = "version = \"0.1.0\"\n\
                    requeue = \"0.1\" # threads\n\
                    requeue-core = { path = \"core\", version = \"0.1.0\" }\n\
                    requeue-kube = { path = \"kube\", version = \"0.1.0\" }\n\
                    embassy-futures = \"0.1\"\n";
        let expected = "version = \"0.2.0\"\n\
                        requeue = \"0.2\" # threads\n\
                        requeue-core = { path = \"core\", version = \"0.2.0\" }\n\
                        requeue-kube = { path = \"kube\", version = \"0.1.0\" }\n\
                        embassy-futures = \"0.1\"\n";
        let names = ["requeue", "requeue-core"];
        assert_eq!(raised(text, true, &names, "0.1.0", "0.2.0"), expected);
        let other = raised(text, false, &names, "0.1.0", "0.2.0");
        assert!(other.starts_with("version = \"0.1.0\"\n"));
    }

    #[test]
    fn a_page_asks_for_what_breaks_nothing() {
        assert_eq!(short("0.1.0"), "0.1");
        assert_eq!(short("1.2.3"), "1");
        assert_eq!(
            asked("requeue = \"0.1\"   # threads"),
            Some(("requeue", "0.1"))
        );
        let line = "requeue-std = { version = \"0.1\", features = [] }";
        assert_eq!(asked(line), Some(("requeue-std", "0.1")));
        assert_eq!(asked("tokio = \"1\""), None);
        assert_eq!(asked("requeue = { path = \".\" }"), None);
    }

    #[test]
    fn a_version_has_three_numbers() {
        assert!(is_version("0.10.0"));
        for wrong in ["1", "1.2", "1.2.3.4", "v1.2.3", "1.2.x", "1..2", "01.2.3"] {
            assert!(!is_version(wrong), "{wrong}");
        }
    }
}
