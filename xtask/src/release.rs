//! Checks whether a release could go out. cargo-release raises versions.

use std::fs;
use std::path::Path;

use crate::api;
use crate::cmd::{Cmd, all, cmd, read, run_each, target, write};
use crate::report::{self, How, Step, Stop, Verdict, verdict};
use crate::steps::steps;
use crate::tidy::committed;
use crate::tools::{wheel, with_protoc};
use crate::workspace::{KUBE, OURS, Package, published};

/// The checks in order, the quick ones first.
const CHECKS: &[Step] = steps! {
    "numbers" 1 "one version and one oldest Rust, in manifests and on pages" numbers;
    "changelog" 1 "CHANGELOG.md says what is released" changelog;
    "address" 5 "the pages about the repository and its packages, if there are links to them" address;
    "api" 60 "the public items of what is published are those of docs/api" api::check_all;
    "semver" 300 "no breaking change since the last tag that the version does not tell" semver;
    "packages" 200 "what is packaged holds what it should, and builds" packages;
    "minimal" 200 "the packages build with the oldest dependencies that they allow" minimal;
};

/// `--dry-run [CHECK…]`. Nothing here publishes.
///
/// # Errors
///
/// Unknown words, or checks that fail.
pub(crate) fn run(words: &[&str]) -> Verdict {
    let is_known = |name: &&str| CHECKS.iter().any(|check| check.name == *name);
    match words {
        ["--dry-run", names @ ..] if names.iter().all(is_known) => {
            let is_chosen = |step: &&Step| names.is_empty() || names.contains(&step.name);
            let chosen: Vec<&Step> = CHECKS.iter().filter(is_chosen).collect();
            report::run(&chosen, How::new(false, !names.is_empty()))
        }
        _ => Err(Stop::Mistake(format!(
            "not understood: {}",
            words.join(" ")
        ))),
    }
}

fn numbers() -> Verdict {
    let (ours, kube) = (published(OURS)?, published(KUBE)?);
    let mut mistakes = Vec::new();
    for (packages, page, promises) in [
        (
            &ours,
            "README.md",
            &["badge/rust-{}%2B-blue", "**Minimum Rust**: {},"][..],
        ),
        (&kube, "kube/README.md", &["and Rust {}."]),
    ] {
        let numbers = |package: &Package| (package.version.clone(), package.rust_version.clone());
        if packages
            .iter()
            .any(|package| numbers(package) != numbers(&packages[0]))
        {
            mistakes.push(format!("{page}: not one version, or not one rust-version"));
        }
        let oldest = packages[0].rust_version.as_deref().unwrap_or("none");
        let promises = promises.iter().map(|promise| promise.replace("{}", oldest));
        let text = read(page)?;
        let absent = promises.filter(|promise| !text.contains(promise));
        mistakes.extend(absent.map(|promise| format!("{page} does not say `{promise}`")));
    }
    let packages: Vec<Package> = ours.into_iter().chain(kube).collect();
    for page in committed("*.md Cargo.toml kube/Cargo.toml")? {
        let in_full = page.ends_with(".toml");
        let wrong = old_versions(&read(&page)?, in_full, &packages);
        mistakes.extend(wrong.into_iter().map(|what| format!("{page}:{what}")));
    }
    verdict(&mistakes)
}

/// The lines that ask for another version than the present one. A manifest needs the full version,
/// a page only the part that breaks nothing.
fn old_versions(text: &str, in_full: bool, packages: &[Package]) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let Some((name, version)) = asked(line) else {
            continue;
        };
        let package = packages.iter().find(|package| package.name == name);
        match package.map(|package| &*package.version) {
            None => found.push(format!("{number}: no package is called {name}")),
            Some(now) if version != if in_full { now } else { short(now) } => {
                found.push(format!(
                    "{number}: asks for {name} {version}, which is {now}"
                ));
            }
            Some(_) => {}
        }
    }
    found
}

