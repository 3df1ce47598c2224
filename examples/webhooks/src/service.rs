//! One run of the program: database, queue, workers, server and signals, put together.

use std::fmt::Display;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use requeue::tokio::{CancellationToken, DURATION_BUCKETS, Drained, NamedMetrics, WorkQueue};
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::api::Api;
use crate::args::Options;
use crate::dispatch::{Dispatcher, Queue};
use crate::figures::{Figures, Waits};
use crate::key::Key;
use crate::origin::Hosts;
use crate::post::Poster;
use crate::replicas;
use crate::say;
use crate::server;
use crate::shares::Shares;
use crate::sign::Secret;
use crate::signals::Signals;
use crate::stats::{History, Stats, Tally};
use crate::store::{Database, Presence, State, Store};

/// The longest pause of a key that fails, and of a host that does not answer.
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// What a shell reports of a program that Ctrl-C ended.
const EXIT_INTERRUPTED: i32 = 130;

/// Serves until a signal stops it. The error, one line for the user, says why it could not begin or
/// go on.
pub(crate) async fn run(options: Options) -> Result<(), String> {
    if options.replicas.is_some() && !replicas::IS_BUILT {
        let how = "cargo build --release -p webhooks --features replicas";
        return Err(format!(
            "this program was built without --etcd: {how}, which needs protoc"
        ));
    }
    let mut signals = Signals::new().map_err(cannot("listen for signals"))?;
    let listener = server::listen(options.listen);
    let listener = listener.map_err(cannot(&format!("listen at {}", options.listen)))?;
    let address = listener.local_addr().map_err(cannot("listen"))?;
    let prometheus = record()?;
    let presence = match options.replicas {
        Some(_) => Presence::Shared,
        None => Presence::Alone,
    };
    let store = Store::open(&options.database, presence)?;
    let api = Arc::new(assemble(&options, store, prometheus)?);
    let dispatcher = Arc::clone(&api.dispatcher);
    let replica = match &options.replicas {
        Some(replicas) => Some(replicas::join(replicas, options.grace, &dispatcher).await?),
        None => None,
    };
    // Clients that connect now wait until everything that is owed has been read.
    let owed = dispatcher
        .resume()
        .await
        .map_err(cannot("read what is owed"))?;
    announce(address, owed);

    let (stop, ended) = (CancellationToken::new(), CancellationToken::new());
    let running = Running {
        crew: tokio::spawn({
            let (workers, stop, ended) = (options.workers.get(), stop.clone(), ended.clone());
            async move {
                let _ended = ended.drop_guard();
                match replica {
                    Some(replica) => replica.employ(dispatcher, workers, stop).await,
                    None => {
                        dispatcher.employ(workers).await;
                        Ok(())
                    }
                }
            }
        }),
        served: tokio::spawn({
            let api = Arc::clone(&api);
            let answer = move |local, request| {
                let api = Arc::clone(&api);
                async move { api.answer(local, request).await }
            };
            server::serve(listener, options.limits, stop.clone(), answer)
        }),
        looking: tokio::spawn({
            let stats = Arc::clone(&api.stats);
            async move { stats.look_on().await }
        }),
    };
    tokio::select! {
        () = signals.next() => say("stopping; once more to stop at once"),
        // Without a signal this is a failure.
        () = ended.cancelled() => {}
    }
    tokio::select! {
        ended = wind_down(&api, running, &stop, options.grace) => ended,
        () = signals.next() => std::process::exit(EXIT_INTERRUPTED),
    }
}

/// Forgets the fences of a database that no process has open.
pub(crate) async fn reset_fences(database: Database) -> Result<(), String> {
    let store = Store::open(&database, Presence::Alone)?;
    let reset = store.reset_fences().await;
    store.close().await;
    let count = reset.map_err(cannot("reset the fences"))?;
    say(&format!("fences that were reset: {count}"));
    Ok(())
}

/// The tasks.
struct Running {
    crew: JoinHandle<Result<(), String>>,
    served: JoinHandle<()>,
    looking: JoinHandle<()>,
}

