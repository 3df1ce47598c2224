//! `proof [--short | --marks] [--seeds N] [--minutes M] [--seed S]`: runs replicas, etcd and
//! faults, and checks the history. `--short` runs one seed, without planted bugs and figures.
//! `--marks` only measures marks.
//!
//! `ETCD` names the program. Files are below `FOLDER`, or in the folder of temporary files.
#![forbid(unsafe_code)]

mod cluster;
mod engine;
mod engines;
mod figures;
mod nemesis;
mod plant;
mod proxy;
mod replica;
mod tls;
mod world;

use std::env;
use std::fmt::Debug;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use requeue_shards_proof::check::{Breach, Verdict, check};
use tokio::time::Instant;

use figures::Figure;
use nemesis::Nemesis;
use plant::Plant;
use world::{Plan, World, emptied};

/// How long a change may wait, because several replicas may fail one after another.
const BOUND: Duration = Duration::from_secs(20);

/// How long writing everything may take after the last fault.
const SETTLED_WITHIN: Duration = Duration::from_secs(12);

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    if let Some(("replica", words)) = words.split_first().map(|(first, rest)| (&**first, rest)) {
        return replica(words).await;
    }
    let call = match Call::read(&words) {
        Ok(call) => call,
        Err(mistake) => {
            eprintln!("proof: {mistake}");
            return ExitCode::from(2);
        }
    };
    match prove(&call).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("proof: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn replica(words: &[String]) -> ExitCode {
    let filter = env::var("RUST_LOG").unwrap_or_else(|_| "warn,requeue_shards=debug".to_owned());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .init();
    let Some(call) = replica::Call::read(words) else {
        return ExitCode::from(2);
    };
    match replica::run(call).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("replica: {error}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Debug)]
struct Call {
    seeds: u64,
    /// The first one.
    seed: u64,
    /// How long the faults of each seed last.
    lasts: Duration,
    scope: Scope,
}

/// What is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scope {
    /// Engines, seeds, planted bugs and figures.
    Whole,
    /// Engines and a seed.
    Short,
    /// The figures of marks.
    Marks,
}

impl Scope {
    fn read(word: Option<&String>) -> Self {
        match word.map(String::as_str) {
            Some("--short") => Self::Short,
            Some("--marks") => Self::Marks,
            _ => Self::Whole,
        }
    }
}

impl Call {
    fn read(words: &[String]) -> Result<Self, String> {
        let (mut seeds, mut seed, mut minutes) = (None, 1, None);
        let scope = Scope::read(words.first());
        let mut words = words.iter().skip(usize::from(scope != Scope::Whole));
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("{word} what?"))?;
            let mistake = |_| format!("{word} takes a number, not `{value}`");
            match word.as_str() {
                "--seeds" => seeds = Some(value.parse().map_err(mistake)?),
                "--seed" => seed = value.parse().map_err(mistake)?,
                "--minutes" => {
                    let mistake = |_| format!("{word} takes a number, not `{value}`");
                    minutes = Some(value.parse::<f64>().map_err(mistake)?);
                }
                _ => return Err(format!("unexpected `{word}`")),
            }
        }
        let seconds = match (seeds, minutes) {
            (_, Some(minutes)) => {
                60.0 * minutes / f64::from(u32::try_from(seeds.unwrap_or(1)).unwrap_or(1))
            }
            (Some(_), None) => 70.0,
            (None, None) => 15.0,
        };
        Ok(Self {
            seeds: seeds.unwrap_or(if scope == Scope::Short { 1 } else { 2 }),
            seed,
            lasts: Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())?,
            scope,
        })
    }
}

async fn prove(call: &Call) -> io::Result<bool> {
    let folder = env::var_os("FOLDER").map_or_else(env::temp_dir, PathBuf::from);
    let folder = folder.join("shards-proof");
    emptied(&folder)?;
    let plan = Plan {
        etcd: env::var_os("ETCD").map_or_else(|| "etcd".into(), PathBuf::from),
        folder,
        nodes: 3,
        replicas: 3,
        plant: Plant::Nothing,
        runs: (Duration::from_millis(8), Duration::from_millis(200)),
        changes: (300, 100),
    };
    if call.scope == Scope::Marks {
        let figures = figures::marks(&plan.etcd, &plan.folder.join("marks")).await?;
        return Ok(print_figures(&figures));
    }
    let (program, files) = (plan.etcd.clone(), plan.folder.clone());
    let checked = tokio::spawn(async move { engines::check(&program, &files).await });
    let mut is_well = match checked.await {
        Ok(checked) => checked.map(|()| true)?,
        // The panic has printed why.
        Err(_) => false,
    };
    let words = if is_well { "keeps" } else { "BREAKS" };
    println!("etcd {words} the promises of engines: on one node, with TLS, and on two of three");
    is_well &= seeds(call, &plan).await?;
    if call.scope == Scope::Short {
        return Ok(is_well);
    }
    is_well &= plants(&plan).await?;
    is_well &= measured(&plan).await?;
    Ok(is_well)
}

