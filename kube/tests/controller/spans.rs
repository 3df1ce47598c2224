//! What the spans of runs show as their key.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::reflector::ObjectRef;
use requeue_kube::{CancellationToken, Workers};
use tokio::time::sleep;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber};

use crate::noting::{Runs, note, with_maps};
use crate::{maps, seconds};

/// The keys of the spans of runs.
#[derive(Clone, Default)]
struct Keys(Arc<Mutex<Vec<String>>>);

impl Visit for Keys {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "key" {
            self.0.lock().unwrap().push(format!("{value:?}"));
        }
    }
}

impl Subscriber for Keys {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target() == "requeue"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn a_span_shows_the_object_or_what_the_user_says() {
    let keys = Keys::default();
    // While there is only one, what a thread of another test logs first counts as not wanted.
    let _another = Dispatch::new(Keys::default());
    let _recording = tracing::subscriber::set_default(keys.clone());

    let own =
        Workers::new(1).trace_keys(|key: &ObjectRef<ConfigMap>, f| write!(f, "<{}>", key.name));
    for workers in [Workers::new(1), own] {
        let (_cluster, client) = with_maps(&["a"]);
        let stop = CancellationToken::new();
        let run = maps(&client).run(workers, stop.clone(), note(&Runs::default()));
        let running = tokio::spawn(run);
        sleep(seconds(1)).await;
        stop.cancel();
        running.await.unwrap().unwrap();
    }
    let shown = keys.0.lock().unwrap().clone();
    assert_eq!(shown, ["ConfigMap.v1./a.default", "<a>"]);
}
