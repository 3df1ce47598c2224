//! Draws the pictures of README and guide from the figures beside them. `--delays` first writes the
//! figures of the example `delays`.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

use requeue_bench::figures::{Figures, Source};
use requeue_bench::pictures::{DELAYS, PICTURES, delays, draw, folder};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = folder();
    if std::env::args().any(|argument| argument == "--delays") {
        write_delays(&folder.join("delays.json"))?;
    }
    for picture in &PICTURES {
        let file = folder.join(picture.name);
        let figures = file.with_extension("json");
        let figures =
            Figures::read(&figures).map_err(|error| format!("{}: {error}", figures.display()))?;
        let file = file.with_extension("svg");
        fs::write(&file, draw(picture, &figures)?)?;
        println!("{}", file.display());
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
