//! Contenders in one process, in turn, so that disturbances of the machine affect all of them
//! alike.

use core::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::figures::{Figure, Figures, Source};
use crate::workloads::{Round, Scale};

/// A run of the benchmarks, as the command line asks for it.
#[derive(Debug)]
pub struct Suite {
    filter: String,
    quick: bool,
    /// The file for the figures.
    json: Option<PathBuf>,
    figures: Vec<Figure>,
    group: &'static str,
    /// The heading of the group is not printed before its first row.
    untitled: bool,
}

impl Suite {
    /// Reads the command line: `[--quick] [--json=FILE] [FILTER]`. Without cargo's `--bench`, as
    /// under `cargo test`, it is quick.
    pub fn from_args() -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
        let filter = arguments.iter().find(|argument| !argument.starts_with('-'));
        let json = |argument: &String| argument.strip_prefix("--json=").map(PathBuf::from);
        Self {
            filter: filter.cloned().unwrap_or_default(),
            quick: has("--quick") || !has("--bench"),
            json: arguments.iter().find_map(json),
            figures: Vec::new(),
            group: "",
            untitled: true,
        }
    }

    /// Whether everything only has to run, and figures do not matter.
    pub const fn is_quick(&self) -> bool {
        self.quick
    }

    /// Begins a table.
    pub const fn group(&mut self, title: &'static str) {
        self.group = title;
        self.untitled = true;
    }

    /// Measures and prints one row: `rounds` rounds of each contender in turn, after one round to
    /// warm up. Contenders are only set up if the command line asks for the row.
    pub fn row<'a>(
        &mut self,
        work: &str,
        rounds: usize,
        scale: Scale,
        contenders: impl FnOnce(Scale) -> Vec<Contender<'a>>,
    ) {
        if !self.asks_for(work) {
            return;
        }
        let (rounds, scale) = if self.quick {
            (1, scale.at_most(100))
        } else {
            (rounds, scale)
        };
        let figures = compare(contenders(scale), rounds);
        let names: Vec<&str> = figures.iter().map(|figures| figures.name).collect();
        self.print(&names, &line(work, &figures));
        for theirs in &figures {
            self.record(work, scale.keys as u64, theirs.name, theirs.nanos, "ns");
        }
    }

    /// Returns whether the command line asks for this row of the group.
    pub fn asks_for(&self, work: &str) -> bool {
        format!("{}: {work}", self.group).contains(&self.filter)
    }

    /// Prints a line of the group's table, and its heading before the first one.
    pub fn print(&mut self, columns: &[&str], line: &str) {
        if self.untitled {
            if self.quick {
                println!("\nQuick: every scale is cut to 100, and the figures mean nothing.");
            }
            println!("{}", heading(self.group, columns));
            self.untitled = false;
        }
        println!("{line}");
    }

    /// Keeps a figure of the group's table for `--json`.
    pub fn record(&mut self, work: &str, size: u64, contender: &str, value: f64, unit: &str) {
        self.figures.push(Figure {
            table: self.group.to_owned(),
            work: work.to_owned(),
            size,
            contender: contender.to_owned(),
            // No clock here is more precise than three places.
            value: (value * 1e3).round() / 1e3,
            unit: unit.to_owned(),
        });
    }

    /// Ends the run, and writes the figures if a file was named.
    pub fn finish(self) -> ExitCode {
        let Some(file) = &self.json else {
            return ExitCode::SUCCESS;
        };
        let source = Source::here(self.command());
        let figures = self.figures;
        match (Figures { source, figures }).write(file) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}: {error}", file.display());
                ExitCode::FAILURE
            }
        }
    }

    /// The command line that measures the same again.
    fn command(&self) -> String {
        let program = std::env::current_exe().unwrap_or_default();
        let program = program.file_stem().unwrap_or_default().to_string_lossy();
        // Cargo appends a hash.
        let name = program.rsplit_once('-').map_or(&*program, |(name, _)| name);
        let mut command = format!("cargo bench -p requeue-bench --bench {name}");
        if cfg!(feature = "peers") {
            command.push_str(" --features peers");
        }
        if self.quick || !self.filter.is_empty() {
            command.push_str(" --");
        }
        if self.quick {
            command.push_str(" --quick");
        }
        if !self.filter.is_empty() {
            let _ = write!(command, " \"{}\"", self.filter);
        }
        command
    }
}

/// One of several implementations of the same work.
pub struct Contender<'a> {
    name: &'static str,
    round: Box<dyn FnMut() -> Round + 'a>,
}

impl<'a> Contender<'a> {
    /// A contender whose rounds are measured by `round`.
    pub fn new(name: &'static str, round: impl FnMut() -> Round + 'a) -> Self {
        Self {
            name,
            round: Box::new(round),
        }
    }
}

/// The result of a contender.
#[derive(Debug)]
struct Measured {
    name: &'static str,
    /// Median nanoseconds per operation.
    nanos: f64,
    /// The median divided by the first contender's.
    ratio: f64,
    /// The least and the largest ratio of two consecutive rounds.
    ratios: (f64, f64),
}

fn compare(mut contenders: Vec<Contender<'_>>, rounds: usize) -> Vec<Measured> {
    let mut nanos: Vec<Vec<f64>> = vec![Vec::new(); contenders.len()];
    for round in 0..=rounds {
        for (contender, nanos) in contenders.iter_mut().zip(&mut nanos) {
            let Round { time, operations } = (contender.round)();
            if round > 0 {
                nanos.push(time.as_nanos() as f64 / operations as f64);
            }
        }
    }
    let figures = |(contender, theirs): (&Contender<'_>, &Vec<f64>)| {
        let pairs = theirs.iter().zip(&nanos[0]);
        Measured {
            name: contender.name,
            nanos: median(theirs),
            ratio: median(theirs) / median(&nanos[0]),
            ratios: pairs.fold((f64::MAX, 0.0), |(least, most), (theirs, ours)| {
                (least.min(theirs / ours), most.max(theirs / ours))
            }),
        }
    };
    contenders.iter().zip(&nanos).map(figures).collect()
}

/// The median of at least one value.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn heading(group: &str, columns: &[&str]) -> String {
    let rules = "|--:".repeat(columns.len());
    let columns = columns.join(" | ");
    format!("\n### {group}\n\n| work | {columns} |\n|---{rules}|")
}

/// `34.9 ns | 131 ns **3.76×** (3.26–4.72)`.
fn line(work: &str, figures: &[Measured]) -> String {
    let mut line = format!("| {work} |");
    for (place, figures) in figures.iter().enumerate() {
        let _ = write!(line, " {} ns", three_digits(figures.nanos));
        if place > 0 {
            let (least, most) = figures.ratios;
            let ratio = figures.ratio;
            let _ = write!(line, " **{ratio:.2}×** ({least:.2}–{most:.2})");
        }
        line.push_str(" |");
    }
    line
}

pub(crate) fn three_digits(value: f64) -> String {
    match value {
        ..10.0 => format!("{value:.2}"),
        10.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// One line about the origin of the figures.
pub fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |rest| {
            rest.trim_matches([':', '\t', ' '])
        });
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "{model}, {processors} processors, {}-{}",
        std::env::consts::ARCH,
        std::env::consts::OS,
    )
}
