//! What `cargo metadata` says about the workspace, as far as the steps need it.

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

/// The workspace.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// The folder of its manifest.
    pub(crate) root: PathBuf,
    /// Its members, in the order of their names.
    pub(crate) packages: Vec<Package>,
}

/// A member.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest: PathBuf,
    pub(crate) version: String,
    pub(crate) repository: Option<String>,
    /// Whether it may be published: the steps about users concern only those that may.
    pub(crate) published: bool,
    /// The oldest compiler it promises to build with.
    pub(crate) rust_version: Option<String>,
    /// Its features without `default`, in order.
    pub(crate) features: Vec<String>,
    /// The root file of its library.
    pub(crate) library: Option<PathBuf>,
    pub(crate) dependencies: Vec<Dependency>,
}

/// What a package depends on.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) only_for_tests: bool,
    /// Whether it is found by a path.
    pub(crate) is_local: bool,
    /// Which versions of it will do: `*` if the manifest names none.
    pub(crate) versions: String,
}

impl Workspace {
    /// Asks cargo, from wherever in the workspace this runs.
    ///
    /// # Errors
    ///
    /// Cargo cannot be run, refuses, or answers something else than it did so far.
    pub(crate) fn load() -> Result<Self, String> {
        Self::with(&[])
    }

    /// The workspace of `kube`, which is one of its own.
    ///
    /// # Errors
    ///
    /// As of [`load`](Self::load).
    pub(crate) fn kube(&self) -> Result<Self, String> {
        let manifest = self.root.join("kube/Cargo.toml");
        Self::with(&["--manifest-path".as_ref(), manifest.as_os_str()])
    }

    fn with(arguments: &[&OsStr]) -> Result<Self, String> {
        let output = Command::new("cargo")
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .args(arguments)
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| format!("cargo metadata: {error}"))?;
        if !output.status.success() {
            return Err(format!("cargo metadata: {}", output.status));
        }
        serde_json::from_slice(&output.stdout)
            .ok()
            .and_then(|answer| Self::parse(&answer))
            .ok_or_else(|| "cargo metadata: an answer of another shape than expected".to_owned())
    }

    fn parse(answer: &Value) -> Option<Self> {
        let packages = answer["packages"].as_array()?.iter().map(Package::parse);
        let mut packages = packages.collect::<Option<Vec<Package>>>()?;
        packages.sort_by(|a, b| a.name.cmp(&b.name));
        Some(Self {
            root: answer["workspace_root"].as_str()?.into(),
            packages,
        })
    }

    /// Where cargo builds.
    pub(crate) fn target(&self) -> PathBuf {
        let folder = env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
        self.root.join(folder)
    }

    /// The members that may be published.
    pub(crate) fn published(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.published)
    }
}

impl Package {
    fn parse(answer: &Value) -> Option<Self> {
        let features = answer["features"].as_object()?.keys();
        let is_library = |target: &&Value| target["kind"][0].as_str() == Some("lib");
        let library = answer["targets"].as_array()?.iter().find(is_library);
        let dependencies = answer["dependencies"].as_array()?.iter();
        Some(Self {
            name: answer["name"].as_str()?.to_owned(),
            manifest: answer["manifest_path"].as_str()?.into(),
            version: answer["version"].as_str()?.to_owned(),
            repository: answer["repository"].as_str().map(str::to_owned),
            // `null` allows every registry, an empty list none.
            published: answer["publish"]
                .as_array()
                .is_none_or(|list| !list.is_empty()),
            rust_version: answer["rust_version"].as_str().map(str::to_owned),
            features: features
                .filter(|name| *name != "default")
                .cloned()
                .collect(),
            library: library
                .and_then(|target| target["src_path"].as_str())
                .map(PathBuf::from),
            dependencies: dependencies.map(Dependency::parse).collect::<Option<_>>()?,
        })
    }
}

impl Dependency {
    fn parse(answer: &Value) -> Option<Self> {
        Some(Self {
            name: answer["name"].as_str()?.to_owned(),
            only_for_tests: answer["kind"].as_str() == Some("dev"),
            is_local: answer["path"].is_string(),
            versions: answer["req"].as_str()?.to_owned(),
        })
    }
}
