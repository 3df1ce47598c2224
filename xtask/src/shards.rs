//! Replicas and etcd as processes, faults, and a checker of what was written: `shards/proof`.

use std::path::PathBuf;

use crate::builds;
use crate::debian::shown;
use crate::invocation::Invocation;
use crate::report::{Stop, Verdict};
use crate::servers::{self, with_protoc};
use crate::webhooks;
use crate::workspace::Workspace;

/// The step of `ci`: one seed, as the tests are built.
pub(crate) fn short(workspace: &Workspace) -> Verdict {
    let etcd = servers::etcd(workspace)?;
    builds::programs(workspace)?;
    let program = shown(&workspace.target().join("debug/proof"));
    prove(Invocation::new(&program).args(["--short"]), etcd, workspace)
}

/// What `cargo xtask shards` is called with goes to the program that runs it all: two seeds, every
/// planted bug and the figures, unless it says otherwise. `--marks` measures marks alone.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Verdict {
    let etcd = servers::etcd(workspace)?;
    let proof = Invocation::new("cargo run --release -p requeue-shards-proof")
        .args(["--features", "etcd", "--bin", "proof", "--"])
        .args(arguments);
    prove(with_protoc(proof, workspace)?, etcd, workspace)?;
    if arguments.iter().any(|argument| argument == "--marks") {
        return Ok(());
    }
    // The same on a store that people use.
    webhooks::replicas(workspace)
}

fn prove(proof: Invocation, etcd: PathBuf, workspace: &Workspace) -> Result<(), Stop> {
    let proof = proof
        .variable("ETCD", shown(&etcd))
        .variable("FOLDER", shown(&workspace.target()));
    Ok(proof.run(&workspace.root)?)
}
