//! One run of the program: database, queue, workers, server and signals, put together.

use std::fmt::Display;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Body;
use axum::middleware::map_response;
use axum::response::Response;
use futures_util::StreamExt;
use metrics::describe_counter;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use requeue::tokio::metrics::{DURATION_BUCKETS, NamedMetrics};
use requeue::tokio::{CancellationToken, WorkQueue};
use requeue_inspect::{Inspector, Registry};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, Notify};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{sleep, timeout};

use crate::api::{self, Api};
use crate::args::Options;
use crate::dispatch::{DELIVERIES, Dispatcher, Queue};
use crate::key::Key;
use crate::origin::Host;
use crate::post::Poster;
use crate::replicas::{self, Replica};
use crate::say;
use crate::server;
use crate::shares::Shares;
use crate::sign::Secret;
use crate::signals::Signals;
use crate::store::{Database, Presence, State, Store};

/// The longest pause of a key that fails, and of a host that does not answer.
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// How long each step of the end may take after the grace: to end the workers and the connections,
/// to ask the database what is left, and to close it.
const STEP_MAX: Duration = Duration::from_secs(5);

/// How often durations are added up that nobody has asked for.
const UPKEEP: Duration = Duration::from_secs(5);

/// What a shell reports of a program that Ctrl-C ended.
const EXIT_INTERRUPTED: i32 = 130;

