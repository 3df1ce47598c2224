//! Tests on real servers or on a full disk: `shards/proof` and `examples/webhooks`.

use crate::builds::services;
use crate::cmd::{Cmd, cmd, target, write};
use crate::report::{Stop, Verdict};
use crate::tools::{ETCD, POSTGRES, with_protoc};

/// The step of `ci`: one seed, in a debug build like the tests.
pub(crate) fn shards() -> Verdict {
    let etcd = ETCD.get()?;
    // With an example: without a target that may use `dev-dependencies`, cargo would leave out their
    // features, and build most of it again.
    services("cargo build --example threads --bin proof").run()?;
    let proof = cmd("").args([&target("debug/proof"), "--short"]);
    proof.env("ETCD", etcd).env("FOLDER", target("")).run()
}

/// Passes its words to the proof. By default: two seeds, every planted bug and the figures.
/// `--marks` measures only marks.
pub(crate) fn prove_shards(words: &[&str]) -> Verdict {
    let proof = "cargo run --release -p requeue-shards-proof --features etcd --bin proof --";
    let proof = with_protoc(cmd(proof).args(words.to_vec()));
    proof
        .env("ETCD", ETCD.get()?)
        .env("FOLDER", target(""))
        .run()?;
    if words.contains(&"--marks") {
        return Ok(());
    }
    // Then the same on a real database.
    replicas()
}

/// Runs a test on a small disk in memory, mounted in a namespace of its own. So it needs no rights
/// on this machine, and the disk disappears with the test.
pub(crate) fn full_disk() -> Verdict {
    let folder = target("full_disk");
    write(
        &format!("{folder}/why.txt"),
        "The step `full_disk` mounts a disk here.\n",
    )?;
    let mounted = |then: &str| {
        let mount = "mount -t tmpfs -o size=64m none \"$WEBHOOKS_SMALL_DISK\"";
        let line = cmd("unshare --map-root-user --mount sh -c").arg(format!("{mount} && {then}"));
        line.env("WEBHOOKS_SMALL_DISK", &folder)
    };
    if mounted("true").run().is_err() {
        let why = "no small disk can be mounted here (Linux, with user namespaces, or as root)";
        return Err(Stop::NotRun(why.to_owned()));
    }
    let test = services("cargo test --test outside").args(["--", "full_disk::"]);
    mounted(&test.to_string()).run()
}

/// Runs the tests of the webhooks that need servers.
pub(crate) fn replicas() -> Verdict {
    let line = services("cargo test --test outside").args(["--", "postgres::", "replicas::"]);
    with_servers(line)
}

/// Runs replicas of the webhooks until Ctrl-C.
pub(crate) fn try_replicas(words: &[&str]) -> Verdict {
    with_servers(with_protoc(
        cmd("bash examples/webhooks/replicas.sh").args(words.to_vec()),
    ))
}

fn with_servers(line: Cmd) -> Verdict {
    line.env("ETCD", ETCD.get()?)
        .env("POSTGRES", POSTGRES.get()?)
        .run()
}
