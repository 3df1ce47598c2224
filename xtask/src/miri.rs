//! The tests of core under Miri, which interprets them and finds undefined behaviour, also in what
//! core is built from, and leaks.

use crate::invocation::Invocation;
use crate::report::{Stop, Verdict};
use crate::toolchain;
use crate::workspace::Workspace;

/// A nightly that has Miri: not every one does.
const NIGHTLY: &str = "nightly-2026-04-14";

/// Hands its arguments to `cargo miri test`: `--target s390x-unknown-linux-gnu` interprets another
/// processor.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Verdict {
    let root = &workspace.root;
    if !toolchain::has(&format!("cargo +{NIGHTLY} miri")) {
        let install = format!("rustup toolchain install {NIGHTLY} --profile minimal");
        let install = Invocation::new(&install)
            .args(["--component", "miri", "--component", "rust-src"])
            .args(["--no-self-update"]);
        install.run(root).map_err(Stop::NotRun)?;
    }
    let line = Invocation::new("cargo")
        .args([format!("+{NIGHTLY}")])
        .args("miri test --no-fail-fast -p requeue-core --all-features --lib --tests".split(' '))
        .args(arguments)
        .variable(
            "CARGO_TARGET_DIR",
            workspace.target().join("miri").display().to_string(),
        );
    Ok(line.run(root)?)
}
