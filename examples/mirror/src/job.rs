//! One run of the program: queue, workers, watch, signals and progress, put together.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::mem::take;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use requeue::std::{Leftover, WorkQueue, Workers};
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::args::Options;
use crate::copy::Temps;
use crate::figures::Figures;
use crate::key::Key;
use crate::mirror::{GivenUp, Mirror, Queue, Tally, Troubles, locked};
use crate::plan::Plan;
use crate::progress::{Load, Progress};
use crate::report::Report;
use crate::roots::Roots;
use crate::snapshot;
use crate::watch::Watch;

/// The first pause after a failure. Each pause is twice as long as the previous one.
const PAUSE_FIRST: Duration = Duration::from_millis(50);

const PAUSE_MAX: Duration = Duration::from_secs(5);

/// How often the main thread shows progress and checks whether everything is done.
const TICK: Duration = Duration::from_millis(20);

/// The exit code that shells report for a program ended by Ctrl-C.
const EXIT_INTERRUPTED: i32 = 130;

/// Mirrors the trees. The error is one line for the user: why the job could not start.
pub(crate) fn start(options: &Options) -> Result<Report, String> {
    let begun = Instant::now();
    let roots = Roots::open(&options.source, &options.target)?;
    let signals = Signals::new([SIGINT, SIGTERM, SIGUSR1])
        .map_err(|error| format!("cannot listen for signals: {error}"))?;
    let figures = Figures::new().map_err(|error| format!("cannot keep figures: {error}"))?;
    let queue: Queue = WorkQueue::builder()
        .backoff(PAUSE_FIRST, PAUSE_MAX)
        .no_retry_rate()
        .report_to(figures.clone())
        .build();
    // The watch starts before the first walk, so that nothing is missed in between.
    let watch = options
        .watch
        .then(|| Watch::new(roots.source(), queue.clone()));
    let mirror = Mirror {
        roots,
        queue,
        figures,
        watch,
        temps: Temps::new(),
        tally: Tally::default(),
        troubles: Troubles::default(),
        progress: Progress::new(),
        verbose: options.verbose,
    };
    mirror.add_all(Key::everything().into());

    let leftovers = work(&mirror, options, signals);
    mirror.progress.finish();
    let leftovers = leftovers.map_err(|error| format!("cannot start the workers: {error}"))?;
    Ok(report(mirror, leftovers, begun.elapsed()))
}

/// An event that ends the main thread's wait.
enum Message {
    /// Ctrl-C or SIGTERM.
    Stop,
    /// No key is left, and without a watch there will be no more.
    Settled,
    /// The workers have ended.
    Ended,
}

