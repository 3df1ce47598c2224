//! Finds or downloads the toolchains and targets of the steps.

use std::path::Path;

use crate::cmd::{Cmd, cmd};
use crate::report::{Stop, Verdict};

/// Makes a command compile for a target. In this order:
///
/// 1. If the active toolchain has the target's libraries, there is nothing to do. This looks at the
///    folder, so it also works without rustup.
/// 2. rustup installs the target for the active toolchain.
/// 3. If the sources of the standard library are here, as on Debian with `rust-web-src`, cargo
///    builds `core` and `alloc` along with the command.
///
/// # Errors
///
/// None of these is possible. The message says what to install.
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

/// As [`for_target`], for a target with an operating system. Its std is never built.
///
/// # Errors
///
/// The target is not here and cannot be downloaded.
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

/// A line of `rustc --version --verbose`, by its beginning: `host: `, `release: `.
///
/// # Errors
///
/// `rustc` cannot be run, or prints no such line.
pub(crate) fn described(begins: &str) -> Verdict<String> {
    let version = cmd("rustc -vV").read()?;
    let found = version.lines().find_map(|line| line.strip_prefix(begins));
    let wrong = || format!("rustc has no line `{begins}`: {version}");
    Ok(found.ok_or_else(wrong)?.to_owned())
}

/// Whether there is a program of this name, or a subcommand, that prints its version.
pub(crate) fn has(program: &str) -> bool {
    cmd(program).arg("--version").succeeds()
}

fn sysroot() -> Verdict<String> {
    Ok(cmd("rustc --print sysroot").read()?.trim_end().to_owned())
}