/// The package and version that a line of a manifest asks for: `requeue = "0.1"`.
fn asked(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once(" = ")?;
    let is_ours = name == "requeue" || name.starts_with("requeue-");
    let value = rest
        .strip_prefix('"')
        .or_else(|| Some(rest.split_once("version = \"")?.1))?;
    let (version, _) = value.split_once('"')?;
    is_ours.then_some((name, version))
}

/// The version for pages: only the part that breaks nothing.
fn short(version: &str) -> &str {
    let dots = version.match_indices('.').map(|(at, _)| at);
    let mut ends = dots.skip(usize::from(version.starts_with("0.")));
    &version[..ends.next().unwrap_or(version.len())]
}

/// Checks that the page has entries to release, or, at a tag of the version, that it has released
/// them.
fn changelog() -> Verdict {
    let version = &published(OURS)?[0].version;
    let tags = cmd("git tag --points-at HEAD").read()?;
    let is_tagged = tags.lines().any(|tag| tag == format!("v{version}"));
    match mistake(&read("CHANGELOG.md")?, version, is_tagged) {
        Some(what) => Err(format!("CHANGELOG.md: {what}").into()),
        None => Ok(()),
    }
}

/// The mistake, if any. Before a tag there has to be an entry. At a tag no entry may be left over.
fn mistake(text: &str, version: &str, is_tagged: bool) -> Option<String> {
    // Whether a section has entries, if it is there.
    let section = |title: &str| {
        let (_, section) = text.split_once(title)?;
        Some(section.split("\n## ").next()?.contains("\n- "))
    };
    let released = format!("## [{version}] - 20");
    let mistake = match (section(&released), section("## [Unreleased]")) {
        (Some(false), _) => "the section of the version has no entries",
        (Some(true), Some(true)) if is_tagged => "[Unreleased] has entries at a tag",
        (None, _) if is_tagged => "no section of the tag's version with its date",
        (None, Some(false) | None) => {
            "no entries under [Unreleased], and no section of the version"
        }
        _ => return None,
    };
    Some(format!("{mistake}: `{released}YY-MM-DD`"))
}

/// Checks that the pages about the repository and its published packages exist, if anything links to
/// them.
fn address() -> Verdict {
    let ours = r"(docs\.rs|crates\.io/crates|lib\.rs/crates|github\.com/requeue-rs)/requeue";
    let line = wheel("bin/lychee")?.args("--no-progress --exclude .* --include".split(' '));
    line.arg(ours)
        .args(committed("*.md */src/*.rs src/*.rs")?)
        .run()
}

/// Compares published packages with their last tag. This version of the tool reads the format of
/// the pinned Rust's rustdoc.
fn semver() -> Verdict {
    let tool = target("tools/bin/cargo-semver-checks");
    let mut lines = Vec::new();
    for (manifest, pattern) in [(OURS, "v[0-9]*"), (KUBE, "requeue-kube-v[0-9]*")] {
        let list = "git tag --merged HEAD --no-contains HEAD --sort -version:refname --list";
        let tags = cmd(list).arg(pattern).read()?;
        if let Some(tag) = tags.lines().next() {
            let line = cmd("").args([&tool, "semver-checks", "--all-features"]);
            let line = line.args(["--manifest-path", manifest, "--baseline-rev", tag]);
            lines.push(with_protoc(of(line, &published(manifest)?)));
        }
    }
    if lines.is_empty() {
        return Err(Stop::NotRun(
            "no tag v*, so nothing to compare with".to_owned(),
        ));
    }
    if !Path::new(&tool).is_file() {
        let install = cmd("cargo install --locked cargo-semver-checks@0.50.0 --root");
        install.arg(target("tools")).run()?;
    }
    run_each(lines)
}

/// A line of cargo about some packages.
fn of(line: Cmd, packages: &[Package]) -> Cmd {
    line.args(packages.iter().flat_map(|package| ["-p", &package.name]))
}