/// Runs the workers until everything is done, or until a signal.
fn work(
    mirror: &Mirror,
    options: &Options,
    mut signals: Signals,
) -> io::Result<Vec<Leftover<Key>>> {
    let workers = Workers::new(options.workers.get())
        .max_retries(options.retries)
        .drain_timeout(options.grace)
        .on_give_up(|key, failure| mirror.give_up(key, &failure));
    let (sender, messages) = mpsc::channel();
    let signal_handle = signals.handle();
    thread::scope(|scope| {
        let on_signal = sender.clone();
        scope.spawn(move || {
            for signal in &mut signals {
                if signal == SIGUSR1 {
                    mirror.progress.warn_all(&snapshot::lines(&mirror.queue));
                    continue;
                }
                // The receiver is gone once the workers have ended.
                let _ = on_signal.send(Message::Stop);
            }
        });
        if mirror.watch.is_none() {
            let on_settled = sender.clone();
            scope.spawn(move || {
                mirror.queue.wait_settled();
                let _ = on_settled.send(Message::Settled);
            });
        }
        let running = scope.spawn(move || {
            let leftovers = mirror.queue.run(workers, |key| mirror.reconcile(key));
            let _ = sender.send(Message::Ended);
            leftovers
        });
        supervise(mirror, &messages);
        signal_handle.close();
        let ended = running.join();
        // Needed if no worker could be started.
        mirror.queue.clear();
        match ended {
            Ok(leftovers) => leftovers,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Shows progress, and shuts the queue down once it is settled or on a signal.
fn supervise(mirror: &Mirror, messages: &Receiver<Message>) {
    let mut is_stopping = false;
    let mut in_step_after = None;
    let mut polled = Instant::now();
    loop {
        match messages.recv_timeout(TICK) {
            Ok(Message::Ended) | Err(RecvTimeoutError::Disconnected) => return,
            Ok(Message::Stop) if is_stopping => {
                mirror.progress.finish();
                std::process::exit(EXIT_INTERRUPTED);
            }
            Ok(Message::Stop) => {
                is_stopping = true;
                mirror.queue.shut_down();
                mirror
                    .progress
                    .warn("stopping. Press again to stop at once");
            }
            Ok(Message::Settled) => mirror.queue.shut_down(),
            Err(RecvTimeoutError::Timeout) => poll(mirror, &mut polled),
        }
        let load = load(&mirror.queue);
        let changes = mirror.tally.changes();
        if !load.is_idle() || is_stopping {
            mirror.progress.show(load, &mirror.tally);
        } else if mirror.watch.is_some() && in_step_after != Some(changes) {
            in_step_after = Some(changes);
            mirror.progress.in_step(&mirror.tally);
        }
    }
}

/// Adds the keys of polled directories when it is time. Keys that are still queued stay as they
/// are.
fn poll(mirror: &Mirror, last: &mut Instant) {
    if let Some(watch) = &mirror.watch
        && last.elapsed() >= watch.poll_every()
    {
        mirror.add_all(watch.polls());
        *last = Instant::now();
    }
}

/// The counts of the queue at one moment. Three separate calls could miss a key that changes state.
fn load(queue: &Queue) -> Load {
    let stats = queue.stats();
    Load {
        ready: stats.ready,
        active: stats.active,
        delayed: stats.delayed,
    }
}

fn report(mut mirror: Mirror, leftovers: Vec<Leftover<Key>>, elapsed: Duration) -> Report {
    let figures = mirror.figures.shown();
    let given_up = take(&mut *locked(&mirror.troubles.given_up));
    let given_up: BTreeMap<Key, GivenUp> = given_up
        .into_iter()
        .filter(|(key, _)| is_amiss(&mirror, key))
        .collect();
    let mut left: BTreeSet<Key> = take(&mut *locked(&mirror.troubles.refused));
    left.extend(leftovers.into_iter().map(|leftover| leftover.key));
    // A poll that did not run before the end is not unfinished work.
    left.retain(|key| !is_poll(&mirror, key) && is_amiss(&mirror, key));
    Report {
        source: mirror.roots.source().into(),
        target: mirror.roots.target().into(),
        tally: take(&mut mirror.tally),
        figures,
        given_up,
        left,
        special: take(&mut *locked(&mirror.troubles.special)),
        without_set_id: take(&mut *locked(&mirror.troubles.without_set_id)),
        polled: mirror.watch.as_ref().map_or(0, Watch::polled_len),
        elapsed,
    }
}

/// Whether the key belongs to a polled directory that was listed before.
fn is_poll(mirror: &Mirror, key: &Key) -> bool {
    match (&mirror.watch, key) {
        (Some(watch), Key::Tree(path)) => watch.is_polled(path),
        _ => false,
    }
}

/// Whether a key still needs work. Its source and target may have disappeared since, or the run of
/// another key may have corrected it.
fn is_amiss(mirror: &Mirror, key: &Key) -> bool {
    let (path, is_tree) = match key {
        Key::Entry(path) => (path, false),
        Key::Tree(path) => (path, true),
    };
    let looks = (
        mirror.roots.look_at_source(path),
        mirror.roots.look_at_target(path),
    );
    match looks {
        (Ok(source), _) if is_tree => source.is_directory(),
        (Ok(source), Ok(target)) => Plan::new(&source.seen, &target.seen) != Plan::Nothing,
        _ => true,
    }
}
