//! Builds the images of `examples/firmware` for each board and runs them in the emulator.
//!
//! A board is a row of [`BOARDS`], an image a row of [`IMAGES`]. The result of an image is its exit
//! code. The emulator counts instructions instead of time, so that every run is the same.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::invocation::Invocation;
use crate::report::{Stop, Verdict};
use crate::toolchain;
use crate::workspace::Workspace;

mod bounds;
mod first;

struct Board {
    /// Its feature of the package.
    name: &'static str,
    about: &'static str,
    target: &'static str,
    emulator: &'static str,
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
        emulator: "qemu-system-arm",
        machine: "-M mps2-an385 -semihosting-config enable=on,target=native -serial none",
        counting: "shift=10",
    },
    Board {
        name: "microbit",
        about: "Cortex-M0",
        target: "thumbv6m-none-eabi",
        emulator: "qemu-system-arm",
        machine: "-M microbit -semihosting-config enable=on,target=native -serial none",
        counting: "shift=10",
    },
    Board {
        name: "virt",
        about: "RISC-V",
        target: "riscv32imac-unknown-none-elf",
        emulator: "qemu-system-riscv32",
        machine: "-M virt -bios none -serial stdio",
        counting: "shift=0",
    },
];

struct Image {
    name: &'static str,
    /// The boards that it runs on.
    boards: &'static [&'static str],
    /// Whether it counts instructions; else it sleeps through virtual time.
    counts: bool,
}

const IMAGES: [Image; 7] = [
    Image {
        name: "conformance",
        boards: &["mps2", "microbit", "virt"],
        counts: false,
    },
    Image {
        name: "sensor-hub",
        boards: &["mps2", "microbit"],
        counts: false,
    },
    Image {
        name: "bus",
        boards: &["mps2", "microbit", "virt"],
        counts: false,
    },
    Image {
        name: "superloop",
        boards: &["virt"],
        counts: false,
    },
    Image {
        name: "cost",
        boards: &["mps2", "microbit", "virt"],
        counts: true,
    },
    Image {
        name: "cost-groups",
        boards: &["mps2", "microbit", "virt"],
        counts: true,
    },
    Image {
        name: "overdue",
        boards: &["mps2", "microbit", "virt"],
        counts: true,
    },
];

/// Images that are only measured: the difference of two sizes is what a thing takes.
const SIZES: [(&str, &str, &str); 4] = [
    (
        "a channel of embassy-sync",
        "flash-channel",
        "flash-nothing",
    ),
    (
        "a queue with delays and backoff",
        "flash-queue",
        "flash-nothing",
    ),
    ("the same, awaited", "flash-awaited", "flash-timer"),
    ("groups, in addition", "flash-groups", "flash-queue"),
];

/// Seconds after which an image counts as hung.
const PATIENCE: &str = "120";

/// Builds a program of the repository in a folder for its output, and shows that it is right.
type Program = fn(&Path, &Path) -> Verdict;

/// Everything, on every board. Goes on after a failure, and ends with one table.
pub(crate) fn run(workspace: &Workspace) -> Verdict {
    let built = workspace.target().join("firmware");
    let mut table = Vec::new();
    let mut failures = Vec::new();
    install(BOARDS[0].emulator)?;
    let programs: [(&str, Program); 2] = [
        ("the program of docs/firmware.md", first::run),
        ("a queue in RTIC, checked", first::check_rtic),
    ];
    for (what, run) in programs {
        let ended = run(&workspace.root, &built);
        let row = ["Cortex-M3", what, verdict(ended.is_ok())];
        table.push(row.map(str::to_owned));
        match ended {
            Err(Stop::Failed(why)) => failures.push(why),
            other => other?,
        }
    }
    for board in &BOARDS {
        install(board.emulator)?;
        build(board, workspace, &built)?;
        let images = built.join(board.target).join("release");
        for image in IMAGES.iter().filter(|it| it.boards.contains(&board.name)) {
            let (passed, text) = emulate(board, image, &images)?;
            let mut problems = Vec::new();
            if !passed {
                problems.push(format!("{} on {}", image.name, board.name));
            } else if image.counts {
                problems = bounds::excess(board.name, image.name, &text);
            }
            let result = verdict(problems.is_empty());
            failures.extend(problems);
            let said = text.lines().find(|line| line.starts_with("traces "));
            let said = said.map(|line| format!("  {line}"));
            table.push([board.about, image.name, result].map(str::to_owned));
            table.extend(said.map(|said| [String::new(), said, String::new()]));
        }
        for (what, with, without) in SIZES {
            let bytes = flash_bytes(&images.join(with))? - flash_bytes(&images.join(without))?;
            let row = [
                board.about.to_owned(),
                format!("flash: {what}"),
                format!("{bytes} bytes"),
            ];
            table.push(row);
            failures.extend(bounds::flash_excess(board.name, with, bytes));
        }
    }
    println!("\n{:<10} {:<52} result", "board", "image");
    for [board, image, result] in table {
        let line = format!("{board:<10} {image:<52} {result}");
        println!("{}", line.trim_end());
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(Stop::Failed(failures.join(", ")))
    }
}

