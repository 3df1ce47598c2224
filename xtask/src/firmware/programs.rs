//! The programs of `docs/firmware.md`: builds them as a reader would, and runs them until they have
//! shown what the page says.

use std::io::{self, BufRead, BufReader};
use std::process::Stdio;

use crate::cmd::{Cmd, cmd, target};
use crate::report::Verdict;
use crate::toolchain::for_target;
use crate::tools::{Debian, QEMU_ARM, QEMU_RISCV};

/// A program that a page shows, in a package of its own.
pub(super) struct Program {
    pub(super) about: &'static str,
    /// The folder of the package.
    folder: &'static str,
    binary: &'static str,
    on: &'static Machine,
    /// What it prints, in this order, each after its time, and the milliseconds that are at least
    /// between a line and the one before it.
    expected: &'static [(&'static str, u64)],
}

/// What a program is built for, and an emulator with its arguments: as the runner of the program's
/// `.cargo/config.toml`, with nothing to type into, and without sleeping in real time where the
/// processor sleeps.
struct Machine {
    name: &'static str,
    target: &'static str,
    emulator: &'static Debian,
    arguments: &'static str,
}

const CORTEX_M3: Machine = Machine {
    name: "Cortex-M3",
    target: "thumbv7m-none-eabi",
    emulator: &QEMU_ARM,
    arguments: "-M lm3s6965evb -semihosting-config enable=on,target=native \
                -icount shift=10 -serial none",
};

const ONE_HART: Machine = Machine {
    name: "RISC-V",
    target: "riscv32imac-unknown-none-elf",
    emulator: &QEMU_RISCV,
    arguments: "-M virt -bios none -icount shift=4,sleep=off -serial stdio",
};

const TWO_HARTS: Machine = Machine {
    name: "two harts",
    target: "riscv32imac-unknown-none-elf",
    emulator: &QEMU_RISCV,
    arguments: "-M virt -smp 2 -bios none -icount shift=4,sleep=off -serial stdio",
};

/// What a sensor that replies at the fourth attempt and a light print in RTIC, from a bare loop, and on two harts.
const SENSOR_AND_LIGHT: [(&str, u64); 6] = [
    ("sensor 0 does not reply", 0),
    ("sensor 0 does not reply", 10),
    ("sensor 0 does not reply", 20),
    ("sensor 0 is read", 40),
    ("blink", 10),
    ("blink", 100),
];

pub(super) const PROGRAMS: [Program; 5] = [
    Program {
        about: "the program of docs/firmware.md",
        folder: "first",
        binary: "first",
        on: &CORTEX_M3,
        expected: &[
            ("Read { sensor: 0 } failed, attempt 1", 0),
            ("Read { sensor: 0 } failed, attempt 2", 10),
            ("Read { sensor: 0 } failed, attempt 3", 20),
            ("sensor 0 is read", 40),
            ("uploaded", 1000),
        ],
    },
    Program {
        about: "RTIC, on a monotonic",
        folder: "rtic",
        binary: "rtic-jobs",
        on: &CORTEX_M3,
        expected: &SENSOR_AND_LIGHT,
    },
    Program {
        about: "RTIC, on a driver of embassy-time",
        folder: "rtic",
        binary: "embassy_time",
        on: &CORTEX_M3,
        expected: &SENSOR_AND_LIGHT,
    },
    Program {
        about: "a bare loop",
        folder: "bare",
        binary: "bare",
        on: &ONE_HART,
        expected: &SENSOR_AND_LIGHT,
    },
    Program {
        about: "a loop on each of two harts",
        folder: "harts",
        binary: "harts",
        on: &TWO_HARTS,
        expected: &SENSOR_AND_LIGHT,
    },
];

impl Program {
    /// Builds, lints and runs the program.
    pub(super) fn run(&self) -> Verdict {
        self.line("cargo build --release --locked")?.run()?;
        let lint = self.line("cargo clippy --release --locked")?;
        lint.args(["--", "-D", "warnings"]).run()?;
        let image = image(self.on, self.binary);
        self.watch(&super::emulator(
            self.on.emulator,
            self.on.arguments,
            &image,
        )?)
    }

