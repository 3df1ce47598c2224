//! The programs of `docs/firmware.md`: builds them as a reader would, and runs them until they have
//! shown what the page says.

use std::io::{self, BufRead, BufReader};
use std::process::Stdio;

use crate::cmd::{Cmd, cmd, read, target};
use crate::report::Verdict;
use crate::toolchain::for_target;
use crate::tools::{Debian, QEMU_ARM, QEMU_RISCV};

/// A program that a page shows, in a package of its own.
pub(super) struct Program {
    /// The folder of the package.
    folder: &'static str,
    binary: &'static str,
    on: &'static Machine,
    /// The page that shows it, and what it prints: lines that begin with their time.
    page: &'static str,
    /// The milliseconds that are at least between each of these lines and the one before it.
    pauses: &'static [u64],
}

/// What a program is built for, and the emulator that its `.cargo/config.toml` runs.
type Machine = (&'static str, &'static Debian);

const CORTEX_M3: Machine = ("thumbv7m-none-eabi", &QEMU_ARM);
const RISC_V: Machine = ("riscv32imac-unknown-none-elf", &QEMU_RISCV);

/// A sensor that replies at the fourth attempt, and a light.
const SENSOR_AND_LIGHT: [u64; 6] = [0, 10, 20, 40, 10, 100];

pub(super) const PROGRAMS: [Program; 5] = [
    Program {
        folder: "first",
        binary: "first",
        on: &CORTEX_M3,
        page: "docs/firmware.md",
        pauses: &[0, 10, 20, 40, 1000],
    },
    Program {
        folder: "rtic",
        binary: "rtic-jobs",
        on: &CORTEX_M3,
        page: "docs/firmware/rtic.md",
        pauses: &SENSOR_AND_LIGHT,
    },
    Program {
        folder: "rtic",
        binary: "embassy_time",
        on: &CORTEX_M3,
        page: "docs/firmware/rtic.md",
        pauses: &SENSOR_AND_LIGHT,
    },
    Program {
        folder: "bare",
        binary: "bare",
        on: &RISC_V,
        page: "docs/firmware/bare-loop.md",
        pauses: &SENSOR_AND_LIGHT,
    },
    Program {
        folder: "harts",
        binary: "harts",
        on: &RISC_V,
        page: "docs/firmware/two-cores.md",
        pauses: &SENSOR_AND_LIGHT,
    },
];

impl Program {
    /// Builds, lints and runs the program, as a reader would.
    pub(super) fn run(&self) -> Verdict {
        self.line("cargo build --release --locked")?.run()?;
        let lint = self.line("cargo clippy --release --locked")?;
        lint.args(["--", "-D", "warnings"]).run()?;
        let line = "timeout 120 cargo run --release --locked --quiet --bin";
        let line = self.line(&format!("{line} {}", self.binary))?;
        self.watch(&self.on.1.in_path(line)?)
    }

    /// A line of cargo for the package. All packages share a folder, and so their dependencies.
    fn line(&self, line: &str) -> Verdict<Cmd> {
        let line = cmd(line).args(["--target-dir", &target("firmware")]);
        let line = line.dir(format!("examples/firmware/{}", self.folder));
        for_target(line, self.on.0)
    }

    /// Runs the program, which never ends by itself, until it has printed what is expected.
    fn watch(&self, line: &Cmd) -> Verdict {
        println!("$ {line}");
        let (output, writer) = io::pipe()?;
        let mut command = line.command();
        let command = command.stdin(Stdio::null()).stdout(writer.try_clone()?);
        let mut child = command.stderr(writer).spawn()?;
        // With its ends of the pipe: when the emulator has ended, so have its lines.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        let page = read(self.page)?;
        let judged = self.judge(&page, lines.inspect(|line| println!("{line}")));
        // A signal that `timeout` hands on to the emulator.
        cmd("kill").arg(child.id().to_string()).run()?;
        child.wait()?;
        Ok(judged.map_err(|why| format!("{}: {why}", self.binary))?)
    }

    /// Reads lines until the last one that is expected. Lines without a time are ignored.
    fn judge(&self, page: &str, lines: impl IntoIterator<Item = String>) -> Result<(), String> {
        let timed = |line: &str| {
            let (millis, what) = line.split_once(" ms: ")?;
            Some((millis.parse::<u64>().ok()?, what.to_owned()))
        };
        let mut shown = page.lines().filter_map(timed);
        let mut printed = lines.into_iter().filter_map(|line| timed(&line));
        let mut earliest = 0;
        for pause in self.pauses {
            let (_, expected) = shown.next().ok_or("the page shows too little")?;
            earliest += pause;
            match printed.next() {
                Some((millis, what)) if what == expected && millis >= earliest => earliest = millis,
                Some((millis, what)) => {
                    let instead = format!("instead of `{expected}` from {earliest} ms on");
                    return Err(format!("it printed `{what}` at {millis} ms {instead}"));
                }
                None => return Err(format!("it did not print `{expected}`")),
            }
        }
        Ok(())
    }
}

/// Runs a storm on two harts: built with their program. They run at once, so that no two storms are
/// the same. Its counts say whether it has passed.
pub(super) fn storm(binary: &str) -> Verdict {
    let machine = "-M virt -smp 2 -bios none -serial stdio";
    let image = target(&format!("firmware/{}/release/{binary}", RISC_V.0));
    let line = super::emulator(RISC_V.1, machine, &image)?;
    println!("$ {line}");
    match line.command().stdin(Stdio::null()).status()?.success() {
        true => Ok(()),
        false => Err(format!("a storm of {binary} on two harts").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_that_is_early_or_a_line_that_is_missing_is_found() {
        for program in &PROGRAMS {
            let page = read(program.page).unwrap();
            assert_eq!(
                program.judge(&page, page.lines().map(str::to_owned)),
                Ok(())
            );
        }
        let page = read(PROGRAMS[0].page).unwrap();
        let lines = |text: &str| PROGRAMS[0].judge(&page, text.lines().map(str::to_owned));
        let first = "7 ms: Read { sensor: 0 } failed, attempt 1\n";
        let early = format!("{first}14 ms: Read {{ sensor: 0 }} failed, attempt 2");
        let why = lines(&early).unwrap_err();
        assert!(why.ends_with("attempt 2` from 17 ms on"), "{why}");
        let missing = lines(&format!("{first}no time: uploaded"));
        assert!(missing.unwrap_err().starts_with("it did not print"));
    }
}
