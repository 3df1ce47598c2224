//! Controllers, on an API in memory and on a real API server, which Debian's sources build.
//!
//! Debian packages no kube-apiserver, but its source package builds one without a network. Whatever
//! that needs is unpacked below `target/kube`: nothing is installed on this machine.

use std::env;
use std::fs;
use std::path::Path;

use crate::cmd::{cmd, root, run_each, target};
use crate::report::{Stop, Verdict};
use crate::tools::is_there;

/// The tests of `kube`, a workspace of its own: without a server, on virtual time.
pub(crate) fn fast() -> Verdict {
    let lines = [
        "cargo fmt --all --check --manifest-path kube/Cargo.toml",
        "cargo clippy --workspace --all-targets --all-features --locked --manifest-path \
         kube/Cargo.toml -- -D warnings",
        "cargo test -p requeue-kube --all-features --locked --manifest-path kube/Cargo.toml",
    ];
    run_each(lines.map(|line| cmd(line).env("CARGO_INCREMENTAL", "0")))
}

/// The scenarios on a real server, or those that are named, and how it compares to kube-runtime.
pub(crate) fn real(only: &[&str]) -> Verdict {
    let (apiserver, etcd) = server()?;
    let build = "cargo build --release --locked --manifest-path kube/Cargo.toml -p web-controller";
    let build = cmd(build).args(["-p", "requeue-kube-proof", "--target-dir"]);
    build.arg(target("kube/build")).run()?;
    let program = |name: &str| target(&format!("kube/build/release/{name}"));
    let proof = |name: &str| {
        cmd("")
            .arg(program(name))
            .env("KUBE_APISERVER", &apiserver)
            .env("ETCD", &etcd)
            .env("WEB_CONTROLLER", program("web-controller"))
            .env("FOLDER", target(&format!("kube/{name}")))
    };
    proof("scenarios").args(only.to_vec()).run()?;
    match only {
        [] => proof("beside").run(),
        _ => Ok(()),
    }
}

/// The programs of the server and of its etcd: those that `KUBE_APISERVER` and `ETCD` name, or what
/// was built before, or what is built now.
fn server() -> Verdict<(String, String)> {
    if let Ok(apiserver) = env::var("KUBE_APISERVER") {
        let etcd = env::var("ETCD").unwrap_or_else(|_| "etcd".to_owned());
        return Ok((apiserver, etcd));
    }
    let needed = [
        "curl", "openssl", "apt-get", "dpkg", "make", "patch", "tar", "xz",
    ];
    if let Some(missing) = needed.iter().find(|tool| !is_there(tool)) {
        let why = format!("{missing} is missing; or set KUBE_APISERVER");
        return Err(Stop::NotRun(why));
    }
    let (apiserver, etcd) = (target("kube/kube-apiserver"), target("kube/etcd"));
    if !Path::new(&apiserver).is_file() || !Path::new(&etcd).is_file() {
        println!("building kube-apiserver once: about nine minutes of CPU, 120 MB to fetch");
        fs::create_dir_all(target("kube"))?;
        let script = root().join("kube/proof/apiserver.sh").display().to_string();
        cmd("nice -n 10 sh").arg(script).dir(target("kube")).run()?;
    }
    Ok((apiserver, etcd))
}
