//! Replicas, etcd and PostgreSQL as processes, a nemesis, and a checker: `shards/proof`.

use crate::debian::shown;
use crate::invocation::Invocation;
use crate::report::{Stop, Verdict};
use crate::servers::{self, with_protoc};
use crate::workspace::Workspace;

/// The step of `ci`: one seed, a minute.
pub(crate) fn short(workspace: &Workspace) -> Verdict {
    run(workspace, &[])
}

/// What `cargo xtask shards` is called with goes to the program that runs it all.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Verdict {
    let etcd = servers::etcd(workspace)?;
    let mut proof = Invocation::new("cargo run --release -p requeue-shards-proof")
        .args(["--features", "etcd", "--bin", "proof", "--"])
        .args(arguments)
        .variable("ETCD", shown(&etcd));
    match servers::postgres(workspace) {
        Ok(path) => proof = proof.variable("POSTGRES", shown(&path)),
        Err(Stop::NotRun(why)) => println!("without PostgreSQL: {why}"),
        Err(stop) => return Err(stop),
    }
    Ok(with_protoc(proof, workspace)?.run(&workspace.root)?)
}