/// Serves until a signal stops it. The error, one line for the user, says why it could not begin or
/// go on.
pub(crate) async fn run(options: Options) -> Result<(), String> {
    let mut signals = Signals::new().map_err(cannot("listen for signals"))?;
    let started = tokio::select! {
        biased;
        started = start(&options) => started?,
        // A database that hangs does not hold it up. Nothing was taken on yet, but perhaps shards,
        // which are free after the TTL.
        () = signals.next() => return Ok(()),
    };
    let Started {
        listener,
        api,
        replica,
    } = started;
    let dispatcher = Arc::clone(&api.dispatcher);
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
            let router = api::router(Arc::clone(&api), window(&api, stop.clone()));
            server::serve(listener, options.limits, stop.clone(), router)
        }),
        upkeep: tokio::spawn({
            let prometheus = api.prometheus.clone();
            async move {
                loop {
                    sleep(UPKEEP).await;
                    prometheus.run_upkeep();
                }
            }
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

/// Returns the window on the queue. It only looks: groups are paused, and their limits set, by
/// [`Shares`]. A page that is open does not hold up the stop.
fn window(api: &Api, stop: CancellationToken) -> axum::Router {
    let mut registry = Registry::new().with(api.dispatcher.inspector.clone());
    for Host(name) in &api.hosts {
        registry = registry.allow_host(name);
    }
    registry.router().layer(map_response(move |page: Response| {
        let stop = stop.clone();
        async move {
            let until_stop =
                |body: Body| body.into_data_stream().take_until(stop.cancelled_owned());
            page.map(|body| Body::from_stream(until_stop(body)))
        }
    }))
}

/// What a run begins with.
struct Started {
    listener: TcpListener,
    api: Arc<Api>,
    replica: Option<Replica>,
}

/// Opens the database, joins the replicas, and reads what is owed.
async fn start(options: &Options) -> Result<Started, String> {
    let listener = server::listen(options.listen);
    let listener = listener.map_err(cannot(&format!("listen at {}", options.listen)))?;
    let address = listener.local_addr().map_err(cannot("listen"))?;
    let prometheus = record()?;
    let presence = match options.replicas.is_one() {
        true => Presence::Shared,
        false => Presence::Alone,
    };
    let database = options.database.clone();
    let store = spawn_blocking(move || Store::open(&database, presence)).await;
    let store = store.map_err(cannot("open the database"))??;
    let api = Arc::new(assemble(options, store, prometheus)?);
    let dispatcher = &api.dispatcher;
    let replica = match &options.replicas {
        own if own.is_one() => Some(replicas::join(own, options.grace, dispatcher).await?),
        _ => None,
    };
    // Clients that connect now wait until everything that is owed has been read.
    let owed = dispatcher
        .resume()
        .await
        .map_err(cannot("read what is owed"))?;
    announce(address, owed);
    Ok(Started {
        listener,
        api,
        replica,
    })
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
    upkeep: JoinHandle<()>,
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
    let queue: Queue = WorkQueue::builder()
        .backoff(options.pause, PAUSE_MAX)
        .no_retry_rate()
        .report_to(NamedMetrics::new("webhooks"))
        .build_with_groups(Key::group);
    let workers = options.workers.get();
    let shares = Shares::new(queue.clone(), workers, options.pause, PAUSE_MAX);
    let shares = Arc::new(shares);
    describe_counter!(DELIVERIES, "Deliveries that were tried, by their outcome");
    let poster = Poster::new(options.allow_private, options.timeout, secret);
    let dispatcher = Dispatcher {
        inspector: Inspector::new("webhooks", &queue).with_groups().parse_ids(),
        queue,
        store,
        shares,
        poster: poster.map_err(cannot("make a client"))?,
        tries: options.tries.get(),
        pause: options.pause,
        allow_private: options.allow_private,
        subscribing: Mutex::new(()),
        doubt: Notify::new(),
        team: OnceLock::new(),
    };
    Ok(Api {
        dispatcher: Arc::new(dispatcher),
        prometheus,
        hosts: options.hosts.clone(),
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
///
/// Ends at most three times [`STEP_MAX`] after the grace, also if the database or etcd hangs.
async fn wind_down(
    api: &Api,
    running: Running,
    stop: &CancellationToken,
    grace: Duration,
) -> Result<(), String> {
    let Dispatcher { queue, store, .. } = &*api.dispatcher;
    let Running {
        mut crew,
        served,
        upkeep,
    } = running;
    stop.cancel();
    let is_alone = api.dispatcher.team.get().is_none();
    let deliver = async {
        if is_alone && timeout(grace, queue.drain()).await.is_err() {
            // Deliveries under way are broken off. They stay owed.
            crew.abort();
        }
        // With a team, what is ready is the next owner's, at once.
        (&mut crew).await
    };
    let limit = grace.saturating_add(STEP_MAX);
    let (ended, _) = tokio::join!(timeout(limit, deliver), timeout(limit, served));
    if ended.is_err() {
        say("the workers did not end in time");
        crew.abort();
    }
    upkeep.abort();
    match timeout(STEP_MAX, store.owed_len(State::Pending)).await {
        Ok(Ok(0)) => {}
        Ok(Ok(left)) => say(&format!("deliveries left for the next start: {left}")),
        Ok(Err(error)) => say(&error.to_string()),
        Err(_) => say("the database did not answer: what is left is found by the next start"),
    }
    let _ = timeout(STEP_MAX, store.close()).await;
    match ended {
        Ok(Ok(ended)) => ended,
        Ok(Err(error)) if error.is_panic() => Err(format!("the workers failed: {error}")),
        Ok(Err(_)) | Err(_) => Ok(()),
    }
}

fn cannot<E: Display>(what: &str) -> impl FnOnce(E) -> String {
    move |error| format!("cannot {what}: {error}")
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::Instant;

    use super::*;
    use crate::store::faults::silent;

    /// As README and `--help` say.
    const END_MAX: Duration = Duration::from_secs(15);

    #[tokio::test(start_paused = true)]
    async fn it_ends_although_nothing_else_does() {
        let grace = Duration::from_secs(7);
        let (store, _inbox) = silent();
        let prometheus = PrometheusBuilder::new().build_recorder().handle();
        let api = assemble(&Options::default(), store, prometheus).unwrap();
        // A run that does not end.
        api.dispatcher.queue.add(Key::new("s", "o")).unwrap();
        let _guard = api.dispatcher.queue.get().await.unwrap();
        let running = Running {
            crew: tokio::spawn(pending()),
            served: tokio::spawn(pending()),
            upkeep: tokio::spawn(pending()),
        };
        let (begun, stop) = (Instant::now(), CancellationToken::new());
        let ended = wind_down(&api, running, &stop, grace);
        let ended = timeout(Duration::from_secs(3600), ended).await;
        assert_eq!(ended, Ok(Ok(())));
        assert!(begun.elapsed() >= grace);
        assert!(begun.elapsed() <= grace + END_MAX, "{:?}", begun.elapsed());
    }
}
