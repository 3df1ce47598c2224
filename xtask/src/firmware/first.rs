//! The program of `docs/firmware.md`: builds it as a reader would, and runs it until it has shown
//! what the page says.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::invocation::Invocation;
use crate::report::{Stop, Verdict};
use crate::toolchain;

/// The folder of the package, from the repository.
pub(super) const FOLDER: &str = "examples/firmware/first";
const TARGET: &str = "thumbv7m-none-eabi";
/// As the runner of its `.cargo/config.toml`, with nothing to type into.
const EMULATOR: &str = "qemu-system-arm -M lm3s6965evb \
                        -semihosting-config enable=on,target=native \
                        -icount shift=10 -display none -monitor none -serial none -kernel";

/// What it prints, in this order, each after its time, and the milliseconds that are at least
/// between a line and the one before it.
const EXPECTED: [(&str, u64); 5] = [
    ("Read { sensor: 0 } failed, attempt 1", 0),
    ("Read { sensor: 0 } failed, attempt 2", 10),
    ("Read { sensor: 0 } failed, attempt 3", 20),
    ("sensor 0 is read", 40),
    ("uploaded", 1000),
];

/// How long the program has for it.
const PATIENCE: Duration = Duration::from_secs(120);

/// Checks a queue in a program of RTIC, which `docs/book/src/cookbook.md` shows. Without a time
/// driver, which a HAL brings, it is not linked.
pub(super) fn check_rtic(root: &Path, built: &Path) -> Verdict {
    let folder = root.join("examples/firmware/rtic");
    let line = Invocation::new("cargo clippy --locked --target-dir");
    let line = line.args([built.join("rtic").display().to_string()]);
    let line = toolchain::for_target(line, TARGET, &folder)?;
    line.args(["--", "-D", "warnings"]).run(&folder)?;
    Ok(())
}

/// Builds, lints and runs the program.
pub(super) fn run(root: &Path, built: &Path) -> Verdict {
    let folder = root.join(FOLDER);
    let built = built.join("first");
    for (line, rest) in [
        ("cargo build", &[][..]),
        ("cargo clippy", &["--", "-D", "warnings"]),
    ] {
        let line = Invocation::new(line)
            .args(["--release", "--locked", "--target-dir"])
            .args([built.display().to_string()]);
        let line = toolchain::for_target(line, TARGET, &folder)?;
        line.args(rest.iter().copied()).run(&folder)?;
    }
    let image = built.join(TARGET).join("release/first");
    let emulator = Invocation::new(EMULATOR).args([image.display().to_string()]);
    watch(&emulator, &folder)
}

/// Runs the program, which never ends by itself, until it has printed what is expected.
fn watch(emulator: &Invocation, folder: &Path) -> Verdict {
    let (mut child, output) = emulator.spawn_piped(folder)?;
    let (sender, lines) = mpsc::channel();
    let reader = thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            println!("{line}");
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let deadline = Instant::now() + PATIENCE;
    // An error says that the time is up, or that the emulator has ended.
    let next = || {
        let left = deadline.saturating_duration_since(Instant::now());
        lines.recv_timeout(left).ok()
    };
    let judged = judge(std::iter::from_fn(next));
    drop(lines);
    let ended = child.kill().and_then(|()| child.wait());
    let _ = reader.join();
    ended.map_err(|error| Stop::Failed(format!("{emulator}: {error}")))?;
    judged.map_err(|why| Stop::Failed(format!("{FOLDER}: {why}")))
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
