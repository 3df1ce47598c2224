//! Checks whether a release could go out. cargo-release raises the versions of manifests.

use std::fs;

use crate::api;
use crate::cmd::{Cmd, all, cmd, read, run_each, target};
use crate::report::{self, How, Step, Stop, Verdict, verdict};
use crate::steps::{choose, steps};
use crate::tidy::committed;
use crate::tools::{wheel, with_protoc};
use crate::workspace::{KUBE, OURS, Package, published};

/// The checks in order, the quick ones first.
const CHECKS: &[Step] = steps! {
    "numbers" 1 "the versions and the oldest Rust that pages name are those of today" numbers;
    "address" 5 "the pages about the repository and its packages, if there are links to them" address;
    "api" 60 "the public items of what is published are those of docs/api" api::check_all;
    "semver" 300 "no breaking change since the last tag that the version does not tell" semver;
    "packages" 200 "what is packaged holds what it should, and builds" packages;
    "minimal" 400 "the packages build with the oldest dependencies that they allow" minimal;
};

/// `--dry-run [CHECK…]`. Nothing here publishes.
///
/// # Errors
///
/// Unknown words, or checks that fail.
pub(crate) fn run(words: &[&str]) -> Verdict {
    let ["--dry-run", names @ ..] = words else {
        return Err(Stop::Mistake("a release begins with --dry-run".to_owned()));
    };
    report::run(&choose(CHECKS, names)?, How::new(false, !names.is_empty()))
}

fn numbers() -> Verdict {
    let (ours, kube) = (published(OURS)?, published(KUBE)?);
    let mut mistakes = Vec::new();
    for (package, page, promise) in [
        (&ours[0], "README.md", "badge/rust-{}%2B-blue"),
        (&ours[0], "README.md", "**Minimum Rust**: {},"),
        (&kube[0], "kube/README.md", "and Rust {}."),
    ] {
        let promise = promise.replace("{}", package.rust_version.as_deref().unwrap_or("none"));
        if !read(page)?.contains(&promise) {
            mistakes.push(format!("{page} does not say `{promise}`"));
        }
    }
    let packages: Vec<Package> = ours.into_iter().chain(kube).collect();
    for page in committed("*.md Cargo.toml kube/Cargo.toml")? {
        for (number, line) in (1..).zip(read(&page)?.lines()) {
            if let Some((name, asked)) = asked(line) {
                let package = packages.iter().find(|package| package.name == name);
                let now = package.map_or("no package of ours", |package| &*package.version);
                if !format!("{now}.").starts_with(&format!("{asked}.")) {
                    mistakes.push(format!("{page}:{number}: {name} {asked} is {now}"));
                }
            }
        }
    }
    verdict(&mistakes)
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
    let mut lines = Vec::new();
    for (manifest, pattern) in [(OURS, "v[0-9]*"), (KUBE, "requeue-kube-v[0-9]*")] {
        let list = "git tag --merged HEAD --no-contains HEAD --sort -version:refname --list";
        let tags = cmd(list).arg(pattern).read()?;
        lines.extend(tags.lines().next().map(|tag| {
            let line = cmd("").arg(target("tools/bin/cargo-semver-checks"));
            let line = line.args("semver-checks --all-features --workspace".split(' '));
            with_protoc(line.args(["--manifest-path", manifest, "--baseline-rev", tag]))
        }));
    }
    if lines.is_empty() {
        let why = "no tag v*, so nothing to compare with";
        return Err(Stop::NotRun(why.to_owned()));
    }
    let install = cmd("cargo install --locked cargo-semver-checks@0.50.0 --root");
    install.arg(target("tools")).run()?;
    run_each(lines)
}

/// The files of every package, and the maximum size of an archive in bytes. The largest of today is
/// that of `requeue-core`.
const NEEDED: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];
const ARCHIVE_MAX: u64 = 500_000;

/// Makes the archives of published packages. Cargo builds each package with the others, and with
/// the repository's lock file.
fn packages() -> Verdict {
    with_protoc(of(cmd("cargo package --locked"), &published(OURS)?)).run()?;
    let mut mistakes = Vec::new();
    for folder in unpack()? {
        let archive = fs::metadata(format!("{folder}.crate"))?.len();
        println!("{folder}.crate: {archive} bytes");
        mistakes.extend((archive > ARCHIVE_MAX).then(|| format!("{folder}.crate is too large")));
        let absent = NEEDED
            .iter()
            .filter(|file| read(format!("{folder}/{file}")).is_err());
        mistakes.extend(absent.map(|file| format!("{folder} has no {file}")));
        // Cargo cannot build this package, because its dependencies are in no registry yet.
        if folder.contains("/requeue-kube-0") {
            check(&folder, "").run()?;
        }
    }
    verdict(&mistakes)
}

/// Checks each package with the oldest versions that it asks for. Dependencies of tests are left
/// out: users do not have them, and they would ask for newer versions.
fn minimal() -> Verdict {
    all(unpack()?.iter().map(|folder| {
        wheel("bin/cargo-hack")?
            .args(["hack", "--remove-dev-deps"])
            .dir(folder)
            .run()?;
        let update = cmd("cargo update --quiet -Z direct-minimal-versions").dir(folder);
        update.env("RUSTC_BOOTSTRAP", "1").run()?;
        check(folder, "--locked").run()
    }))
}

/// Makes the archives of both workspaces, and unpacks each into a workspace of its own. A
/// configuration of cargo lets them find each other. Returns the folders.
fn unpack() -> Verdict<Vec<String>> {
    let (mut folders, mut patches) = (Vec::new(), String::from("[patch.crates-io]\n"));
    for manifest in [OURS, KUBE] {
        let packages = published(manifest)?;
        // The lock file of a package would need the others in a registry.
        let line = cmd("cargo package --quiet --allow-dirty --no-verify --exclude-lockfile");
        of(
            line.args(["--manifest-path", manifest, "--target-dir", &target("")]),
            &packages,
        )
        .run()?;
        for Package { name, version, .. } in packages {
            let folder = target(&format!("package/{name}-{version}"));
            cmd("tar -xzf")
                .arg(format!("{folder}.crate"))
                .dir(target("package"))
                .run()?;
            let manifest = format!("{folder}/Cargo.toml");
            fs::write(&manifest, read(&manifest)? + "\n[workspace]\n")?;
            patches += &format!("{name} = {{ path = {folder:?} }}\n");
            folders.push(folder);
        }
    }
    fs::create_dir_all(target("package/.cargo"))?;
    fs::write(target("package/.cargo/config.toml"), patches)?;
    Ok(folders)
}

/// A line of cargo about some packages.
fn of(line: Cmd, packages: &[Package]) -> Cmd {
    line.args(packages.iter().flat_map(|package| ["-p", &package.name]))
}

/// A line that checks the library in a folder. All of them share their builds.
fn check(folder: &str, option: &str) -> Cmd {
    let line = cmd("cargo check --lib --all-features").args(option.split_whitespace());
    let line = line
        .args(["--target-dir", &target("package/target")])
        .dir(folder);
    let is_of_kube = folder.contains("/requeue-kube-");
    with_protoc(line.args(is_of_kube.then_some("--features=k8s-openapi/latest")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_asks_for_a_version_of_ours() {
        let page = "requeue = \"0.1\" # threads\ntokio = \"1\"\n\
                    requeue-std = { path = \".\", version = \"0.1.2\" }\nrequeue = { path = \".\" }";
        let found: Vec<_> = page.lines().filter_map(asked).collect();
        assert_eq!(found, [("requeue", "0.1"), ("requeue-std", "0.1.2")]);
    }
}
