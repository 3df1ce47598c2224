//! Builds the images of `examples/firmware` for each board and runs them in the emulator.
//!
//! A board is a row of [`BOARDS`], an image a row of [`IMAGES`]. The exit code of an image is its
//! result. The emulator counts instructions instead of time, so every run is the same.

use std::fs;
use std::process::Stdio;

use object::read::elf::ElfFile32;
use object::{Endianness, Object, ObjectSegment};

use crate::bounds;
use crate::cmd::{Cmd, cmd, root, target};
use crate::report::{Stop, Verdict, verdict};
use crate::toolchain::for_target;
use crate::tools::{Debian, QEMU_ARM, QEMU_RISCV};

mod depth;
mod parts;
mod programs;
mod tables;

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
const SIZES: [(&str, &str, &str); 7] = [
    (
        "embassy-sync's channel of 16",
        "flash-channel",
        "flash-nothing",
    ),
    (
        "a queue of 16: add, delays, exponential backoff, `try_get`, `success`, `retry`",
        "flash-queue",
        "flash-nothing",
    ),
    (
        "a queue of 16 with `get().await` and its timer, in addition to embassy-time's own",
        "flash-awaited",
        "flash-timer",
    ),
    (
        "groups with limits, four at most, in addition to a queue of 16",
        "flash-groups",
        "flash-queue",
    ),
    (
        "rates of these groups, in addition to their limits",
        "flash-rates",
        "flash-groups",
    ),
    (
        "a policy, in addition to a queue of 16",
        "flash-policy",
        "flash-queue",
    ),
    (
        "slack, in addition to a queue of 16",
        "flash-slack",
        "flash-queue",
    ),
];

/// The board and the image whose depths of stack are read from the machine code.
const DEPTHS: (&str, &str) = ("mps2", "depth");

/// Runs everything on every board, and holds the tables of the page against what the images print.
pub(crate) fn run() -> Verdict {
    try_all(false)
}

/// As [`run`], and writes the tables of the page.
pub(crate) fn write() -> Verdict {
    try_all(true)
}

/// Continues after a failure, and prints one table at the end.
fn try_all(writes: bool) -> Verdict {
    let mut tables = Tables::default();
    let mut table = Vec::new();
    let mut failures = Vec::new();
    let mut end = |board: &str, what: &str, problems: Vec<String>| {
        let result = if problems.is_empty() {
            "passed"
        } else {
            "FAILED"
        };
        table.push(format!("{board:<10} {what:<52} {result}"));
        failures.extend(problems);
    };
    for program in &programs::PROGRAMS {
        match program.run() {
            Ok(()) => end(program.machine(), program.about, Vec::new()),
            Err(Stop::Failed(why)) => end(program.machine(), program.about, vec![why]),
            other => return other,
        }
    }
    for storm in ["loops", "tasks"] {
        let has_failed = !programs::storm(storm)?;
        let what = format!("a storm of {storm}");
        let problems = has_failed.then(|| format!("{what} on two harts"));
        end("two harts", &what, problems.into_iter().collect());
    }
    for board in &BOARDS {
        build(board)?;
        let images = target(&format!("firmware/{}/release", board.target));
        for (image, _, counts) in IMAGES.iter().filter(|image| image.1.contains(board.name)) {
            let (passed, text) = emulate(board, &format!("{images}/{image}"), *counts)?;
            tables.add(board.about, &text);
            let mut problems = bounds::excess(board.name, image, &text)?;
            problems.extend((!passed).then(|| format!("{image} on {}", board.name)));
            let said = text.lines().find(|line| line.starts_with("traces "));
            let what = [image, said.unwrap_or_default()].join(" ");
            end(board.about, what.trim_end(), problems);
        }
        if board.name == DEPTHS.0 {
            let table = depth::table(&fs::read(format!("{images}/{}", DEPTHS.1))?)?;
            println!("\n{table}");
            tables.add(board.about, &table);
            let problems = bounds::excess(board.name, DEPTHS.1, &table)?;
            end(board.about, "stack, over every path", problems);
        }
        let mut sizes = String::from("| bytes of flash | |\n|---|--:|\n");
        for (what, with, without) in SIZES {
            let bytes = flash_bytes(&images, with)? - flash_bytes(&images, without)?;
            sizes += &format!("| {what} | {bytes} |\n");
            let what = format!("flash: {what}: {bytes} bytes");
            let line = format!("| flash | {bytes} |");
            end(board.about, &what, bounds::excess(board.name, with, &line)?);
        }
        tables.add(board.about, &sizes);
        let mut problems = Vec::new();
        for (image, uses) in parts::USES {
            let elf = fs::read(format!("{images}/{image}"))?;
            problems.extend(parts::unused(&elf, image, uses)?);
        }
        end(board.about, "no function of an unused part", problems);
    }
    let mut differences = tables.publish(writes)?;
    if !differences.is_empty() {
        let page = tables::PAGE;
        differences.push(format!(
            "{page} has other figures: `cargo xtask firmware --write`"
        ));
    }
    end("all", tables::PAGE, differences);
    println!("\n{:<10} {:<52} result", "board", "image");
    table.iter().for_each(|line| println!("{line}"));
    verdict(&failures)
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
    let count = if counts {
        board.counting
    } else {
        "shift=4,sleep=off"
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
fn flash_bytes(images: &str, image: &str) -> Verdict<i64> {
    let image = fs::read(format!("{images}/{image}"))?;
    let image = ElfFile32::<Endianness>::parse(&*image)?;
    let bytes: u64 = image.segments().map(|part| part.file_range().1).sum();
    Ok(bytes.try_into()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_image_names_boards_that_there_are() {
        for (image, boards, _) in IMAGES {
            let mut boards = boards.split(' ');
            let is_known = |name| BOARDS.iter().any(|board| board.name == name);
            assert!(boards.all(is_known), "{image}");
        }
    }

    #[test]
    fn every_bound_is_of_a_board_and_an_image() {
        let bounds = crate::cmd::read("examples/firmware/bounds.md").unwrap();
        let rows: Vec<&str> = bounds
            .lines()
            .filter(|line| line.starts_with("| "))
            .collect();
        assert!(rows.len() > 50, "{rows:?}");
        for row in &rows[1..] {
            let words: Vec<&str> = row.split('|').map(str::trim).collect();
            let images = IMAGES
                .iter()
                .map(|image| image.0)
                .chain(SIZES.iter().map(|size| size.1))
                .chain([DEPTHS.1]);
            assert!(BOARDS.iter().any(|board| board.name == words[1]), "{row}");
            assert!(images.into_iter().any(|image| image == words[2]), "{row}");
        }
    }
}
