//! `examples/webhooks` on a small disk, and on a PostgreSQL and an etcd: its tests there, and
//! replicas for people to try.

use std::fs;

use crate::builds;
use crate::debian::shown;
use crate::invocation::Invocation;
use crate::report::{Stop, Verdict};
use crate::servers::{self, with_protoc};
use crate::workspace::Workspace;

/// The disk is a small one in memory, in a namespace of its own: it needs no rights over this
/// machine, and is gone with the test.
pub(crate) fn full_disk(workspace: &Workspace) -> Verdict {
    let folder = workspace.target().join("full_disk");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let folder = folder.display().to_string();
    let mounted = |then: String| {
        let mount = "mount -t tmpfs -o size=64m none \"$WEBHOOKS_SMALL_DISK\"";
        Invocation::new("unshare --map-root-user --mount sh -c")
            .args([format!("{mount} && {then}")])
            .variable("WEBHOOKS_SMALL_DISK", &folder)
    };
    if mounted("true".to_owned()).run(&workspace.root).is_err() {
        let why = "no small disk can be mounted here (Linux, with user namespaces, or as root)";
        return Err(Stop::NotRun(why.to_owned()));
    }
    let test = builds::whole("cargo test --test outside", workspace)?.args(["--", "full_disk::"]);
    Ok(mounted(test.to_string()).run(&workspace.root)?)
}

/// The tests that need the servers.
pub(crate) fn replicas(workspace: &Workspace) -> Verdict {
    let line = builds::whole("cargo test --test outside", workspace)?;
    with_servers(line.args(["--", "postgres::", "replicas::"]), workspace)
}

/// Runs replicas until Ctrl-C.
pub(crate) fn try_replicas(workspace: &Workspace, arguments: &[String]) -> Verdict {
    let script = Invocation::new("bash examples/webhooks/replicas.sh").args(arguments);
    with_servers(with_protoc(script, workspace)?, workspace)
}

fn with_servers(line: Invocation, workspace: &Workspace) -> Verdict {
    let line = line
        .variable("ETCD", shown(&servers::etcd(workspace)?))
        .variable("POSTGRES", shown(&servers::postgres(workspace)?));
    Ok(line.run(&workspace.root)?)
}
