//! Builds the images of `examples/firmware` for each board and runs them in the emulator.
//!
//! A board is a row of [`BOARDS`], an image a row of [`IMAGES`]. The exit code of an image is its
//! result. The emulator counts instructions instead of time, so every run is the same.

use std::fs;
use std::process::Stdio;

use object::read::elf::ElfFile32;
use object::{Endianness, Object, ObjectSegment};

use crate::cmd::{Cmd, all, cmd, root, target};
use crate::report::{Verdict, verdict};
use crate::toolchain::for_target;
use crate::tools::{Debian, OBJDUMP_ARM, QEMU_ARM, QEMU_RISCV};

mod depth;
mod parts;
mod programs;
mod tables;

use programs::Program;
use tables::Tables;

struct Board {
    /// Its feature of the package.
    name: &'static str,
    about: &'static str,
    target: &'static str,
    emulator: &'static Debian,
    /// The emulator's arguments for the board, and where its output goes.
    machine: &'static str,
    /// How long one instruction takes, as a power of two of nanoseconds, for an image that counts.
    counting: &'static str,
}

const BOARDS: [Board; 3] = [
    Board {
        name: "mps2",
        about: "Cortex-M3",
        target: "thumbv7m-none-eabi",
        emulator: &QEMU_ARM,
        machine: "-M mps2-an385 -semihosting-config enable=on,target=native -serial none",
        counting: "shift=10",
    },
    Board {
        name: "microbit",
        about: "Cortex-M0",
        target: "thumbv6m-none-eabi",
        emulator: &QEMU_ARM,
        machine: "-M microbit -semihosting-config enable=on,target=native -serial none",
        counting: "shift=10",
    },
    Board {
        name: "virt",
        about: "RISC-V",
        target: "riscv32imac-unknown-none-elf",
        emulator: &QEMU_RISCV,
        machine: "-M virt -bios none -serial stdio",
        counting: "shift=0",
    },
];

/// An image, its boards, and whether it counts instructions. If not, it sleeps through virtual
/// time.
const IMAGES: [(&str, &str, bool); 12] = [
    ("conformance", "mps2 microbit virt", false),
    ("sensor-hub", "mps2 microbit", false),
    ("bus", "mps2 microbit virt", false),
    ("superloop", "virt", false),
    ("hub", "virt", false),
    ("watchdog", "mps2", false),
    ("cost", "mps2 microbit virt", true),
    ("cost-groups", "mps2 microbit virt", true),
    ("overdue", "mps2 microbit virt", true),
    ("explore", "mps2", true),
    ("explore-kinds", "mps2", true),
    ("worst", "mps2", true),
];

/// Images that are only measured. The difference of two sizes is the cost of a part.
const SIZES: &str = "\
flash-channel flash-nothing embassy-sync's channel of 16
flash-queue flash-nothing a queue of 16: add, delays, exponential backoff, `try_get`, `success`, `retry`
flash-awaited flash-timer a queue of 16 with `get().await` and its timer, in addition to embassy-time's own
flash-groups flash-queue groups with limits, four at most, in addition to a queue of 16
flash-rates flash-groups rates of these groups, in addition to their limits
flash-policy flash-queue a policy, in addition to a queue of 16
flash-slack flash-queue slack, in addition to a queue of 16";

/// The board and the image whose depths of stack are read from the machine code.
const DEPTHS: (&str, &str) = ("mps2", "depth");

/// Runs everything on every board, and compares the tables of the page with what the images print.
pub(crate) fn run() -> Verdict {
    try_all(false)
}

/// As [`run`], and perhaps writes the tables of the page. Continues after a failure.
pub(crate) fn try_all(writes: bool) -> Verdict {
    // Without them there is nothing to run.
    QEMU_ARM.promised()?;
    QEMU_RISCV.promised()?;
    OBJDUMP_ARM.promised()?;
    let mut tables = Tables::default();
    let mut results: Vec<Verdict> = programs::PROGRAMS.iter().map(Program::run).collect();
    results.extend(["loops", "tasks"].map(programs::storm));
    for board in &BOARDS {
        build(board)?;
        let folder = target(&format!("firmware/{}/release", board.target));
        let elf = |image: &str| fs::read(format!("{folder}/{image}"));
        for (image, _, counts) in IMAGES.iter().filter(|image| image.1.contains(board.name)) {
            let (passed, text) = emulate(board, &format!("{folder}/{image}"), *counts)?;
            tables.add(board.about, &text);
            let why = || format!("{image} on {}", board.name).into();
            results.push(passed.then_some(()).ok_or_else(why));
        }
        let mut measured = String::from("| bytes of flash | |\n|---|--:|\n");
        for line in SIZES.lines() {
            let [with, without, what] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else {
                return Err(format!("not two images and a name: {line}").into());
            };
            let bytes = flash_bytes(&elf(with)?)? - flash_bytes(&elf(without)?)?;
            measured += &format!("| {what} | {bytes} |\n");
        }
        if board.name == DEPTHS.0 {
            measured += &format!("\n{}", depth::table(&format!("{folder}/{}", DEPTHS.1))?);
        }
        println!("\n{measured}");
        tables.add(board.about, &measured);
        for (image, uses) in parts::USES {
            results.push(verdict(&parts::unused(&elf(image)?, image, uses)?));
        }
    }
    results.push(tables.publish(writes));
    all(results)
}

/// Builds and lints the images for one board, because their code differs between boards.
fn build(board: &Board) -> Verdict {
    // An image contains paths of its sources. The path of the clone must not change its size.
    let root = format!("--remap-path-prefix={}=requeue", root().display());
    let config = format!("build.rustflags=[{root:?}]");
    let line = |line: &str| {
        let line = cmd(line).args(["--release", "--locked", "--config", &config]);
        let line = line.args(["--features", board.name, "--target-dir"]);
        for_target(
            line.arg(target("firmware")).dir("examples/firmware"),
            board.target,
        )
    };
    line("cargo build --bins")?.run()?;
    line("cargo clippy --lib --bins")?
        .args(["--", "-D", "warnings"])
        .run()
}

/// A call of an emulator. After two minutes an image counts as hung.
fn emulator(emulator: &Debian, line: &str, image: &str) -> Verdict<Cmd> {
    let call = cmd("timeout 120")
        .arg(emulator.promised()?)
        .args(line.split(' '));
    Ok(call.args(["-display", "none", "-monitor", "none", "-kernel", image]))
}

/// Runs an image. Returns whether it passed, and its output.
fn emulate(board: &Board, image: &str, counts: bool) -> Verdict<(bool, String)> {
    let line = emulator(board.emulator, board.machine, image)?;
    let count = match counts {
        true => board.counting,
        false => "shift=4,sleep=off",
    };
    let line = line.args(["-icount", count]);
    println!("$ {line}");
    // The emulator prints the output of an ARM image to its standard error.
    let output = line.command().stdin(Stdio::null()).output()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    print!("{text}");
    Ok((output.status.success(), text))
}

/// The bytes of flash that an image takes: everything that its program headers load.
fn flash_bytes(elf: &[u8]) -> Verdict<i64> {
    let image = ElfFile32::<Endianness>::parse(elf)?;
    let bytes: u64 = image.segments().map(|part| part.file_range().1).sum();
    Ok(bytes.try_into()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_image_names_boards_that_there_are() {
        for (image, boards, _) in IMAGES {
            let is_known = |name| BOARDS.iter().any(|board| board.name == name);
            assert!(boards.split(' ').all(is_known), "{image}");
        }
    }
}
