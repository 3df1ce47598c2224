//! Replays recordings of the real client-go on one of our queues.
//!
//! `replay --runtime core-fixed|core-growable|std|tokio|embassy|bare PATH…`, where a path is a file or a
//! folder.
//!
//! Exits with 0 if everything went as recorded, with 1 if there was a mismatch, and with 2 if a
//! file cannot be replayed.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use requeue_replay::{Report, Runtime, file};

const USAGE: &str =
    "usage: replay --runtime core-fixed|core-growable|std|tokio|embassy|bare PATH...";

fn main() -> ExitCode {
    // A panic of a queue is reported as a mismatch, with its history.
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = arguments(std::env::args().skip(1)).and_then(|(runtime, paths)| {
        let files = files(&paths)?;
        let mut mismatches = 0;
        for file in files {
            mismatches += replay(&file, runtime)?.mismatches;
        }
        Ok(mismatches)
    });
    match outcome {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(problem) => {
            eprintln!("replay: {problem}");
            ExitCode::from(2)
        }
    }
}

fn arguments(args: impl Iterator<Item = String>) -> Result<(Runtime, Vec<PathBuf>), String> {
    let (mut runtime, mut paths) = (None, Vec::new());
    let mut args = args.peekable();
    while let Some(arg) = args.next() {
        let name = match arg.strip_prefix("--runtime") {
            Some("") => args.next().ok_or(USAGE)?,
            Some(name) if name.starts_with('=') => name[1..].to_owned(),
            _ if arg.starts_with('-') => return Err(format!("no option {arg:?}; {USAGE}")),
            _ => {
                paths.push(PathBuf::from(arg));
                continue;
            }
        };
        let named = name.parse::<Runtime>();
        runtime = Some(named.map_err(|unknown| unknown.to_string())?);
    }
    match runtime {
        Some(runtime) if !paths.is_empty() => Ok((runtime, paths)),
        _ => Err(USAGE.to_owned()),
    }
}

fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for path in paths {
        let found = file::find(path).map_err(|error| problem(path, &error))?;
        if found.is_empty() {
            return Err(problem(path, &"no .jsonl or .jsonl.gz file in this folder"));
        }
        files.extend(found);
    }
    Ok(files)
}

fn replay(path: &Path, runtime: Runtime) -> Result<Report, String> {
    let text = file::read(path).map_err(|error| problem(path, &error))?;
    let report = requeue_replay::replay(&text, runtime).map_err(|bad| problem(path, &bad))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    println!("{name}: {report}");
    if let Some(text) = &report.first_mismatch {
        println!("first mismatch of {name}:\n{text}");
    }
    Ok(report)
}

fn problem(path: &Path, what: &dyn std::fmt::Display) -> String {
    format!("{}: {what}", path.display())
}