async fn seeds(call: &Call, plan: &Plan) -> io::Result<bool> {
    let mut is_well = true;
    let mut faults = 0;
    for seed in call.seed..call.seed + call.seeds {
        let nodes = if seed % 3 == 2 { 1 } else { 3 };
        let plan = Plan {
            nodes,
            folder: plan.folder.join(format!("seed-{seed}")),
            replicas: 4,
            ..plan.clone()
        };
        let (verdict, happened) = round(plan, seed, call.lasts, |_| false).await?;
        faults += happened.values().sum::<u64>();
        println!("seed {seed}, {nodes} nodes: {}", summary(&verdict));
        println!("  faults: {}", listed(happened.iter()));
        print_breaches(&verdict.breaches);
        is_well &= verdict.breaches.is_empty();
    }
    println!("{faults} faults in {} seeds", call.seeds);
    Ok(is_well)
}

/// Runs one world with faults, and checks it at the end.
async fn round(
    plan: Plan,
    seed: u64,
    lasts: Duration,
    is_over: impl FnMut(&World) -> bool,
) -> io::Result<(Verdict, std::collections::BTreeMap<nemesis::Fault, u64>)> {
    emptied(&plan.folder)?;
    let mut world = World::start(plan).await?;
    let mut nemesis = Nemesis::new(seed);
    nemesis.rage(&mut world, lasts, is_over).await?;
    nemesis.heal(&mut world).await?;
    world.settle(SETTLED_WITHIN).await;
    let verdict = check(&world.store.history(), BOUND, true);
    Ok((verdict, nemesis.happened))
}

/// Each bug has to be found.
async fn plants(plan: &Plan) -> io::Result<bool> {
    println!(
        "\n{:<20} {:<6} {:>8}  by",
        "planted bug", "found", "seconds"
    );
    let mut are_found = true;
    for plant in Plant::BUGS {
        let start = Instant::now();
        let breach = found(plan, plant).await?;
        let seconds = start.elapsed().as_secs_f64();
        let (name, found) = (plant.name(), if breach.is_some() { "yes" } else { "NO" });
        are_found &= breach.is_some();
        let by = breach.map(|breach| breach.to_string()).unwrap_or_default();
        println!("{name:<20} {found:<6} {seconds:>8.1}  {}", by.trim());
    }
    Ok(are_found)
}

/// How the checker finds a bug.
async fn found(plan: &Plan, plant: Plant) -> io::Result<Option<Breach>> {
    let mut plan = Plan {
        plant,
        folder: plan.folder.join(plant.name()),
        ..plan.clone()
    };
    let mut lasts = Duration::from_secs(60);
    if plant == Plant::MarksNotCompared {
        // A lost mark shows only once everything else is written.
        plan.runs = (Duration::from_millis(60), Duration::from_millis(200));
        plan.changes = (0, 300);
        lasts = Duration::from_secs(10);
    }
    let is_seen = |world: &World| {
        !check(&world.store.history(), BOUND, false)
            .breaches
            .is_empty()
    };
    for seed in 7..10 {
        let (verdict, _) = round(plan.clone(), seed, lasts, is_seen).await?;
        if let Some(breach) = verdict.breaches.into_iter().next() {
            return Ok(Some(breach));
        }
    }
    Ok(None)
}

async fn measured(plan: &Plan) -> io::Result<bool> {
    let quiet = Plan {
        folder: plan.folder.join("figures"),
        runs: (Duration::from_millis(8), Duration::from_millis(8)),
        changes: (1280, 0),
        ..plan.clone()
    };
    emptied(&quiet.folder)?;
    let mut world = World::start(quiet).await?;
    let mut figures = figures::measure(&mut world).await?;
    drop(world);
    figures.extend(figures::marks(&plan.etcd, &plan.folder.join("marks")).await?);
    Ok(print_figures(&figures))
}

/// Returns whether all aims are met that even a busy machine has to meet.
fn print_figures(figures: &[Figure]) -> bool {
    println!("\n{:<44} {:>20}  {:<16}", "measured", "value", "aim");
    for figure in figures {
        let missed = if figure.is_met { "" } else { "MISSED" };
        println!(
            "{:<44} {:>20}  {:<16} {missed}",
            figure.name, figure.value, figure.aim
        );
    }
    // Times and rates may be missed, because the machine may be busy.
    figures
        .iter()
        .all(|figure| figure.is_met || !figure.is_certain)
}

fn summary(verdict: &Verdict) -> String {
    format!(
        "{} changes, {} runs, {} writes, {} refused, {} excused, slowest {:.1} s, {} breaches",
        verdict.changes,
        verdict.runs,
        verdict.accepted,
        verdict.refused,
        verdict.excused,
        verdict.slowest.as_secs_f64(),
        verdict.breaches.len()
    )
}

fn listed<'f, F: Debug + 'f>(counts: impl Iterator<Item = (&'f F, &'f u64)>) -> String {
    let counts = counts.map(|(fault, count)| format!("{count} {fault:?}"));
    counts.collect::<Vec<_>>().join(", ")
}

fn print_breaches(breaches: &[Breach]) {
    const SHOWN: usize = 10;
    for breach in breaches.iter().take(SHOWN) {
        println!("  {breach}");
    }
    if breaches.len() > SHOWN {
        println!("  and {} more", breaches.len() - SHOWN);
    }
}
