//! Controllers, on an API in memory and on a real API server, built from Debian's sources.
//!
//! Debian packages no kube-apiserver, but its source package builds one without a network.
//! Everything is unpacked below `target/kube`, and nothing is installed on this machine.

use std::env;
use std::fs;
use std::io;
#[cfg(unix)]
use std::os::unix::fs::symlink;
#[cfg(windows)]
use std::os::windows::fs::symlink_dir as symlink;
use std::path::{Path, PathBuf};

use crate::cmd::{Cmd, all, cmd, root, target};
use crate::report::{Stop, Verdict};
use crate::tools::is_there;

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
    all(tests
        .into_iter()
        .chain(OLDER.map(older))
        .chain([recording()]))
}

/// Compares the recorded answers with those of the server that `cargo xtask kube` has built.
fn recording() -> Verdict {
    let Some(server) = Server::built() else {
        println!("NOT COMPARED: a real kube-apiserver, which only `cargo xtask kube` builds");
        return Ok(());
    };
    let scenario = "cargo run --locked --manifest-path kube/Cargo.toml -p requeue-kube-proof --bin \
                    scenarios -- conformance";
    let scenario = server.given_to(cmd(scenario));
    scenario.env("FOLDER", target("kube/scenarios")).run()
}

/// The major versions of kube that the library accepts, beside the newest one, which is in
/// `kube/Cargo.lock`. `kube/locks` has a lock file for each.
const OLDER: [&str; 2] = ["3", "4"];

/// Checks the libraries and their tests with an older major of kube, in a copy of the workspace
/// made of links and another lock file. Cargo adds new dependencies to that file. It shares the builds of clippy.
fn older(major: &str) -> Verdict {
    let copy = PathBuf::from(target(&format!("kube-majors/{major}")));
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    fs::create_dir_all(copy.join("kube"))?;
    link(root(), &copy, &["kube", "target", ".git"])?;
    let without = ["Cargo.lock", "locks", "target"];
    link(&root().join("kube"), &copy.join("kube"), &without)?;
    let lock = root().join(format!("kube/locks/{major}.lock"));
    fs::copy(lock, copy.join("kube/Cargo.lock"))?;
    cmd("cargo check -p requeue-kube -p requeue-kube-testing --all-features --tests --manifest-path")
        .arg(copy.join("kube/Cargo.toml").display().to_string())
        .args(["--target-dir", &target("../kube/target")])
        .run()
}

/// Links all entries of a folder into another one.
fn link(from: &Path, to: &Path, without: &[&str]) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if !without.iter().any(|without| name == *without) {
            symlink(entry.path(), to.join(name))?;
        }
    }
    Ok(())
}

/// Runs all scenarios, or the named ones, on a real server, and the comparison with kube-runtime.
pub(crate) fn real(only: &[&str]) -> Verdict {
    let server = Server::get()?;
    let build = "cargo build --release --locked --manifest-path kube/Cargo.toml -p web-controller";
    let build = cmd(build).args(["-p", "requeue-kube-proof", "--target-dir"]);
    build.arg(target("kube/build")).run()?;
    let program = |name: &str| target(&format!("kube/build/release/{name}"));
    let proof = |name: &str| {
        server
            .given_to(cmd("").arg(program(name)))
            .env("WEB_CONTROLLER", program("web-controller"))
            .env("FOLDER", target(&format!("kube/{name}")))
    };
    proof("scenarios").args(only.to_vec()).run()?;
    match only {
        [] => proof("beside").run(),
        _ => Ok(()),
    }
}

/// The programs of the server, of its controllers and of its etcd.
struct Server {
    apiserver: String,
    controllers: String,
    etcd: String,
}

impl Server {
    /// The programs that the environment names, or earlier built ones. Otherwise builds them.
    fn get() -> Verdict<Self> {
        if let Some(server) = Self::built() {
            return Ok(server);
        }
        let needed = [
            "curl", "openssl", "apt-get", "dpkg", "make", "patch", "tar", "xz",
        ];
        if let Some(missing) = needed.iter().find(|tool| !is_there(tool)) {
            let why = format!("{missing} is missing (or set KUBE_APISERVER)");
            return Err(Stop::NotRun(why));
        }
        println!("building kube-apiserver once: about nine minutes of CPU, 120 MB to fetch");
        fs::create_dir_all(target("kube"))?;
        let script = root().join("kube/proof/apiserver.sh").display().to_string();
        cmd("nice -n 10 sh").arg(script).dir(target("kube")).run()?;
        Self::built().ok_or_else(|| Stop::Failed("the build has left no server".to_owned()))
    }

    /// The programs that `KUBE_APISERVER`, `KUBE_CONTROLLER_MANAGER` and `ETCD` name, or earlier
    /// built ones.
    fn built() -> Option<Self> {
        let named = |name, program: &str| env::var(name).unwrap_or_else(|_| program.to_owned());
        if let Ok(apiserver) = env::var("KUBE_APISERVER") {
            return Some(Self {
                apiserver,
                controllers: named("KUBE_CONTROLLER_MANAGER", "kube-controller-manager"),
                etcd: named("ETCD", "etcd"),
            });
        }
        let built =
            |name| Some(target(&format!("kube/{name}"))).filter(|at| Path::new(at).is_file());
        Some(Self {
            apiserver: built("kube-apiserver")?,
            controllers: built("kube-controller-manager")?,
            etcd: built("etcd")?,
        })
    }

    fn given_to(&self, line: Cmd) -> Cmd {
        line.env("KUBE_APISERVER", &self.apiserver)
            .env("KUBE_CONTROLLER_MANAGER", &self.controllers)
            .env("ETCD", &self.etcd)
    }
}
