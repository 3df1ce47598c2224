//! Lists the public items of libraries, one a line: `public-items FOLDER JSON…` writes a file into
//! the folder for each of rustdoc's JSON files.
//!
//! A package of its own, so that `cargo xtask` need not wait for what it is built from.

use std::collections::HashSet;
use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use public_api::{Builder, PublicApi};

fn main() -> ExitCode {
    let mut words = env::args_os().skip(1);
    let Some(folder) = words.next() else {
        eprintln!("usage: public-items FOLDER JSON…");
        return ExitCode::from(2);
    };
    for json in words {
        if let Err(error) = write(Path::new(&folder), Path::new(&json)) {
            eprintln!("{}: {error}", json.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Writes `requeue-core.txt` for a `requeue_core.json`.
fn write(folder: &Path, json: &Path) -> Result<(), Box<dyn Error>> {
    let stem = json.file_stem().unwrap_or_default().to_string_lossy();
    let file = folder.join(stem.replace('_', "-")).with_extension("txt");
    let builder = || {
        Builder::from_rustdoc_json(json)
            .omit_blanket_impls(true)
            .omit_auto_trait_impls(true)
    };
    let all = builder().build()?;
    let written = builder().omit_auto_derived_impls(true).build()?;
    Ok(fs::write(file, list(&all, &written))?)
}

/// Every item, but of what is derived only that it is: its methods say no more.
fn list(all: &PublicApi, written: &PublicApi) -> String {
    let written: HashSet<String> = written.items().map(ToString::to_string).collect();
    let lines = all.items().map(ToString::to_string);
    let kept = lines.filter(|line| {
        written.contains(line) || (line.starts_with("impl") && !line.contains(COMPILERS_OWN))
    });
    kept.map(|line| line + "\n").collect()
}

/// A trait that no program can name.
const COMPILERS_OWN: &str = "core::marker::StructuralPartialEq";
