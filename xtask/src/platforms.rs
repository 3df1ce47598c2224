//! Other systems and other processors: what compiles for them, and which tests run on them.

use std::path::PathBuf;

use crate::debian::shown;
use crate::invocation::Invocation;
use crate::report::{Stop, Verdict};
use crate::servers;
use crate::steps::run_each;
use crate::toolchain;
use crate::workspace::Workspace;

/// Libraries that compile for targets, with the features that make sense there.
struct System {
    targets: &'static [&'static str],
    packages: &'static [&'static str],
    features: &'static str,
}

/// WebAssembly has an allocator and no clock: what brings its own clock compiles and would panic.
const SYSTEMS: [System; 2] = [
    System {
        targets: &["aarch64-apple-darwin", "x86_64-pc-windows-msvc"],
        packages: &["requeue", "requeue-std", "requeue-tokio", "requeue-shards"],
        features: "requeue/std,requeue/tokio,requeue/tracing,requeue/metrics,requeue/serde,\
                   requeue-std/ctrlc,requeue-shards/metrics",
    },
    System {
        targets: &["wasm32-unknown-unknown"],
        packages: &["requeue", "requeue-core", "requeue-embassy"],
        features: "requeue/embassy,requeue/serde,requeue-core/alloc,requeue-core/tracing",
    },
];

/// A processor that is unlike the one of most machines.
struct Processor {
    target: &'static str,
    emulator: Option<Emulator>,
    /// Tests that cannot run there, as arguments of theirs.
    without: &'static [&'static str],
}

type Emulator = fn(&Workspace) -> Result<PathBuf, Stop>;

/// Targets with musl bring all that a program is linked with: no foreign compiler is needed.
const PROCESSORS: [Processor; 2] = [
    // 32-bit.
    Processor {
        target: "i686-unknown-linux-musl",
        emulator: None,
        without: &[],
    },
    // Big-endian.
    Processor {
        target: "powerpc64-unknown-linux-musl",
        emulator: Some(servers::qemu_ppc64),
        // Starts itself, and the emulator emulates one process.
        without: &["--skip", "two_processes_hash_differently"],
    },
];

/// What [`PROCESSORS`] link with: the linker and the C library of the Rust toolchain.
const LINKED: &str = "-Clinker=rust-lld -Clink-self-contained=yes -Ctarget-feature=+crt-static";

/// Compiles what is published for [`SYSTEMS`].
pub(crate) fn systems(workspace: &Workspace) -> Verdict {
    let checks = SYSTEMS.iter().map(|system| system.check(workspace));
    run_each(checks.collect::<Result<Vec<_>, Stop>>()?, workspace)
}

/// Runs the tests of core on [`PROCESSORS`].
pub(crate) fn processors(workspace: &Workspace) -> Verdict {
    let tests = PROCESSORS.iter().map(|processor| {
        let core = ["-p", "requeue-core", "--features", "std,serde"];
        processor.test(&core, workspace)
    });
    run_each(tests.collect::<Result<Vec<_>, Stop>>()?, workspace)
}

/// Both of the above, the tests of the adapters, and what client-go did.
pub(crate) fn run(workspace: &Workspace) -> Verdict {
    systems(workspace)?;
    processors(workspace)?;
    let mut lines = Vec::new();
    for processor in &PROCESSORS {
        let adapters = ["-p", "requeue-std", "-p", "requeue-tokio"];
        lines.push(processor.test(&adapters, workspace)?);
        for runtime in ["core-fixed", "core-growable"] {
            let replay = "cargo run -p requeue-replay --bin replay";
            let line = processor.invocation(replay, workspace)?;
            lines.push(line.args(["--", "--runtime", runtime, "proptest/traces"]));
        }
    }
    run_each(lines, workspace)
}

impl System {
    fn check(&self, workspace: &Workspace) -> Result<Invocation, Stop> {
        let check = Invocation::new("cargo check --lib --no-default-features --features")
            .args([self.features])
            .packages(self.packages.iter().copied())
            .variable("RUSTFLAGS", "-D warnings");
        self.targets.iter().try_fold(check, |check, target| {
            toolchain::for_system(check, target, &workspace.root)
        })
    }
}

impl Processor {
    fn test(&self, what: &[&str], workspace: &Workspace) -> Result<Invocation, Stop> {
        let line = self.invocation("cargo test --no-fail-fast --lib --tests", workspace)?;
        let line = line.args(what.iter().copied());
        Ok(line.args(["--"]).args(self.without.iter().copied()))
    }

    /// A command of cargo that builds for the processor and runs programs on it. Without debug
    /// information, because it is slow to link; slightly optimized for an emulator.
    fn invocation(&self, command: &str, workspace: &Workspace) -> Result<Invocation, Stop> {
        let host = toolchain::host(&workspace.root)?;
        if !host.starts_with("x86_64-unknown-linux") {
            let why = "only a Linux on x86-64 runs programs for these processors";
            return Err(Stop::NotRun(why.to_owned()));
        }
        let command = Invocation::new(command)
            .variable("RUSTFLAGS", LINKED)
            .variable("CARGO_INCREMENTAL", "0")
            .variable("CARGO_PROFILE_DEV_DEBUG", "0");
        let command = toolchain::for_system(command, self.target, &workspace.root)?;
        let Some(emulator) = self.emulator else {
            return Ok(command);
        };
        let command = command.variable("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        let path = shown(&emulator(workspace)?);
        let runner = format!("target.{}.runner=['{path}']", self.target);
        Ok(command.args(["--config".to_owned(), runner]))
    }
}