/// The files of every package, and the maximum size of a file, as `find` writes it, and of an archive,
/// in bytes. The largest of today are a lock file and `requeue-core`.
const NEEDED: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];
const FILE_MAX: &str = "+150000c";
const ARCHIVE_MAX: u64 = 500_000;
/// How the folders of the packages for Kubernetes begin.
const KUBES: &str = "requeue-kube-";

/// Makes the archives of published packages. Cargo builds each package with the others, and with
/// the repository's lock file.
fn packages() -> Verdict {
    with_protoc(of(cmd("cargo package --locked"), &published(OURS)?)).run()?;
    let folder = target("packages");
    let mut mistakes = Vec::new();
    let names = unpack(&folder)?;
    for name in &names {
        mistakes.extend(wrong(&folder, name)?);
    }
    // Cargo cannot build this package, because its dependencies are in no registry yet. In a workspace
    // with packages that promise an older Rust it would choose an older kube.
    choose(&folder, &names, |name| name.starts_with(KUBES))?;
    let kube = cmd("cargo check -p requeue-kube --all-features --features k8s-openapi/latest");
    all([verdict(&mistakes), kube.dir(&folder).run()])
}

/// Makes the archives of both workspaces, and unpacks them into one workspace, where the packages
/// find each other. Returns the folders, each named after a package and its version.
fn unpack(folder: &str) -> Verdict<Vec<String>> {
    if Path::new(folder).is_dir() {
        fs::remove_dir_all(folder)?;
    }
    let mut names = Vec::new();
    for manifest in [OURS, KUBE] {
        let packages = published(manifest)?;
        // The lock file of a package would need the others in a registry.
        let line = cmd("cargo package --quiet --allow-dirty --no-verify --exclude-lockfile");
        let line = line.args(["--target-dir", folder, "--manifest-path", manifest]);
        of(line, &packages).run()?;
        for package in packages {
            let name = format!("{}-{}", package.name, package.version);
            cmd("tar -xzf")
                .arg(format!("package/{name}.crate"))
                .dir(folder)
                .run()?;
            names.push(name);
        }
    }
    choose(folder, &names, |_| true)?;
    Ok(names)
}

/// Makes some packages the members of the workspace. The others are only depended on.
fn choose(folder: &str, names: &[String], is_chosen: impl Fn(&str) -> bool) -> Verdict {
    let (members, others): (Vec<&String>, Vec<_>) = names.iter().partition(|name| is_chosen(name));
    let patches = names.iter().filter_map(|name| {
        let (package, _) = name.rsplit_once('-')?;
        Some(format!("{package} = {{ path = \"{name}\" }}\n"))
    });
    let workspace = format!(
        "[workspace]\nresolver = \"3\"\nmembers = {members:?}\nexclude = {others:?}\n\n\
         [patch.crates-io]\n{}",
        patches.collect::<String>()
    );
    write(&format!("{folder}/Cargo.toml"), workspace)
}

/// The mistakes of a package that is unpacked in a folder, below which its archive is.
fn wrong(folder: &str, name: &str) -> Verdict<Vec<String>> {
    let archive = fs::metadata(format!("{folder}/package/{name}.crate"))?.len();
    println!("{name}: an archive of {archive} bytes");
    let is_there = |file: &str| Path::new(&format!("{folder}/{name}/{file}")).is_file();
    let absent = NEEDED.iter().filter(|file| !is_there(file));
    let mut found: Vec<String> = absent.map(|file| format!("{name} has no {file}")).collect();
    let large = cmd("find")
        .args([name, "-type", "f", "-size", FILE_MAX])
        .dir(folder)
        .read()?;
    found.extend(large.lines().map(|file| format!("{file} is too large")));
    found.extend((archive > ARCHIVE_MAX).then(|| format!("{name} has {archive} bytes")));
    Ok(found)
}