/// Installs the recorder of the figures.
fn record() -> Result<PrometheusHandle, String> {
    let builder = PrometheusBuilder::new().set_buckets(&DURATION_BUCKETS);
    let builder = builder.map_err(cannot("keep figures"))?;
    builder.install_recorder().map_err(cannot("keep figures"))
}

/// Assembles the parts. Figures go to the installed recorder.
pub(crate) fn assemble(
    options: &Options,
    store: Store,
    prometheus: PrometheusHandle,
) -> Result<Api, String> {
    let secret = options
        .secret_file
        .as_deref()
        .map(read_secret)
        .transpose()?;
    let waits = Arc::new(Waits::new().map_err(cannot("keep figures"))?);
    let queue: Queue = WorkQueue::builder()
        .backoff(options.pause, PAUSE_MAX)
        .no_retry_rate()
        .report_to(Figures::new(NamedMetrics::new("webhooks"), &waits))
        .build_with_groups(Key::group);
    let workers = options.workers.get();
    let shares = Shares::new(queue.clone(), workers, options.pause, PAUSE_MAX);
    let shares = Arc::new(shares);
    let tally = Arc::new(Tally::new());
    let stats = Stats {
        queue: queue.clone(),
        shares: Arc::clone(&shares),
        tally: Arc::clone(&tally),
        waits,
        prometheus,
        history: History::default(),
    };
    let dispatcher = Dispatcher {
        queue,
        store,
        shares,
        poster: Poster::new(options.allow_private, options.timeout, secret),
        tally,
        tries: options.tries.get(),
        pause: options.pause,
        allow_private: options.allow_private,
        subscribing: Mutex::new(()),
        paging: Mutex::new(()),
        doubt: Notify::new(),
        unfinished: Notify::new(),
        team: OnceLock::new(),
    };
    Ok(Api {
        dispatcher: Arc::new(dispatcher),
        stats: Arc::new(stats),
        hosts: Hosts(options.hosts.clone()),
    })
}

fn read_secret(path: &Path) -> Result<Secret, String> {
    let cannot = |why: &dyn Display| format!("cannot read {}: {why}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| cannot(&error))?;
    Secret::parse(text.trim()).map_err(|why| cannot(&why))
}

/// Tells a script where it listens, and a human what there is to do.
fn announce(address: SocketAddr, owed: usize) {
    // stdout may be closed.
    let mut out = std::io::stdout();
    let _ = writeln!(out, "listening on http://{address}");
    let _ = out.flush();
    if owed > 0 {
        say(&format!("deliveries owed from before: {owed}"));
    }
}

/// Takes no more requests, delivers what is ready until the grace is over, and leaves the rest to
/// the next start. Returns how the crew ended.
async fn wind_down(
    api: &Api,
    mut running: Running,
    stop: &CancellationToken,
    grace: Duration,
) -> Result<(), String> {
    let Dispatcher { queue, store, .. } = &*api.dispatcher;
    stop.cancel();
    api.stats.history.end();
    if api.dispatcher.team.get().is_none() && queue.drain_timeout(grace).await == Drained::Pending {
        // Deliveries under way are broken off. They stay owed.
        running.crew.abort();
    }
    // With a team, what is ready is the next owner's, at once.
    let ended = match timeout(grace, &mut running.crew).await {
        Ok(ended) => ended,
        Err(_) => {
            running.crew.abort();
            running.crew.await
        }
    };
    let _ = running.served.await;
    running.looking.abort();
    match store.owed_len(State::Pending).await {
        Ok(0) => {}
        Ok(left) => say(&format!("deliveries left for the next start: {left}")),
        Err(error) => say(&error.to_string()),
    }
    store.close().await;
    match ended {
        Ok(ended) => ended,
        Err(error) if error.is_panic() => Err(format!("the workers failed: {error}")),
        Err(_) => Ok(()),
    }
}

fn cannot<E: Display>(what: &str) -> impl FnOnce(E) -> String {
    move |error| format!("cannot {what}: {error}")
}
