//! The program of `docs/firmware.md`: builds it as a reader would, and runs it until it has shown
//! what the page says.

use std::io::{self, BufRead, BufReader};

use crate::cmd::{Cmd, cmd, target};
use crate::report::Verdict;
use crate::toolchain::for_target;
use crate::tools::QEMU_ARM;

/// The folder of the package.
const FOLDER: &str = "examples/firmware/first";
/// As the runner of its `.cargo/config.toml`, with nothing to type into.
const MACHINE: &str = "-M lm3s6965evb -semihosting-config enable=on,target=native \
                       -icount shift=10 -serial none";

/// What it prints, in this order, each after its time, and the milliseconds that are at least
/// between a line and the one before it.
const EXPECTED: [(&str, u64); 5] = [
    ("Read { sensor: 0 } failed, attempt 1", 0),
    ("Read { sensor: 0 } failed, attempt 2", 10),
    ("Read { sensor: 0 } failed, attempt 3", 20),
    ("sensor 0 is read", 40),
    ("uploaded", 1000),
];

/// Checks a queue in a program of RTIC, which `docs/book/src/cookbook.md` shows. Without a time
/// driver, which a HAL brings, it is not linked.
pub(super) fn check_rtic() -> Verdict {
    let line = line("cargo clippy --locked", "rtic")?;
    line.args(["--", "-D", "warnings"]).run()
}

/// Builds, lints and runs the program.
pub(super) fn run() -> Verdict {
    line("cargo build --release --locked", "first")?.run()?;
    let lint = line("cargo clippy --release --locked", "first")?;
    lint.args(["--", "-D", "warnings"]).run()?;
    let image = target("firmware/first/thumbv7m-none-eabi/release/first");
    watch(&super::emulator(&QEMU_ARM, MACHINE, &image)?)
}

/// A line of cargo for one of the two packages.
fn line(line: &str, package: &str) -> Verdict<Cmd> {
    let built = target(&format!("firmware/{package}"));
    let line = cmd(line).args(["--target-dir", &built]);
    for_target(
        line.dir(format!("examples/firmware/{package}")),
        "thumbv7m-none-eabi",
    )
}

/// Runs the program, which never ends by itself, until it has printed what is expected.
fn watch(line: &Cmd) -> Verdict {
    println!("$ {line}");
    let (output, writer) = io::pipe()?;
    let mut command = line.command();
    let mut child = command.stdout(writer.try_clone()?).stderr(writer).spawn()?;
    // With its ends of the pipe: when the emulator has ended, so have its lines.
    drop(command);
    let lines = BufReader::new(output).lines().map_while(Result::ok);
    let judged = judge(lines.inspect(|line| println!("{line}")));
    // A signal that `timeout` hands on to the emulator.
    cmd("kill").arg(child.id().to_string()).run()?;
    child.wait()?;
    Ok(judged.map_err(|why| format!("{FOLDER}: {why}"))?)
}

/// Reads lines until the last one that is expected. Other lines without a time are ignored.
fn judge(lines: impl IntoIterator<Item = String>) -> Result<(), String> {
    let mut timed = lines.into_iter().filter_map(|line| {
        let (millis, what) = line.split_once(" ms: ")?;
        Some((millis.parse::<u64>().ok()?, what.to_owned()))
    });
    let mut earliest = 0;
    for (index, (expected, _)) in EXPECTED.iter().enumerate() {
        match timed.next() {
            Some((millis, what)) if what == *expected && millis >= earliest => {
                let pause = EXPECTED.get(index + 1).map_or(0, |(_, pause)| *pause);
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

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../docs/firmware.md");

    /// A file of the package.
    macro_rules! file {
        ($path:literal) => {
            include_str!(concat!("../../../examples/firmware/first/", $path))
        };
    }

    fn shows(language: &str, text: &str) -> bool {
        PAGE.contains(&format!("```{language}\n{text}```\n"))
    }

    #[test]
    fn the_page_shows_the_files_that_are_built() {
        assert!(shows("rust,ignore", file!("src/main.rs")), "src/main.rs");
        assert!(shows("text", file!("memory.x")), "memory.x");
        assert!(
            shows("toml", file!(".cargo/config.toml")),
            ".cargo/config.toml"
        );
    }

    #[test]
    fn the_page_shows_the_manifest_but_for_where_this_repository_is() {
        let (manifest, _) = file!("Cargo.toml").split_once("\n# A workspace").unwrap();
        let here = r#"{ version = "0.1", path = "../../../runtime-embassy" }"#;
        assert!(manifest.contains(here));
        assert!(shows("toml", &manifest.replace(here, r#""0.1""#)));
    }

    #[test]
    fn the_page_shows_what_the_program_prints() {
        assert_eq!(judge(PAGE.lines().map(str::to_owned)), Ok(()));
    }

    #[test]
    fn a_retry_that_is_early_or_a_line_that_is_missing_is_found() {
        let lines = |text: &str| judge(text.lines().map(str::to_owned));
        let first = "7 ms: Read { sensor: 0 } failed, attempt 1\n";
        let early = lines(&format!(
            "{first}14 ms: Read {{ sensor: 0 }} failed, attempt 2"
        ));
        assert!(early.unwrap_err().ends_with("attempt 2` from 17 ms on"));
        let missing = lines(&format!("{first}no time: uploaded"));
        assert!(missing.unwrap_err().starts_with("it did not print"));
    }
}
