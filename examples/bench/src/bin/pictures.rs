//! Draws the pictures of README and guide from the figures beside them. `--measure [NAME…]` first
//! measures the figures of the named pictures, or of all.

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

use requeue_bench::figures::{Figures, Source};
use requeue_bench::pictures::{DELAYS, PICTURES, delays, draw, folder};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = folder();
    let words: Vec<String> = env::args().skip(1).collect();
    let names = words.strip_prefix(&["--measure".to_owned()]);
    let known = PICTURES.map(|picture| picture.name);
    if let Some(name) = names
        .unwrap_or(&words)
        .iter()
        .find(|name| !known.contains(&&***name))
    {
        return Err(format!("no picture is called `{name}`: {}", known.join(", ")).into());
    }
    for picture in &PICTURES {
        let file = folder.join(picture.name);
        let figures = file.with_extension("json");
        if names.is_some_and(|names| names.is_empty() || names.iter().any(|n| n == picture.name)) {
            match picture.measured {
                Some((bench, rows)) => measure(bench, rows, &figures)?,
                None => write_delays(&figures)?,
            }
        }
        let figures =
            Figures::read(&figures).map_err(|error| format!("{}: {error}", figures.display()))?;
        let file = file.with_extension("svg");
        fs::write(&file, draw(picture, &figures)?)?;
        println!("{}", file.display());
    }
    Ok(())
}

/// Runs a bench with the features of this program, so that one build serves all.
fn measure(bench: &str, rows: &str, file: &Path) -> Result<(), Box<dyn Error>> {
    let line = "bench -p requeue-bench --features peers --bench";
    let mut command = Command::new("cargo");
    command.args(line.split(' ')).args([bench, "--"]);
    command.args(Some(rows).filter(|rows| !rows.is_empty()));
    let status = command.arg(format!("--json={}", file.display())).status()?;
    if !status.success() {
        return Err(format!("{command:?}: {status}").into());
    }
    Ok(())
}

fn write_delays(file: &Path) -> Result<(), Box<dyn Error>> {
    let mut words = DELAYS.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    let output = command.args(words).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let figures = delays(std::str::from_utf8(&output.stdout)?);
    let source = Source::here(DELAYS);
    Figures { source, figures }.write(file)?;
    Ok(())
}
