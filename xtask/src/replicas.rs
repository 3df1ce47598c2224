//! `examples/webhooks` on a PostgreSQL and an etcd: its tests, and replicas for people to try.

use crate::debian::shown;
use crate::invocation::Invocation;
use crate::report::Verdict;
use crate::servers::{self, with_protoc};
use crate::workspace::Workspace;

/// The tests that need the servers.
pub(crate) fn test(workspace: &Workspace) -> Verdict {
    let line = "cargo test -p webhooks --features replicas --test postgres --test replicas";
    with_servers(Invocation::new(line), workspace)
}

/// Runs replicas until Ctrl-C.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Verdict {
    let script = Invocation::new("bash examples/webhooks/replicas.sh").args(arguments);
    with_servers(script, workspace)
}

fn with_servers(line: Invocation, workspace: &Workspace) -> Verdict {
    let line = line
        .variable("ETCD", shown(&servers::etcd(workspace)?))
        .variable("POSTGRES", shown(&servers::postgres(workspace)?));
    Ok(with_protoc(line, workspace)?.run(&workspace.root)?)
}
