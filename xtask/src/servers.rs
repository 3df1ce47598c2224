//! Programs around the queue, and their tests on real servers and on a full disk.

use std::fs;

use crate::builds::services;
use crate::cmd::{cmd, target};
use crate::report::{Stop, Verdict};
use crate::tools::{ETCD, POSTGRES, with_axe, with_protoc};

/// Runs all their tests in one command, which also builds the examples: without `dev-dependencies`,
/// cargo would leave out their features, and build most of it again. A test that lacks a server
/// prints so.
pub(crate) fn tests() -> Verdict {
    let mut line = with_axe(services("cargo test --no-fail-fast")).args(["--", "--quiet"]);
    for (variable, server) in [("ETCD", ETCD), ("POSTGRES", POSTGRES)] {
        match server.get() {
            Ok(path) => line = line.env(variable, path),
            Err(Stop::NotRun(why)) => println!("NOT RUN: tests on a server: {why}"),
            Err(stop) => return Err(stop),
        }
    }
    line.run()
}

/// The step of `ci`: one seed, in a debug build like the tests.
pub(crate) fn shards() -> Verdict {
    let etcd = ETCD.get()?;
    services("cargo build --example threads --bin proof --bin webhooks").run()?;
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
        .run()
}

/// Runs a test on a small disk in memory, mounted in a namespace of its own. So it needs no rights
/// on this machine, and the disk disappears with the test.
pub(crate) fn full_disk() -> Verdict {
    let folder = target("full_disk");
    fs::create_dir_all(&folder)?;
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

/// Runs replicas of the webhooks until Ctrl-C.
pub(crate) fn try_replicas(words: &[&str]) -> Verdict {
    let line = cmd("bash examples/webhooks/replicas.sh").args(words.to_vec());
    let line = with_protoc(line).env("ETCD", ETCD.get()?);
    line.env("POSTGRES", POSTGRES.get()?).run()
}
