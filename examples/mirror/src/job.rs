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

/// The first pause after a failure; each is twice as long as the one before.
const PAUSE_FIRST: Duration = Duration::from_millis(50);

const PAUSE_MAX: Duration = Duration::from_secs(5);

/// How often the main thread looks whether all is done, and shows how far it is.
const TICK: Duration = Duration::from_millis(20);

/// What a shell reports of a program that Ctrl-C ended.
const EXIT_INTERRUPTED: i32 = 130;

/// Mirrors as told. The error, one line for the user, says why it could not even begin.
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
    // The watch comes before the first walk, so that nothing is missed in between.
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

/// What the main thread waits for.
enum Message {
    /// Ctrl-C, or a polite kill.
    Stop,
    /// No key is left, and without a watch none will come.
    Settled,
    /// The workers have ended.
    Ended,
}

/// Runs the workers until everything is done, or until a signal stops it.
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
        // If no worker could be started, nothing else settles the queue.
        mirror.queue.clear();
        match ended {
            Ok(leftovers) => leftovers,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Shows how far it is, and shuts the queue down once it is settled or on a signal.
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
                mirror.progress.warn("stopping; once more to stop at once");
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

/// Adds the keys of what is polled, if it is time for that. While those of the last time are in the
/// queue that changes nothing.
fn poll(mirror: &Mirror, last: &mut Instant) {
    if let Some(watch) = &mirror.watch
        && last.elapsed() >= watch.poll_every()
    {
        mirror.add_all(watch.polls());
        *last = Instant::now();
    }
}

/// What the queue holds, all at one moment: a key that goes from one state to another in between
/// would be missed by three questions.
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
    // A poll that the end came before is nothing left undone.
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

/// Whether the key is of a directory that was looked into before, and is again from time to time.
fn is_poll(mirror: &Mirror, key: &Key) -> bool {
    match (&mirror.watch, key) {
        (Some(watch), Key::Tree(path)) => watch.is_polled(path),
        _ => false,
    }
}

/// Whether there is something to do for a key: its source may be gone since, and the target with
/// it, or the run of another key may have made it right.
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
