//! Replicas and etcd as processes, faults, and a checker of what was written: `shards/proof`.

use crate::debian::shown;
use crate::invocation::Invocation;
use crate::report::Verdict;
use crate::servers::{self, with_protoc};
use crate::workspace::Workspace;

/// The step of `ci`: two seeds, every planted bug and the figures, in two minutes.
pub(crate) fn short(workspace: &Workspace) -> Verdict {
    run(workspace, &[])
}

/// What `cargo xtask shards` is called with goes to the program that runs it all.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Verdict {
    let etcd = servers::etcd(workspace)?;
    let proof = Invocation::new("cargo run --release -p requeue-shards-proof")
        .args(["--features", "etcd", "--bin", "proof", "--"])
        .args(arguments)
        .variable("ETCD", shown(&etcd))
        .variable("FOLDER", shown(&workspace.target()));
    Ok(with_protoc(proof, workspace)?.run(&workspace.root)?)
}