/// Checks the packages with the oldest versions that they ask for. Dependencies of tests are left
/// out: users do not have them, and they would ask for newer versions.
fn minimal() -> Verdict {
    let folder = target("minimal");
    let names = unpack(&folder)?;
    let strip = wheel("bin/cargo-hack")?.args("hack --remove-dev-deps --workspace".split(' '));
    strip.dir(&folder).run()?;
    // Separately, because these ask for newer versions than the others.
    let groups = [
        ("", ""),
        ("requeue-inspect-", ""),
        (KUBES, "--features k8s-openapi/latest"),
    ];
    for (group, features) in groups {
        let is_of = |name: &str, prefix: &str| !prefix.is_empty() && name.starts_with(prefix);
        choose(&folder, &names, |name| match group {
            "" => !groups.iter().any(|(prefix, _)| is_of(name, prefix)),
            _ => is_of(name, group),
        })?;
        let update = cmd("cargo update --quiet -Z direct-minimal-versions").dir(&folder);
        update.env("RUSTC_BOOTSTRAP", "1").run()?;
        let check = "cargo check --locked --keep-going --lib --workspace --all-features";
        let check = cmd(check).args(features.split_whitespace());
        with_protoc(check.dir(&folder)).run()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str) -> Package {
        Package {
            name: name.to_owned(),
            manifest: String::new(),
            version: version.to_owned(),
            published: true,
            rust_version: None,
            library: None,
            features: Vec::new(),
        }
    }

    #[test]
    fn a_page_asks_for_the_present_version_and_a_manifest_in_full() {
        let packages = [package("requeue", "0.2.1"), package("requeue-std", "1.2.3")];
        let found = |text, in_full| old_versions(text, in_full, &packages);
        let page = "```\nrequeue = \"0.2\" # threads\ntokio = \"1\"\nrequeue-std = \"1\"\n";
        assert_eq!(found(page, false), [""; 0]);
        let old = "\nrequeue = { version = \"0.1\", features = [] }";
        assert_eq!(
            found(old, false),
            ["2: asks for requeue 0.1, which is 0.2.1"]
        );
        assert_eq!(
            found("requeue-java = \"0.2\"", false),
            ["1: no package is called requeue-java"]
        );
        let full = "requeue = { path = \".\", version = \"0.2.1\" }\nrequeue = { path = \".\" }";
        assert_eq!(found(full, true), [""; 0]);
        assert_eq!(found(page, true).len(), 2);
    }

    const BOTH: &str = "## [Unreleased]\n- b\n## [1.2.3] - 2026-01-31\n### Added\n- a\n";
    const RELEASED: &str = "## [Unreleased]\n\n## [1.2.3] - 2026-01-31\n- a\n";

    #[track_caller]
    fn assert_mistake(text: &str, is_tagged: bool, what: &str) {
        let found = mistake(text, "1.2.3", is_tagged).unwrap();
        assert!(found.starts_with(what), "{found}");
    }

    #[test]
    fn something_is_to_be_released() {
        for text in ["## [Unreleased]\n- a\n", RELEASED, BOTH] {
            assert_eq!(mistake(text, "1.2.3", false), None, "{text}");
        }
        for text in ["## [Unreleased]\n", "## [1.2.2] - 2026-01-31\n- a\n"] {
            assert_mistake(text, false, "no entries under [Unreleased]");
        }
    }

    #[test]
    fn at_a_tag_nothing_is_left_over() {
        assert_eq!(mistake(RELEASED, "1.2.3", true), None);
        assert_mistake(BOTH, true, "[Unreleased] has entries");
        assert_mistake(
            "## [Unreleased]\n- a\n",
            true,
            "no section of the tag's version",
        );
    }

    #[test]
    fn a_release_has_a_date_and_entries() {
        for title in ["## [1.2.3]", "## [1.2.3] - soon", "## [1.2.3] 2026-01-31"] {
            assert_mistake(
                &format!("{title}\n- a\n"),
                true,
                "no section of the tag's version",
            );
        }
        assert_mistake(
            "## [1.2.3] - 2026-01-31\n",
            false,
            "the section of the version has no",
        );
    }
}
