//! The workspaces and their packages, from `cargo metadata`.

use serde_json::Value;

use crate::cmd::cmd;
use crate::report::Verdict;

/// A member.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest: String,
    pub(crate) version: String,
    /// Whether it may be published. Steps about users only concern published packages.
    pub(crate) published: bool,
    /// The oldest compiler it promises to build with.
    pub(crate) rust_version: Option<String>,
    pub(crate) features: Vec<String>,
}

/// The workspaces. `kube` is one of its own.
pub(crate) const OURS: &str = "Cargo.toml";
pub(crate) const KUBE: &str = "kube/Cargo.toml";

/// The members of a workspace, sorted by name.
///
/// # Errors
///
/// Cargo fails, or its output has changed.
pub(crate) fn members(manifest: &str) -> Verdict<Vec<Package>> {
    let line = cmd("cargo metadata --no-deps --format-version 1 --manifest-path");
    let answer: Value = serde_json::from_str(&line.arg(manifest).read()?)?;
    let packages = answer["packages"].as_array().into_iter().flatten();
    let packages: Option<Vec<Package>> = packages.map(Package::parse).collect();
    let mut packages = packages.ok_or("cargo metadata: another shape than expected")?;
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(packages)
}

/// The members that may be published.
///
/// # Errors
///
/// As [`members`].
pub(crate) fn published(manifest: &str) -> Verdict<Vec<Package>> {
    let mut packages = members(manifest)?;
    packages.retain(|package| package.published);
    Ok(packages)
}

impl Package {
    fn parse(answer: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(Self {
            name: text(&answer["name"])?,
            manifest: text(&answer["manifest_path"])?,
            version: text(&answer["version"])?,
            // `null` allows every registry, an empty list none.
            published: answer["publish"]
                .as_array()
                .is_none_or(|list| !list.is_empty()),
            rust_version: text(&answer["rust_version"]),
            features: answer["features"].as_object()?.keys().cloned().collect(),
        })
    }
}
