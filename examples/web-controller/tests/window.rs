//! The window beside the probes: it says why a `Web` does not run.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, CustomResourceExt};
use metrics_exporter_prometheus::PrometheusBuilder;
use requeue_inspect::{Inspector, Registry};
use requeue_kube::{CancellationToken, Workers};
use requeue_kube_testing::{Cluster, Link};
use serde_json::{Value, from_value, json};
use tokio::time::sleep;
use tower::ServiceExt;
use web_controller::crd::Web;
use web_controller::reconcile::{Data, MANAGER, reconcile};
use web_controller::{controller, probes};

/// How the window names the web `hello`.
const HELLO: &str = "Web.v1.example.requeue.dev/hello.default";

/// Runs the controller of `main`, and returns what it serves.
fn start(client: Client) -> Router {
    let (controller, queue) = controller(&client).shared_queue();
    let health = controller.health();
    let window = Inspector::new("web", &queue);
    let data = Arc::new(Data::new(client, MANAGER.to_owned()));
    let workers = window.watch(Workers::new(2));
    tokio::spawn(
        controller.run(workers, CancellationToken::new(), move |web, _| {
            reconcile(web, Arc::clone(&data))
        }),
    );
    let metrics = PrometheusBuilder::new().build_recorder().handle();
    probes::router(health, metrics, Registry::new().with(window))
}

async fn get(router: &Router, path: &str) -> (StatusCode, String) {
    let request = Request::get(path).header("Host", "localhost");
    let answer = router
        .clone()
        .oneshot(request.body(Body::empty()).unwrap())
        .await
        .unwrap();
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.into()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn the_window_says_why_a_web_does_not_run() {
    let cluster = Cluster::new();
    cluster.install(&Web::crd()).unwrap();
    let webs: Api<Web> = Api::default_namespaced(cluster.client(&Link::named("person")));
    let web = json!({
        "apiVersion": "example.requeue.dev/v1", "kind": "Web",
        "metadata": {"name": "hello"}, "spec": {"page": "Hello!"},
    });
    let web: Web = from_value(web).unwrap();
    webs.create(&PostParams::default(), &web).await.unwrap();

    let link = Link::named("controller");
    let router = start(cluster.client(&link));
    sleep(Duration::from_secs(60)).await;
    assert_eq!(get(&router, "/readyz").await.0, StatusCode::OK);
    let key = format!("/window/api/queues/web/key?id={HELLO}");
    let (status, fine) = get(&router, &key).await;
    assert_eq!(status, StatusCode::OK, "{fine}");
    let fine: Value = serde_json::from_str(&fine).unwrap();
    let why = "Nothing asks for a run: it was not added since its last run.";
    assert_eq!(fine["key"]["why"], why);

    // From now on the API server answers each request with an error.
    link.errors(100);
    let page = Patch::Merge(json!({"spec": {"page": "Good bye!"}}));
    webs.patch("hello", &PatchParams::default(), &page)
        .await
        .unwrap();
    sleep(Duration::from_secs(60)).await;
    let (_, failing) = get(&router, &key).await;
    let failing: Value = serde_json::from_str(&failing).unwrap();
    let why = failing["key"]["why"].as_str().unwrap();
    assert!(why.starts_with("It backs off after 1"), "{why}");
    assert!(why.contains("It last failed with: failed to"), "{why}");

    let (status, page) = get(&router, &format!("/window/queues/web/key?id={HELLO}")).await;
    assert_eq!(status, StatusCode::OK);
    assert!(page.contains("It backs off after"), "{page}");
}
