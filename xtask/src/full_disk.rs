//! The webhooks on a disk that is full.

use std::fs;

use crate::invocation::Invocation;
use crate::report::{Stop, Verdict};
use crate::workspace::Workspace;

/// The disk is a small one in memory, in a namespace of its own: it needs no rights over this
/// machine, and is gone with the test.
pub(crate) fn run(workspace: &Workspace) -> Verdict {
    let folder = workspace.target().join("full_disk");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let folder = folder.display().to_string();
    let mounted = |then: &str| {
        let mount = "mount -t tmpfs -o size=64m none \"$WEBHOOKS_SMALL_DISK\"";
        Invocation::new("unshare --map-root-user --mount sh -c")
            .args([format!("{mount} && {then}")])
            .variable("WEBHOOKS_SMALL_DISK", &folder)
    };
    if mounted("true").run(&workspace.root).is_err() {
        let why = "no small disk can be mounted here (Linux, with user namespaces, or as root)";
        return Err(Stop::NotRun(why.to_owned()));
    }
    let test = "cargo test -p webhooks --test full_disk";
    Ok(mounted(test).run(&workspace.root)?)
}