    /// The name of its machine.
    pub(super) fn machine(&self) -> &'static str {
        self.on.name
    }

    /// A line of cargo for the package. All packages share a folder, and so their dependencies.
    fn line(&self, line: &str) -> Verdict<Cmd> {
        let line = cmd(line).args(["--target-dir", &target("firmware")]);
        for_target(
            line.dir(format!("examples/firmware/{}", self.folder)),
            self.on.target,
        )
    }

    /// Runs the program, which never ends by itself, until it has printed what is expected.
    fn watch(&self, line: &Cmd) -> Verdict {
        println!("$ {line}");
        let (output, writer) = io::pipe()?;
        let mut command = line.command();
        let mut child = command.stdout(writer.try_clone()?).stderr(writer).spawn()?;
        // With its ends of the pipe: when the emulator has ended, so have its lines.
        drop(command);
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        let judged = self.judge(lines.inspect(|line| println!("{line}")));
        // A signal that `timeout` hands on to the emulator.
        cmd("kill").arg(child.id().to_string()).run()?;
        child.wait()?;
        Ok(judged.map_err(|why| format!("{}: {why}", self.about))?)
    }

    /// Reads lines until the last one that is expected. Other lines without a time are ignored.
    fn judge(&self, lines: impl IntoIterator<Item = String>) -> Result<(), String> {
        let mut timed = lines.into_iter().filter_map(|line| {
            let (millis, what) = line.split_once(" ms: ")?;
            Some((millis.parse::<u64>().ok()?, what.to_owned()))
        });
        let mut earliest = 0;
        for (index, (expected, _)) in self.expected.iter().enumerate() {
            match timed.next() {
                Some((millis, what)) if what == *expected && millis >= earliest => {
                    let pause = self.expected.get(index + 1).map_or(0, |(_, pause)| *pause);
                    earliest = millis + pause;
                }
                Some((millis, what)) => {
                    return Err(format!(
                        "it printed `{what}` at {millis} ms \
                     instead of `{expected}` from {earliest} ms on"
                    ));
                }
                None => return Err(format!("it did not print `{expected}`")),
            }
        }
        Ok(())
    }
}

/// Runs a storm on two harts: built with their program. They run at once, so that no two storms are
/// the same. Its counts say whether it has passed.
pub(super) fn storm(binary: &str) -> Verdict<bool> {
    let machine = "-M virt -smp 2 -bios none -serial stdio";
    let line = super::emulator(&QEMU_RISCV, machine, &image(&TWO_HARTS, binary))?;
    println!("$ {line}");
    Ok(line.command().stdin(Stdio::null()).status()?.success())
}

/// Where cargo puts a program.
fn image(machine: &Machine, binary: &str) -> String {
    target(&format!("firmware/{}/release/{binary}", machine.target))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../docs/firmware.md");
    const RTIC: &str = include_str!("../../../docs/firmware/rtic.md");
    const BARE_LOOP: &str = include_str!("../../../docs/firmware/bare-loop.md");
    const TWO_CORES: &str = include_str!("../../../docs/firmware/two-cores.md");

    #[test]
    fn the_pages_show_what_the_programs_print() {
        for (program, page) in [(0, PAGE), (1, RTIC), (3, BARE_LOOP), (4, TWO_CORES)] {
            assert_eq!(
                PROGRAMS[program].judge(page.lines().map(str::to_owned)),
                Ok(())
            );
        }
    }

    #[test]
    fn a_retry_that_is_early_or_a_line_that_is_missing_is_found() {
        let lines = |text: &str| PROGRAMS[0].judge(text.lines().map(str::to_owned));
        let first = "7 ms: Read { sensor: 0 } failed, attempt 1\n";
        let early = lines(&format!(
            "{first}14 ms: Read {{ sensor: 0 }} failed, attempt 2"
        ));
        assert!(early.unwrap_err().ends_with("attempt 2` from 17 ms on"));
        let missing = lines(&format!("{first}no time: uploaded"));
        assert!(missing.unwrap_err().starts_with("it did not print"));
    }
}
