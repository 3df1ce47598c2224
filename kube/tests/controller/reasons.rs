//! Why an object runs: what the context, the span and the links of the span say.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use requeue_kube::{Action, CancellationToken, Cause, Context, Reason, Reasons, Workers};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Subscriber};
use tracing_subscriber::layer::{self, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, registry};

use crate::noting::{Noting, Runs, with_maps};
use crate::watches::part_of;
use crate::{map, maps, seconds};

/// Each run notes its reasons, and ends as the value of the map says.
async fn reconcile(map: Arc<ConfigMap>, run: Context<ConfigMap>, runs: Runs) -> Result<Action, ()> {
    runs.push(format!("{} {}", run.changed, run.reasons));
    sleep(seconds(1)).await;
    match crate::wanted(&map).as_str() {
        "fail" => Err(()),
        "panic" => panic!("as asked"),
        "again" => Ok(Action::RequeueAfter(seconds(100))),
        _ => Ok(Action::Success),
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_knows_which_events_of_which_objects_made_it_run() {
    let (cluster, client) = with_maps(&["a"]);
    let (runs, stop) = (Runs::default(), CancellationToken::new());
    let (named, mut names) = mpsc::unbounded_channel::<ObjectRef<ConfigMap>>();
    let names = futures::stream::poll_fn(move |context| names.poll_recv(context));
    let (all, mut alls) = mpsc::unbounded_channel::<()>();
    let alls = futures::stream::poll_fn(move |context| alls.poll_recv(context));
    let secrets = Api::<Secret>::all(client.clone());
    let controller = maps(&client)
        .owns(secrets, watcher::Config::default())
        .reconcile_on(names)
        .reconcile_all_on(alls)
        .backoff(seconds(10), seconds(10));
    let noted = runs.clone();
    let workers = Workers::new(1).on_error(|_, _, _| {});
    let run = controller.run(workers, stop.clone(), move |map, run| {
        reconcile(map, run, noted.clone())
    });
    let running = tokio::spawn(run);
    let pause = || sleep(seconds(5));
    pause().await;
    assert_eq!(runs.take(), ["false listed"]);

    cluster.put("configmaps", map("a", "2"));
    pause().await;
    assert_eq!(runs.take(), ["true applied configmaps default/a"]);

    // While it runs, other things happen, some twice: they make one run.
    named.send(ObjectRef::new("a").within("default")).unwrap();
    sleep(std::time::Duration::from_millis(500)).await;
    for turn in ["3", "4"] {
        cluster.put("configmaps", map("a", turn));
        cluster.put("secrets", part_of(&cluster, "a"));
    }
    cluster.delete("secrets", "part");
    all.send(()).unwrap();
    pause().await;
    let mut ran = runs.take();
    assert_eq!(ran.remove(0), "true requested");
    let mut reasons: Vec<&str> = ran[0].strip_prefix("true ").unwrap().split(", ").collect();
    reasons.sort_unstable();
    let expected = [
        "applied configmaps default/a",
        "applied secrets default/part",
        "deleted secrets default/part",
        "resync",
    ];
    assert_eq!((ran.len(), reasons), (1, expected.to_vec()));

    // A retry has the reasons of the run that failed, and so has one after a panic.
    let (applied, again) = (
        "true applied configmaps default/a",
        "true applied configmaps default/a, retry",
    );
    cluster.put("configmaps", map("a", "fail"));
    sleep(seconds(13)).await;
    assert_eq!(runs.take(), [applied, again]);
    cluster.put("configmaps", map("a", "panic"));
    sleep(seconds(3)).await;
    all.send(()).unwrap();
    sleep(seconds(3)).await;
    assert_eq!(runs.take(), [again, &format!("{again}, resync")]);

    // Once it has succeeded, only what comes after that counts.
    cluster.put("configmaps", map("a", "again"));
    sleep(seconds(150)).await;
    assert_eq!(runs.take(), [&format!("{again}, resync"), "false requeue"]);
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[test]
fn more_reasons_than_are_kept_are_counted() {
    let of = |number: u32| Reason::new(Cause::Applied, "secrets", format!("s{number}"));
    let reasons: Reasons = (0..10).map(of).chain([of(3)]).collect();
    assert_eq!((reasons.iter().count(), reasons.omitted()), (8, 2));
    assert!(
        reasons
            .to_string()
            .ends_with("applied secrets s7, and 2 more")
    );
    let mut requeued = Reasons::default();
    requeued.push(Cause::Resync.into());
    assert!(!requeued.has_change());
}

#[tokio::test(start_paused = true)]
async fn a_context_can_be_made_for_a_unit_test() {
    let mut run = Context::new(ObjectRef::new("a").within("default"));
    run.reasons
        .push(Reason::new(Cause::Deleted, "secrets", "default/part"));
    run.attempt = 2;
    let map = ConfigMap {
        data: Some([("want".to_owned(), "again".to_owned())].into()),
        ..ConfigMap::default()
    };
    let runs = Runs::default();
    let ended = reconcile(Arc::new(map), run, runs.clone()).await;
    assert_eq!(ended, Ok(Action::RequeueAfter(seconds(100))));
    assert_eq!(runs.take(), ["false deleted secrets default/part"]);
}

/// The spans of the library, and which follows from which.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<String>>>);

impl Spans {
    fn push(&self, shown: String) {
        self.0.lock().unwrap().push(shown);
    }
}

struct Shown<'s>(&'s Spans, &'static str);

impl Visit for Shown<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0
            .push(format!("{} {}={value:?}", self.1, field.name()));
    }
}

impl<S: Subscriber + for<'s> LookupSpan<'s>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: layer::Context<'_, S>) {
        attributes.record(&mut Shown(self, attributes.metadata().name()));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: layer::Context<'_, S>) {
        let name = context.metadata(id).unwrap().name();
        values.record(&mut Shown(self, name));
    }

    fn on_follows_from(&self, id: &Id, from: &Id, context: layer::Context<'_, S>) {
        let [id, from] = [id, from].map(|id| context.metadata(id).unwrap().name());
        self.push(format!("{id} follows from {from}"));
    }
}

#[tokio::test(start_paused = true)]
async fn the_span_of_a_run_shows_its_reasons_and_follows_from_the_change() {
    let spans = Spans::default();
    // While there is only one, what a thread of another test logs first counts as not wanted.
    let _another = Dispatch::new(registry());
    let _recording = registry().with(spans.clone()).set_default();
    let (cluster, client) = with_maps(&["a"]);
    let noting = Noting::start(maps(&client));
    sleep(seconds(1)).await;
    spans.0.lock().unwrap().clear();
    cluster.put("configmaps", map("a", "2"));
    sleep(seconds(1)).await;
    let shown = spans.0.lock().unwrap().clone();
    for expected in [
        "changed cause=applied",
        "changed kind=configmaps",
        "changed object=default/a",
        "reconcile reasons=applied configmaps default/a",
        "reconcile follows from changed",
    ] {
        assert!(
            shown.iter().any(|shown| shown == expected),
            "{expected}: {shown:?}"
        );
    }
    noting.stop().await;
}
