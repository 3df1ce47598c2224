//! What is built with other features, for other targets and with other compilers.

use std::collections::BTreeMap;

use crate::combinations::combinations;
use crate::invocation::Invocation;
use crate::report::{Stop, Verdict};
use crate::servers::with_protoc;
use crate::steps::run_each;
use crate::toolchain;
use crate::workspace::Workspace;

/// Set where tests are built, mostly once: what would make a second build quicker is almost half of
/// what the first one writes. Builds without the variable are kept beside these.
const BUILT_ONCE: (&str, &str) = ("CARGO_INCREMENTAL", "0");

/// What the tests are without features.
pub(crate) fn core_alone(command: &str) -> Invocation {
    Invocation::new(command)
        .args(["-p", "requeue-core", "--no-default-features"])
        .variable(BUILT_ONCE.0, BUILT_ONCE.1)
}

/// A command of cargo for every package of the workspace with all of its features. With any other
/// selection, what the tests are built from would be built again.
///
/// # Errors
///
/// As of [`with_protoc`].
pub(crate) fn whole(command: &str, workspace: &Workspace) -> Result<Invocation, Stop> {
    let line = Invocation::new(command)
        .args(["--workspace", "--all-features"])
        .variable(BUILT_ONCE.0, BUILT_ONCE.1);
    with_protoc(line, workspace)
}

/// Builds every program of the workspace. With the examples, because without a target that may use
/// `dev-dependencies` cargo leaves out their features, and the tests would build most of it again.
///
/// # Errors
///
/// As of [`whole`], and what does not compile.
pub(crate) fn programs(workspace: &Workspace) -> Verdict {
    Ok(whole("cargo build --bins --examples", workspace)?.run(&workspace.root)?)
}

/// One combination at a time and one package at a time, so that no other member of the workspace
/// turns on what this one forgot to ask for.
pub(crate) fn features(workspace: &Workspace) -> Verdict {
    let mut checks = Vec::new();
    for package in workspace.published() {
        let sets = combinations(&package.features);
        let has_etcd = package.features.iter().any(|feature| feature == "etcd");
        for set in sets {
            let check = Invocation::new("cargo check --lib --no-default-features")
                .packages([package.name.as_str()])
                .args(["--features".to_owned(), set.join(",")])
                .variable("RUSTFLAGS", "-D warnings");
            checks.push(if has_etcd {
                with_protoc(check, workspace)?
            } else {
                check
            });
        }
    }
    run_each(checks, workspace)
}

/// Package, features, target. A Cortex-M0 and a RISC-V without the A extension have no atomic
/// compare-and-swap; the facade without its runtimes is core under another name.
const NO_STD: [(&str, &str, &str); 9] = [
    ("requeue-core", "", "thumbv6m-none-eabi"),
    ("requeue-core", "", "riscv32imc-unknown-none-elf"),
    ("requeue-core", "alloc", "thumbv7m-none-eabi"),
    ("requeue", "", "thumbv6m-none-eabi"),
    ("requeue-embassy", "", "thumbv6m-none-eabi"),
    ("requeue-embassy", "", "riscv32imc-unknown-none-elf"),
    ("requeue-embassy", "", "riscv32imac-unknown-none-elf"),
    ("requeue-embassy", "defmt,log", "thumbv7m-none-eabi"),
    ("requeue-embassy", "defmt,log", "thumbv7em-none-eabihf"),
];

pub(crate) fn no_std(workspace: &Workspace) -> Verdict {
    let mut builds = Vec::new();
    for (package, features, target) in NO_STD {
        let build = Invocation::new("cargo build --lib --no-default-features")
            .packages([package])
            .args(["--features", features])
            .variable("RUSTFLAGS", "-D warnings");
        builds.push(toolchain::for_target(build, target, &workspace.root)?);
    }
    run_each(builds, workspace)
}

/// Warnings are silent here: an old compiler may warn about what a new one asks for.
pub(crate) fn msrv(workspace: &Workspace) -> Verdict {
    let mut promises: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in workspace.published() {
        let Some(version) = &package.rust_version else {
            return Err(Stop::Failed(format!("{}: no rust-version", package.name)));
        };
        promises.entry(version).or_default().push(&package.name);
    }
    for (version, packages) in promises {
        let toolchain = toolchain::for_rust_version(version, &workspace.root)?;
        let check = Invocation::new("cargo")
            .args([format!("+{toolchain}")])
            .args(["check", "--all-features"])
            .packages(packages)
            .variable("RUSTFLAGS", "--cap-lints allow");
        with_protoc(check, workspace)?.run(&workspace.root)?;
    }
    Ok(())
}
