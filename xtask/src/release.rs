//! Whether a release could go out, and the one place where versions are raised.

mod address;
mod changelog;
mod minimal;
mod numbers;
mod packages;
mod semver;
mod versions;

use std::path::Path;
use std::process::Command;

use crate::api::{self, manifest_of};
use crate::report::{Asked, OnFailure, Report, Stop, Verdict};
use crate::steps::Step;
use crate::toolchain;
use crate::workspace::{Package, Workspace};

/// What is checked, in this order: the quick ones first.
const CHECKS: [Step; 8] = [
    Step {
        name: "versions",
        about: "every crate has its version, and those that use it ask for that",
        in_test: false,
        run: versions::check,
    },
    Step {
        name: "changelog",
        about: "CHANGELOG.md says what is released",
        in_test: false,
        run: changelog::check,
    },
    Step {
        name: "numbers",
        about: "the pages name the oldest Rust and the version of the manifests",
        in_test: false,
        run: numbers::check,
    },
    Step {
        name: "address",
        about: "the repository's address is there, or no page links to it",
        in_test: false,
        run: address::check,
    },
    Step {
        name: "api",
        about: "the public items of what is published are those of docs/api",
        in_test: false,
        run: api::check_all,
    },
    Step {
        name: "semver",
        about: "no breaking change since the last tag that the version does not tell",
        in_test: false,
        run: semver::check,
    },
    Step {
        name: "packages",
        about: "what is packaged holds what it should, and builds",
        in_test: false,
        run: packages::check,
    },
    Step {
        name: "minimal",
        about: "the packages build with the oldest dependencies that they allow",
        in_test: false,
        run: minimal::check,
    },
];

/// `cargo xtask release`.
///
/// # Errors
///
/// Words that are not understood.
pub(crate) fn run(words: &[String]) -> Result<bool, String> {
    let workspace = Workspace::load()?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => explain(&workspace),
        ["--dry-run"] => Ok(check(&workspace, Asked::ForAll, |_| true)),
        ["--dry-run", names @ ..] => {
            let known = |name: &&str| CHECKS.iter().any(|check| check.name == *name);
            match names.iter().find(|name| !known(name)) {
                Some(name) => Err(format!("no check is called `{name}`")),
                None => {
                    let is_chosen = |check: &Step| names.contains(&check.name);
                    Ok(check(&workspace, Asked::ByName, is_chosen))
                }
            }
        }
        ["--version", version] => versions::set(&workspace, version, versions::Of::All),
        ["--kube-version", version] => versions::set(&workspace, version, versions::Of::Kube),
        _ => Err(format!("not understood: {}", words.join(" "))),
    }
}

fn check(workspace: &Workspace, asked: Asked, is_chosen: impl Fn(&Step) -> bool) -> bool {
    let chosen: Vec<&Step> = CHECKS.iter().filter(|check| is_chosen(check)).collect();
    let mut report = Report::new(OnFailure::GoOn, asked, chosen.len());
    for step in chosen {
        report.step(step, workspace);
    }
    report.conclude()
}

/// Without words: what a person does, because nothing here publishes.
fn explain(workspace: &Workspace) -> Result<bool, String> {
    let kube = workspace.kube()?;
    println!("Checks, which publish nothing: cargo xtask release --dry-run");
    for step in &CHECKS {
        println!("  {:<10} {}", step.name, step.about);
    }
    println!("\nTo publish is a person's decision. The order, which cargo finds by itself:");
    for package in in_order(workspace).chain(in_order(&kube)) {
        println!("  {} {}", package.name, package.version);
    }
    println!(
        "\n  cargo publish --workspace\n  cargo publish -p requeue-kube --manifest-path \
         kube/Cargo.toml"
    );
    Ok(true)
}

/// What is published, each package after those that it depends on.
fn in_order(workspace: &Workspace) -> impl Iterator<Item = &Package> {
    let mut left: Vec<&Package> = workspace.published().collect();
    let mut order = Vec::new();
    while !left.is_empty() {
        let is_free = |package: &&Package| !left.iter().any(|other| needs(package, other));
        // If all wait for each other, cargo says so when it packages them.
        let at = left.iter().position(is_free).unwrap_or(0);
        order.push(left.remove(at));
    }
    order.into_iter()
}

/// Whether one package cannot be published before another one. Without a version, a dependency of
/// tests is left out of the package.
fn needs(package: &Package, other: &Package) -> bool {
    let mut needed = package.dependencies.iter().filter(|d| d.versions != "*");
    package.name != other.name && needed.any(|dependency| dependency.name == other.name)
}

/// What a program prints.
fn printed(program: &str, arguments: Vec<&str>, folder: &Path) -> Result<String, String> {
    toolchain::answer(Command::new(program).args(arguments), folder).map_err(|stop| match stop {
        Stop::Failed(why) | Stop::Skipped(why) | Stop::NotRun(why) => why,
    })
}

/// A verdict on mistakes: each is printed, and they are counted.
fn verdict(mistakes: &[String]) -> Verdict {
    for mistake in mistakes {
        println!("{mistake}");
    }
    match mistakes {
        [] => Ok(()),
        [only] => Err(only.clone().into()),
        [first, ..] => Err(format!("{} mistakes; {first}", mistakes.len()).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    /// A package, and what it depends on with which versions.
    pub(super) fn package(name: &str, version: &str, needs: &[(&str, &str)]) -> Package {
        let dependency = |(name, versions): &(&str, &str)| Dependency {
            name: (*name).to_owned(),
            only_for_tests: *versions == "*",
            is_local: true,
            versions: (*versions).to_owned(),
        };
        Package {
            name: name.to_owned(),
            manifest: format!("{name}/Cargo.toml").into(),
            version: version.to_owned(),
            repository: None,
            published: true,
            rust_version: None,
            features: Vec::new(),
            library: None,
            dependencies: needs.iter().map(dependency).collect(),
        }
    }

    pub(super) fn workspace(packages: Vec<Package>) -> Workspace {
        Workspace {
            root: ".".into(),
            packages,
        }
    }

    #[test]
    fn a_package_comes_after_what_it_depends_on() {
        let workspace = workspace(vec![
            package("a", "1.0.0", &[("b", "^1.0.0"), ("c", "^1.0.0")]),
            package("b", "1.0.0", &[("c", "^1.0.0"), ("a", "*")]),
            package("c", "1.0.0", &[("c", "^1.0.0")]),
        ]);
        let order: Vec<&str> = in_order(&workspace).map(|p| p.name.as_str()).collect();
        assert_eq!(order, ["c", "b", "a"]);
    }

    #[test]
    fn mistakes_are_counted() {
        assert!(verdict(&[]).is_ok());
        assert!(verdict(&["a".to_owned(), "b".to_owned()]).is_err());
    }
}
