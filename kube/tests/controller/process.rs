//! The controller of the simulation: it keeps a secret for each config map.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use requeue_kube::{Action, CancellationToken, Context, Controller, Leader, Workers};
use tokio::time::sleep;

use crate::leader::Watchdog;
use crate::seeds::Timeline;
use crate::{name_of, seconds, wanted};

/// A controller that is started again whenever it ends.
pub(crate) struct Process {
    pub(crate) client: Client,
    pub(crate) watchdog: Watchdog,
    pub(crate) timeline: Timeline,
    pub(crate) elects: bool,
}

impl Process {
    pub(crate) async fn run_for_ever(self, born: u64) {
        let mut starts = 0;
        loop {
            starts += 1;
            let who = format!("replica-{born}-{starts}");
            self.timeline.note(format!("{who} begins"));
            // The lease was lost, or nothing could be listed.
            let ended = self.run(&who).await;
            self.timeline.note(format!("{who} ends: {ended:?}"));
            sleep(seconds(1)).await;
        }
    }

    async fn run(&self, who: &str) -> Result<(), requeue_kube::Error> {
        let config = || watcher::Config::default().page_size(2);
        let maps = Api::<ConfigMap>::all(self.client.clone());
        let parts = Api::<Secret>::all(self.client.clone());
        let mut controller = Controller::new(maps, config())
            .owns(parts, config())
            .backoff(Duration::from_millis(5), seconds(20));
        if self.elects {
            let leader = Leader::lease(self.client.clone(), "default", "test").identity(who);
            controller = controller.leader(leader);
        }
        let api = Api::<Secret>::default_namespaced(self.client.clone());
        let (watchdog, timeline) = (self.watchdog.clone(), self.timeline.clone());
        let (who, elects) = (who.to_owned(), self.elects);
        let workers = Workers::new(2).on_error(|_, _, _| {});
        let run = controller.run(workers, CancellationToken::new(), move |map, context| {
            let (api, watchdog, who) = (api.clone(), watchdog.clone(), who.clone());
            let timeline = timeline.clone();
            async move {
                let _shift = elects.then(|| watchdog.begin(&who));
                let what = format!("{who}, {} wants {}", name_of(&map), wanted(&map));
                timeline.note(&what);
                let ended = reconcile(&map, &context, &api).await;
                timeline.note(format!("{what}: {ended:?}"));
                ended
            }
        });
        run.await.map(drop)
    }
}

/// A config map wants a secret with its name, and with its value as an annotation.
async fn reconcile(
    map: &Arc<ConfigMap>,
    _: &Context<ConfigMap>,
    api: &Api<Secret>,
) -> kube::Result<Action> {
    let (name, want) = (name_of(map), wanted(map));
    sleep(Duration::from_millis(want.len() as u64 * 50)).await;
    let annotations = BTreeMap::from([("want".to_owned(), want)]);
    match api.get_opt(&name).await? {
        None => {
            let metadata = ObjectMeta {
                name: Some(name),
                annotations: Some(annotations),
                owner_references: map.controller_owner_ref(&()).map(|owner| vec![owner]),
                ..ObjectMeta::default()
            };
            let part = Secret {
                metadata,
                ..Secret::default()
            };
            api.create(&PostParams::default(), &part).await?;
        }
        Some(part) if part.metadata.annotations.as_ref() == Some(&annotations) => {}
        Some(mut part) => {
            part.metadata.annotations = Some(annotations);
            part.metadata.managed_fields = None;
            api.patch(&name, &PatchParams::default(), &Patch::Merge(&part))
                .await?;
        }
    }
    Ok(Action::Success)
}
