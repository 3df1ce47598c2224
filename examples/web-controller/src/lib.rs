//! The controller of `README.md`, which keeps the parts of each `Web` as wanted. The program adds a
//! leader and serves the probes. Tests run the same controller.

pub mod crd;
mod parts;
pub mod probes;
pub mod reconcile;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::runtime::watcher;
use kube::{Api, Client};
use requeue_kube::Controller;

use crate::crd::Web;

/// The controller of all `Web`s of a cluster.
pub fn controller(client: &Client) -> Controller<Web> {
    let everything = watcher::Config::default;
    Controller::new(Api::<Web>::all(client.clone()), everything())
        .owns(Api::<Deployment>::all(client.clone()), everything())
        .owns(Api::<Service>::all(client.clone()), everything())
        .owns(Api::<ConfigMap>::all(client.clone()), everything())
        .named("web")
}
