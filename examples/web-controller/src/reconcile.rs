//! Applies the parts of a `Web`, or cleans them up.

use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::runtime::events::{Event as Notice, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{self as finalizers, Event};
use kube::{Api, Client, Resource, ResourceExt};
use requeue_kube::{Action, finalizer, record_writes};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::crd::Web;
use crate::parts;

/// The name under which the controller writes: field manager, reporter of events, finalizer.
pub const MANAGER: &str = "web-controller";
const FINALIZER: &str = "example.requeue.dev/web-controller";

/// The data that every run needs.
pub struct Data {
    client: Client,
    recorder: Recorder,
    /// The field manager. A test gives each process its own, to see who wrote.
    manager: String,
}

impl Data {
    /// The data of a process that writes with this field manager. An object does not run again
    /// before the controller has seen the writes of its last run.
    pub fn new(client: Client, manager: String) -> Self {
        let client = record_writes(client);
        let recorder = Recorder::new(client.clone(), Reporter::from(MANAGER));
        Self {
            client,
            recorder,
            manager,
        }
    }

    fn patch(&self) -> PatchParams {
        PatchParams::apply(&self.manager).force()
    }
}

/// One run for one object.
///
/// # Errors
///
/// The API server refused a request, or could not be reached. The object runs again later.
pub async fn reconcile(
    web: Arc<Web>,
    data: Arc<Data>,
) -> Result<Action, finalizers::Error<kube::Error>> {
    let webs = api::<Web>(&web, &data);
    finalizer(&webs, FINALIZER, web, async |event| match event {
        Event::Apply(web) => apply(&web, &data).await,
        Event::Cleanup(web) => clean_up(&web, &data).await,
    })
    .await
}

async fn apply(web: &Web, data: &Data) -> Result<Action, kube::Error> {
    write(
        web,
        data,
        &parts::config_map(web).map_err(kube::Error::SerdeError)?,
    )
    .await?;
    write(
        web,
        data,
        &parts::service(web).map_err(kube::Error::SerdeError)?,
    )
    .await?;
    let deployment = write(
        web,
        data,
        &parts::deployment(web).map_err(kube::Error::SerdeError)?,
    )
    .await?;

    let generation = web.metadata.generation.unwrap_or_default();
    let ready = deployment.status.and_then(|status| status.ready_replicas);
    let status = json!({
        "apiVersion": Web::api_version(&()),
        "kind": Web::kind(&()),
        "metadata": {"name": web.name_any()},
        "status": {"observedGeneration": generation, "readyReplicas": ready.unwrap_or(0)},
    });
    let webs = api::<Web>(web, data);
    webs.patch_status(&web.name_any(), &data.patch(), &Patch::Apply(&status))
        .await?;

    let seen = web.status.as_ref().map(|status| status.observed_generation);
    if seen != Some(generation) {
        let note = format!("The parts are those of generation {generation}");
        tell(web, data, "Applied", &note).await;
    }
    Ok(Action::Success)
}

/// Deletes the parts in an order in which no visitor sees an empty page: first the address, then
/// the pods, then the page. A cluster's garbage collection would delete them in any order.
async fn clean_up(web: &Web, data: &Data) -> Result<Action, kube::Error> {
    delete::<Service>(web, data).await?;
    delete::<Deployment>(web, data).await?;
    delete::<ConfigMap>(web, data).await?;
    tell(web, data, "Removed", "The parts were deleted").await;
    Ok(Action::Success)
}

async fn write<T>(web: &Web, data: &Data, part: &T) -> Result<T, kube::Error>
where
    T: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    T: Clone + Debug + DeserializeOwned + Serialize,
{
    let api = api::<T>(web, data);
    api.patch(&part.name_any(), &data.patch(), &Patch::Apply(part))
        .await
}

async fn delete<T>(web: &Web, data: &Data) -> Result<(), kube::Error>
where
    T: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    T: Clone + Debug + DeserializeOwned,
{
    let api = api::<T>(web, data);
    match api.delete(&web.name_any(), &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        deleted => deleted.map(drop),
    }
}

/// Publishes an event. Events are for people, so a run does not fail because of one.
async fn tell(web: &Web, data: &Data, reason: &str, note: &str) {
    let notice = Notice {
        type_: EventType::Normal,
        reason: reason.to_owned(),
        note: Some(note.to_owned()),
        action: String::from("Reconcile"),
        secondary: None,
    };
    let told = data.recorder.publish(&notice, &web.object_ref(&())).await;
    if let Err(error) = told {
        eprintln!("no event for {}: {error}", web.name_any());
    }
}

fn api<T>(web: &Web, data: &Data) -> Api<T>
where
    T: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    let namespace = web.namespace().unwrap_or_default();
    Api::namespaced(data.client.clone(), &namespace)
}
