//! Controllers, on an API in memory and on a real API server, built from Debian's sources.
//!
//! Debian packages no kube-apiserver, but its source package builds one without a network.
//! Everything is unpacked below `target/kube`, and nothing is installed on this machine.

use std::env;
use std::fs;
use std::path::Path;

use crate::cmd::{Cmd, all, cmd, root, target};
use crate::report::Verdict;

/// Runs the tests of the workspace `kube`, on virtual time and without a server. They use recorded
/// answers of a real server. If one was built here, it is compared with the recording.
pub(crate) fn fast() -> Verdict {
    let lines = [
        "cargo fmt --all --check --manifest-path kube/Cargo.toml",
        "cargo clippy --workspace --all-targets --all-features --locked --manifest-path \
         kube/Cargo.toml -- -D warnings",
        "cargo test -p requeue-kube -p requeue-kube-testing -p web-controller --all-features \
         --locked --manifest-path kube/Cargo.toml",
    ];
    let tests = lines.map(|line| cmd(line).env("CARGO_INCREMENTAL", "0").run());
    let others = OLDER.map(older).into_iter().chain([recording()]);
    all(tests.into_iter().chain(others))
}

/// Compares the recorded answers with those of the server that `cargo xtask kube` has built.
fn recording() -> Verdict {
    let scenario = "cargo run --locked --manifest-path kube/Cargo.toml -p requeue-kube-proof --bin \
                    scenarios -- conformance";
    let scenario = cmd(scenario).env("FOLDER", target("kube/scenarios"));
    match with_server(scenario) {
        Some(scenario) => scenario.run(),
        None => {
            println!("NOT COMPARED: a real kube-apiserver, which only `cargo xtask kube` builds");
            Ok(())
        }
    }
}

/// The major versions of kube that the library accepts, beside the newest one, which is in
/// `kube/Cargo.lock`. `kube/locks` has a lock file for each.
const OLDER: [&str; 2] = ["3", "4"];

/// Checks the libraries and their tests with an older major of kube, in a copy of the sources with
/// another lock file. Cargo adds new dependencies to that file. It shares the builds of clippy.
fn older(major: &str) -> Verdict {
    let copy = target(&format!("kube-majors/{major}"));
    let _ = fs::remove_dir_all(&copy);
    fs::create_dir_all(&copy)?;
    let archive = format!("{copy}/sources.tar");
    cmd("tar --exclude kube/target -cf")
        .arg(&archive)
        .args(SOURCES.split(' '))
        .run()?;
    cmd("tar -xf").arg(&archive).dir(&copy).run()?;
    let lock = root().join(format!("kube/locks/{major}.lock"));
    fs::copy(lock, format!("{copy}/kube/Cargo.lock"))?;
    cmd("cargo check -p requeue-kube -p requeue-kube-testing --all-features --tests --manifest-path")
        .arg(format!("{copy}/kube/Cargo.toml"))
        .args(["--target-dir", &target("../kube/target")])
        .run()
}

/// What the workspace `kube` is built from.
const SOURCES: &str = "Cargo.toml README.md src core runtime-std runtime-tokio runtime-embassy \
                       runtime-bare inspect shards kube docs examples/web-controller";

/// Runs all scenarios, or the named ones, on a real server, and the comparison with kube-runtime.
pub(crate) fn real(only: &[&str]) -> Verdict {
    if with_server(cmd("")).is_none() {
        build()?;
    }
    let build = "cargo build --release --locked --manifest-path kube/Cargo.toml -p web-controller";
    let build = cmd(build).args(["-p", "requeue-kube-proof", "--target-dir"]);
    build.arg(target("kube/build")).run()?;
    let program = |name: &str| target(&format!("kube/build/release/{name}"));
    let proof = |name: &str| {
        let proof = cmd("").arg(program(name));
        let proof = proof.env("WEB_CONTROLLER", program("web-controller"));
        with_server(proof.env("FOLDER", target(&format!("kube/{name}"))))
            .ok_or("the build has left no server")
    };
    proof("scenarios")?.args(only.to_vec()).run()?;
    match only {
        [] => proof("beside")?.run(),
        _ => Ok(()),
    }
}

/// Builds the programs of a server below `target/kube`.
fn build() -> Verdict {
    println!("building kube-apiserver once: about nine minutes of CPU, 120 MB to fetch");
    fs::create_dir_all(target("kube"))?;
    let script = root().join("kube/proof/apiserver.sh").display().to_string();
    cmd("nice -n 10 sh").arg(script).dir(target("kube")).run()
}

/// The line with the variables for the programs of a server, of its controllers and of its etcd:
/// those that the environment names, or else earlier built ones.
fn with_server(mut line: Cmd) -> Option<Cmd> {
    for (variable, program) in [
        ("KUBE_APISERVER", "kube-apiserver"),
        ("KUBE_CONTROLLER_MANAGER", "kube-controller-manager"),
        ("ETCD", "etcd"),
    ] {
        let built =
            || Some(target(&format!("kube/{program}"))).filter(|at| Path::new(at).is_file());
        let named = env::var(variable).ok();
        // One that is named brings programs of this machine.
        let of_machine = || env::var("KUBE_APISERVER").ok().map(|_| program.to_owned());
        line = line.env(variable, named.or_else(of_machine).or_else(built)?);
    }
    Some(line)
}
