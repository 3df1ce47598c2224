//! Finds, or fetches, what a step compiles with.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::invocation::Invocation;
use crate::report::Stop;

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
/// None of the three; the message says what to install.
pub(crate) fn for_target(
    command: Invocation,
    target: &'static str,
    root: &Path,
) -> Result<Invocation, Stop> {
    let command = command.args(["--target", target]);
    let rustlib = sysroot(root)?.join("lib/rustlib");
    if has_libraries(&rustlib, target, root) {
        return Ok(command);
    }
    if rustlib.join("src/rust/library/core").is_dir() {
        return Ok(command
            .args(["-Zbuild-std=core,alloc"])
            .variable("RUSTC_BOOTSTRAP", "1"));
    }
    Err(Stop::Failed(format!(
        "no libraries for {target}: run `rustup target add {target}`, or install the sources of \
         the standard library (Debian: apt-get install rust-web-src)"
    )))
}

/// As [`for_target`], for a target with a system: std is not built along.
///
/// # Errors
///
/// It is not here and cannot be fetched.
pub(crate) fn for_system(
    command: Invocation,
    target: &str,
    root: &Path,
) -> Result<Invocation, Stop> {
    if has_libraries(&sysroot(root)?.join("lib/rustlib"), target, root) {
        return Ok(command.args(["--target", target]));
    }
    let hint = format!("no libraries for {target}: run `rustup target add {target}`");
    Err(Stop::Skipped(hint))
}

/// Whether the active toolchain has the libraries of a target, fetched now if they are not there.
fn has_libraries(rustlib: &Path, target: &str, root: &Path) -> bool {
    let installed = rustlib.join(target).join("lib");
    let fetch = || {
        let fetch = Invocation::new("rustup target add").args([target]);
        has_rustup() && fetch.run(root).is_ok()
    };
    installed.is_dir() || (fetch() && installed.is_dir())
}

/// The name of an installed toolchain for a `rust-version`, installed now when it is not there.
///
/// `1.88` means 1.88.0: a promise is checked against the oldest compiler that it covers.
///
/// # Errors
///
/// It is not here and cannot be fetched.
pub(crate) fn for_rust_version(rust_version: &str, root: &Path) -> Result<String, Stop> {
    let name = full_version(rust_version);
    let prefix = format!("{name}-");
    if !has_rustup() {
        return Err(Stop::Skipped(format!("no rustup to get Rust {name} from")));
    }
    let list = answer(Command::new("rustup").args(["toolchain", "list"]), root)?;
    let is_here = |line: &str| line == name || line.starts_with(&prefix);
    if list.split_whitespace().any(is_here) {
        return Ok(name);
    }
    let install = Invocation::new("rustup toolchain install")
        .args([name.as_str()])
        .args(["--profile", "minimal", "--no-self-update"]);
    match install.run(root) {
        Ok(()) => Ok(name),
        Err(_) => Err(Stop::Skipped(format!("Rust {name} cannot be installed"))),
    }
}

/// Whether a nightly toolchain is installed. It is not fetched: which one it is, is the choice of
/// the person who installs it.
///
/// # Errors
///
/// There is none.
pub(crate) fn nightly(root: &Path) -> Result<(), Stop> {
    let hint = "no nightly toolchain: `rustup toolchain install nightly --profile minimal`";
    let absent = || Stop::NotRun(hint.to_owned());
    if !has_rustup() {
        return Err(absent());
    }
    let list = answer(Command::new("rustup").args(["toolchain", "list"]), root)?;
    let is_nightly = |line: &str| line.starts_with("nightly");
    list.lines()
        .any(is_nightly)
        .then_some(())
        .ok_or_else(absent)
}

/// The target of this machine.
///
/// # Errors
///
/// `rustc` cannot be asked.
pub(crate) fn host(root: &Path) -> Result<String, Stop> {
    described("host: ", root)
}

/// The version of the active compiler.
///
/// # Errors
///
/// `rustc` cannot be asked.
pub(crate) fn release(root: &Path) -> Result<String, Stop> {
    described("release: ", root)
}

/// What `rustc` says about itself in the line that begins so.
fn described(begins: &str, root: &Path) -> Result<String, Stop> {
    let version = answer(Command::new("rustc").arg("-vV"), root)?;
    let found = version.lines().find_map(|line| line.strip_prefix(begins));
    found
        .map(str::to_owned)
        .ok_or_else(|| Stop::Failed(format!("rustc has no line `{begins}`: {version}")))
}

/// Whether there is a program of this name, or a subcommand of one, that can tell its version.
pub(crate) fn has(program: &str) -> bool {
    let mut words = program.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or(program));
    let quiet = command
        .args(words)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// A version with all of its three numbers.
fn full_version(version: &str) -> String {
    let missing = 2_usize.saturating_sub(version.matches('.').count());
    format!("{version}{}", ".0".repeat(missing))
}

fn sysroot(root: &Path) -> Result<PathBuf, Stop> {
    let path = answer(Command::new("rustc").args(["--print", "sysroot"]), root)?;
    Ok(path.trim_end().into())
}

fn has_rustup() -> bool {
    has("rustup")
}

/// What a program prints.
///
/// # Errors
///
/// It cannot be started, or it fails.
pub(crate) fn answer(command: &mut Command, folder: &Path) -> Result<String, Stop> {
    let why = match command.current_dir(folder).output() {
        Ok(output) if output.status.success() => {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Ok(output) => output.status.to_string(),
        Err(error) => error.to_string(),
    };
    Err(Stop::Failed(format!("{command:?}: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_oldest_it_stands_for() {
        assert_eq!(full_version("1.88"), "1.88.0");
        assert_eq!(full_version("1.88.1"), "1.88.1");
        assert_eq!(full_version("2"), "2.0.0");
    }
}
