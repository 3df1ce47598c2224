//! Finds, or fetches, what a step compiles with.

use std::path::Path;

use crate::cmd::{Cmd, cmd};
use crate::report::{Stop, Verdict};

/// Makes a command compile for a target, fetching the target when it is not here.
///
/// 1. The active toolchain has its libraries: nothing to do. The folder is looked at rather than
///    asked for, so that toolchains without rustup count too.
/// 2. rustup has it for the active toolchain.
/// 3. The sources of the standard library are here, as on Debian with `rust-web-src`: cargo
///    builds `core` and `alloc` along with the command.
///
/// # Errors
///
/// None of the three. The message says what to install.
pub(crate) fn for_target(command: Cmd, target: &str) -> Verdict<Cmd> {
    let sources = sysroot()? + "/lib/rustlib/src/rust/library/core";
    match for_system(command.clone(), target) {
        Err(Stop::Skipped(_)) if Path::new(&sources).is_dir() => {
            let command = command.args(["--target", target, "-Zbuild-std=core,alloc"]);
            Ok(command.env("RUSTC_BOOTSTRAP", "1"))
        }
        Err(Stop::Skipped(why)) => {
            let sources = "the sources of the standard library (Debian: rust-web-src)";
            Err(format!("{why}, or install {sources}").into())
        }
        other => other,
    }
}

/// As [`for_target`], for a target with a system: std is not built along.
///
/// # Errors
///
/// It is not here and cannot be fetched.
pub(crate) fn for_system(command: Cmd, target: &str) -> Verdict<Cmd> {
    let libraries = format!("{}/lib/rustlib/{target}/lib", sysroot()?);
    let is_here = || Path::new(&libraries).is_dir();
    let add = cmd("rustup target add").arg(target);
    if !is_here() && (!has("rustup") || add.run().is_err() || !is_here()) {
        return Err(Stop::Skipped(format!(
            "no libraries for {target}: run `{add}`"
        )));
    }
    Ok(command.args(["--target", target]))
}

/// The name of an installed toolchain for a `rust-version`, installed now when it is not there.
///
/// `1.88` means 1.88.0: a promise is checked against the oldest compiler that it covers.
///
/// # Errors
///
/// It is not here and cannot be fetched.
pub(crate) fn for_rust_version(rust_version: &str) -> Verdict<String> {
    let missing = 2_usize.saturating_sub(rust_version.matches('.').count());
    let name = format!("{rust_version}{}", ".0".repeat(missing));
    let install = cmd("rustup toolchain install --profile minimal --no-self-update").arg(&name);
    if has(&format!("cargo +{name}")) || (has("rustup") && install.run().is_ok()) {
        return Ok(name);
    }
    Err(Stop::Skipped(format!(
        "Rust {name} is not here: run `{install}`"
    )))
}

/// What `rustc` says about itself in the line that begins so: `host: `, `release: `.
///
/// # Errors
///
/// `rustc` cannot be asked.
pub(crate) fn described(begins: &str) -> Verdict<String> {
    let version = cmd("rustc -vV").read()?;
    let found = version.lines().find_map(|line| line.strip_prefix(begins));
    let wrong = || format!("rustc has no line `{begins}`: {version}");
    Ok(found.ok_or_else(wrong)?.to_owned())
}

/// Whether there is a program of this name, or a subcommand of one, that can tell its version.
pub(crate) fn has(program: &str) -> bool {
    cmd(program).arg("--version").succeeds()
}

fn sysroot() -> Verdict<String> {
    Ok(cmd("rustc --print sysroot").read()?.trim_end().to_owned())
}
