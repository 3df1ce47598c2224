//! The public items of each published library, as lists in the repository, so that a review shows
//! every change.

use std::fs;

use crate::cmd::{all, cmd, read, root, target};
use crate::report::{Stop, Verdict};
use crate::toolchain::described;
use crate::tools::with_protoc;
use crate::workspace::{KUBE, OURS, Package, published};

/// Compares the lists with the sources, except for the workspace `kube`: its dependencies would be
/// built again, with other features than for its tests.
pub(crate) fn check() -> Verdict {
    compare(false)
}

/// Compares all lists.
pub(crate) fn check_all() -> Verdict {
    compare(true)
}

/// Writes all lists.
pub(crate) fn write() -> Verdict {
    make("docs/api", true).map(|_| ())
}

fn compare(with_kube: bool) -> Verdict {
    let made = target("api");
    let same = make(&made, with_kube)?.into_iter().map(|name| {
        let lists = [format!("docs/api/{name}.txt"), format!("{made}/{name}.txt")];
        let difference = "git --no-pager diff --no-index --unified=0";
        cmd(difference).args(lists).run().map_err(|_| {
            let hint = "if that is meant, run `cargo xtask api`, and say it in CHANGELOG.md";
            Stop::Failed(format!(
                "{name}: other public items than in docs/api; {hint}"
            ))
        })
    });
    all(same)
}

/// Writes a list for each library into a folder, leaves nothing else there, and returns their
/// names.
fn make(folder: &str, with_kube: bool) -> Verdict<Vec<String>> {
    let toolchain = read("rust-toolchain.toml")?;
    let release = described("release: ")?;
    if !toolchain.contains(&format!("channel = \"{release}\"")) {
        // Another Rust prints another format.
        let why = format!("the lists need the pinned Rust, and this is {release}");
        return Err(Stop::Skipped(why));
    }
    let script = root().join("xtask/rustdoc-json").display().to_string();
    let doc = cmd("cargo doc --all-features --no-deps --lib").env("RUSTDOC", script);
    let doc = doc.env("RUSTDOCFLAGS", "-Zunstable-options --output-format json");
    // The same selection as in the step `doc`, so that both share their builds.
    let mut docs = vec![(
        OURS,
        target("doc"),
        with_protoc(doc.clone().arg("--workspace")),
    )];
    if with_kube {
        let kube = "-p requeue-kube -p requeue-kube-testing --features k8s-openapi/latest \
                    --manifest-path kube/Cargo.toml --target-dir";
        let (line, made) = (doc.args(kube.split(' ')), target("../kube/target"));
        docs.push((KUBE, format!("{made}/doc"), line.arg(made)));
    }
    let (mut names, mut json) = (Vec::new(), Vec::new());
    for (manifest, made, line) in docs {
        line.run()?;
        for Package { name, .. } in published(manifest)? {
            json.push(format!("{made}/{}.json", name.replace('-', "_")));
            names.push(name);
        }
    }
    let folder = root().join(folder);
    if folder.is_dir() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let list = cmd("cargo run --quiet -p public-items --").arg(folder.display().to_string());
    list.args(json).run()?;
    Ok(names)
}