/// Builds the images, and lints them, for one board: their code differs from board to board.
fn build(board: &Board, workspace: &Workspace, built: &Path) -> Verdict {
    let folder = workspace.root.join("examples/firmware");
    // An image holds paths of its sources, which must not be longer because the checkout's is.
    let root = format!("--remap-path-prefix={}=requeue", workspace.root.display());
    let config = format!("build.rustflags=[{root:?}]");
    for (line, rest) in [
        ("cargo build --bins", &[][..]),
        ("cargo clippy --lib --bins", &["--", "-D", "warnings"]),
    ] {
        let line = Invocation::new(line)
            .args(["--release", "--locked", "--config", &config])
            .args(["--features", board.name])
            .args(["--target-dir".to_owned(), built.display().to_string()]);
        let line = toolchain::for_target(line, board.target, &folder)?;
        line.args(rest.iter().copied()).run(&folder)?;
    }
    Ok(())
}

/// Runs an image. Returns whether it passed, and what it said.
fn emulate(board: &Board, image: &Image, images: &Path) -> Result<(bool, String), Stop> {
    let icount = if image.counts {
        board.counting
    } else {
        "shift=4,sleep=off"
    };
    let kernel = images.join(image.name).display().to_string();
    let mut command = Command::new("timeout");
    command
        .args([PATIENCE, board.emulator])
        .args(board.machine.split(' '))
        .args(["-icount", icount, "-display", "none", "-monitor", "none"])
        .args(["-kernel", &kernel])
        .stdin(Stdio::null());
    println!("$ {}", shown(&command));
    let output = command
        .output()
        .map_err(|why| Stop::Failed(format!("timeout: {why}")))?;
    // The emulator prints the output of an ARM image to its standard error.
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    print!("{text}");
    Ok((output.status.success(), text))
}

fn verdict(passed: bool) -> &'static str {
    if passed { "passed" } else { "FAILED" }
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

/// Installs an emulator if it is missing.
fn install(emulator: &str) -> Verdict {
    if is_here(emulator) {
        return Ok(());
    }
    let package = match emulator {
        "qemu-system-riscv32" => "qemu-system-misc",
        other => other,
    };
    let hint = format!("{emulator} is missing: apt-get install --no-install-recommends {package}");
    if !is_here("apt-get") || !is_root() {
        return Err(Stop::Failed(hint));
    }
    let here = Path::new(".");
    // If the lists of packages are old, the first attempt fails.
    let line = Invocation::new("apt-get install -y -qq --no-install-recommends").args([package]);
    if line.run(here).is_err() {
        Invocation::new("apt-get update -qq").run(here)?;
        line.run(here)?;
    }
    if is_here(emulator) {
        Ok(())
    } else {
        Err(Stop::Failed(hint))
    }
}

fn is_here(program: &str) -> bool {
    let mut command = Command::new(program);
    let quiet = command
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout == b"0\n")
}

/// Returns the bytes of flash that an image takes: all that its program headers load.
fn flash_bytes(image: &Path) -> Result<i64, Stop> {
    let file =
        fs::read(image).map_err(|why| Stop::Failed(format!("{}: {why}", image.display())))?;
    loaded_bytes(&file).ok_or_else(|| Stop::Failed(format!("{}: not ELF32", image.display())))
}

fn loaded_bytes(elf: &[u8]) -> Option<i64> {
    const LOAD: usize = 1;
    let number = |at: usize, bytes: usize| {
        let digits = elf.get(at..at + bytes)?.iter().rev();
        Some(digits.fold(0, |number, byte| number << 8 | usize::from(*byte)))
    };
    if elf.get(..5)? != b"\x7FELF\x01" {
        return None;
    }
    let (headers, size, count) = (number(28, 4)?, number(42, 2)?, number(44, 2)?);
    let mut bytes = 0;
    for header in (0..count).map(|index| headers + index * size) {
        if number(header, 4)? == LOAD {
            bytes += i64::try_from(number(header + 16, 4)?).ok()?;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_image_names_boards_that_there_are() {
        let known = |name: &&str| BOARDS.iter().any(|board| board.name == *name);
        for image in &IMAGES {
            assert!(image.boards.iter().all(known), "{}", image.name);
        }
    }

    #[test]
    fn what_is_loaded_is_what_the_headers_say() {
        let mut elf = vec![0; 52 + 2 * 32];
        elf[..5].copy_from_slice(b"\x7FELF\x01");
        (elf[28], elf[42], elf[44]) = (52, 32, 2);
        (elf[52], elf[52 + 16], elf[52 + 17]) = (1, 7, 2);
        // Something else that is not loaded.
        (elf[84], elf[84 + 16]) = (4, 99);
        assert_eq!(loaded_bytes(&elf), Some(0x207));
        assert_eq!(loaded_bytes(b"#!/bin/sh"), None);
    }
}
