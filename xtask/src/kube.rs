//! Controllers on a real API server, which Debian's sources build.
//!
//! Debian packages no kube-apiserver, but its source package builds one without a network. Whatever
//! that needs is unpacked below `target/kube`: nothing is installed on this machine.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::debian::{Apt, is_there, shown};
use crate::invocation::Invocation;
use crate::report::{Stop, Verdict};
use crate::workspace::Workspace;

/// The tests of `kube`, a workspace of its own: without a server, on virtual time.
pub(crate) fn fast(workspace: &Workspace) -> Verdict {
    let manifest = ["--manifest-path", "kube/Cargo.toml", "--locked"];
    let format = Invocation::new("cargo fmt --all --check --manifest-path kube/Cargo.toml");
    let lints = Invocation::new("cargo clippy --workspace --all-targets --all-features")
        .args(manifest)
        .args(["--", "-D", "warnings"]);
    let test = Invocation::new("cargo test -p requeue-kube --all-features").args(manifest);
    let test = test.variable("CARGO_INCREMENTAL", "0");
    let lines = [format, lints, test];
    let failures = lines
        .iter()
        .filter_map(|line| line.run(&workspace.root).err());
    let failures: Vec<String> = failures.collect();
    if failures.is_empty() {
        Ok(())
    } else {
        Err(Stop::Failed(failures.join("; ")))
    }
}

/// The scenarios on a real server, or those that are named, and how it compares to kube-runtime.
pub(crate) fn real(workspace: &Workspace, only: &[String]) -> Verdict {
    let folder = workspace.target().join("kube");
    let server = server(&folder)?;
    let build = "cargo build --release --locked --manifest-path kube/Cargo.toml";
    let build = Invocation::new(build).packages(["web-controller", "requeue-kube-proof"]);
    build
        .args(["--target-dir", &shown(&folder.join("build"))])
        .run(&workspace.root)?;
    let programs = folder.join("build/release");
    let run = |name: &str, run: &str| {
        Invocation::new(&shown(&programs.join(name)))
            .variable("KUBE_APISERVER", shown(&server.apiserver))
            .variable("ETCD", shown(&server.etcd))
            .variable("WEB_CONTROLLER", shown(&programs.join("web-controller")))
            .variable("FOLDER", shown(&folder.join(run)))
    };
    run("scenarios", "scenarios")
        .args(only)
        .run(&workspace.root)?;
    if only.is_empty() {
        run("beside", "beside").run(&workspace.root)?;
    }
    Ok(())
}

struct Server {
    apiserver: PathBuf,
    etcd: PathBuf,
}

/// The server's programs: those that `KUBE_APISERVER` and `ETCD` name, or what was built before, or
/// what is built now.
fn server(folder: &Path) -> Result<Server, Stop> {
    for tool in ["curl", "openssl"] {
        if !is_there(tool) {
            return Err(Stop::NotRun(format!("{tool} is missing")));
        }
    }
    if let Some(apiserver) = env::var_os("KUBE_APISERVER") {
        let etcd = env::var_os("ETCD").unwrap_or_else(|| "etcd".into());
        return Ok(Server {
            apiserver: apiserver.into(),
            etcd: etcd.into(),
        });
    }
    let server = Server {
        apiserver: folder.join("kube-apiserver"),
        etcd: folder.join("etcd"),
    };
    if !server.apiserver.is_file() || !server.etcd.is_file() {
        build_server(folder)?;
    }
    Ok(server)
}

/// What is unpacked beside the sources, without what it depends on: go needs none of it.
const PACKAGES: [&str; 6] = [
    "etcd-server",
    "golang-1.19-go",
    "golang-1.19-src",
    "golang-github-modern-go-reflect2-dev",
    "libpopt0",
    "rsync",
];

/// Builds the server once: nine minutes of CPU, 120 MB to fetch, 4 GB on the disk.
fn build_server(folder: &Path) -> Verdict {
    let tools = ["make", "patch", "sh", "tar", "xz"];
    if let Some(missing) = tools.into_iter().find(|tool| !is_there(tool)) {
        return Err(Stop::NotRun(format!(
            "{missing} is missing; or set KUBE_APISERVER"
        )));
    }
    println!("building kube-apiserver once: about nine minutes of CPU, 120 MB to fetch");
    let hinted = |stop| match stop {
        Stop::NotRun(why) => Stop::NotRun(format!("{why}; or set KUBE_APISERVER")),
        stop => stop,
    };
    let apt = Apt::new(folder, "deb deb-src").map_err(hinted)?;
    let version = apt.source_version("kubernetes", "1.20.").map_err(hinted)?;
    let packages = folder.join("packages");
    let wrong = |error: std::io::Error| Stop::Failed(format!("{}: {error}", folder.display()));
    fs::create_dir_all(&packages).map_err(wrong)?;
    fs::write(folder.join("build.sh"), BUILD).map_err(wrong)?;
    apt.get("source --download-only")
        .args([format!("kubernetes={version}")])
        .run(&packages)?;
    apt.get("download").args(PACKAGES).run(&packages)?;
    Invocation::new("nice -n 10 sh build.sh").run(folder)?;
    Ok(())
}

/// The vendored reflect2 panics at the first JSON under Go 1.18 and later, and Debian's does not.
const BUILD: &str = r#"set -eu
mkdir -p tools source
for package in packages/*.deb; do dpkg -x "$package" tools; done
tar -xzf packages/kubernetes_*.orig.tar.gz -C source --strip-components 1
tar -xJf packages/kubernetes_*.debian.tar.xz -C source
tools=$PWD/tools
cp tools/usr/bin/etcd .
cd source
while read -r patch; do patch -p1 -s -N <"debian/patches/$patch"; done <debian/patches/series
rm -rf vendor/github.com/modern-go/reflect2
cp -r "$tools/usr/share/gocode/src/github.com/modern-go/reflect2" vendor/github.com/modern-go/
mkdir -p .go/src/k8s.io
ln -sfn ../../.. .go/src/k8s.io/kubernetes
export GOPATH="$PWD/.go" HOME="$PWD/.home" CGO_ENABLED=0 GOPROXY=off GOFLAGS=-p=2
export PATH="$tools/usr/lib/go-1.19/bin:$tools/usr/bin:$PATH"
export LD_LIBRARY_PATH="$(echo "$tools"/usr/lib/*-linux-gnu)"
make WHAT=cmd/kube-apiserver
cp _output/bin/kube-apiserver ..
cd ..
rm -rf source tools packages apt
"#;
