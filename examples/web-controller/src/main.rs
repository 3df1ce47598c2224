//! A controller for the kind `Web`: see `README.md`.
//!
//! `web-controller crd` prints the kind, `web-controller` runs the controller.

use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use kube::{Client, CustomResourceExt};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use requeue_inspect::{Inspector, Registry};
use requeue_kube::{DURATION_BUCKETS, Leader, RECONCILE_BUCKETS, Workers, shutdown_on_signal};
use tokio::net::TcpListener;
use web_controller::crd::Web;
use web_controller::reconcile::{Data, MANAGER, reconcile};
use web_controller::{controller, probes};

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    let ended = match env::args().nth(1).as_deref() {
        None => run().await,
        Some("crd") => print_crd(),
        Some(word) => Err(format!("unknown argument `{word}`: expected `crd` or none").into()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("web-controller: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print_crd() -> Result<(), Box<dyn Error>> {
    // JSON is YAML, which `kubectl apply` takes.
    println!("{}", serde_json::to_string_pretty(&Web::crd())?);
    Ok(())
}

async fn run() -> Result<(), Box<dyn Error>> {
    let metrics = PrometheusBuilder::new()
        .set_buckets_for_metric(
            Matcher::Prefix("controller_runtime".into()),
            &RECONCILE_BUCKETS,
        )?
        .set_buckets_for_metric(Matcher::Prefix("workqueue".into()), &DURATION_BUCKETS)?
        .install_recorder()?;
    let client = Client::try_default().await?;
    let variable = |name, default: &str| env::var(name).unwrap_or_else(|_| default.to_owned());
    let manager = variable("WEB_CONTROLLER_MANAGER", MANAGER);
    let namespace = variable("WEB_CONTROLLER_NAMESPACE", "default");
    // The lease in seconds. The other times are in proportion to client-go's 15 s, 10 s and 2 s.
    let lease = Duration::from_secs(variable("WEB_CONTROLLER_LEASE", "15").parse()?);

    let leader = Leader::lease(client.clone(), &namespace, MANAGER)
        .identity(format!("{manager}-{}", std::process::id()))
        .times(lease, lease * 2 / 3, lease * 2 / 15);
    let (controller, queue) = controller(&client)
        .resync(Duration::from_secs(10 * 3600))
        .leader(leader)
        .shared_queue();

    let stop = shutdown_on_signal()?;
    let health = controller.health();
    let data = Arc::new(Data::new(client, manager));
    let window = Inspector::new("web", &queue);
    let workers = window.watch(Workers::new(8).drain_timeout(Duration::from_secs(10)));
    let running = controller.run(workers, stop, move |web, _| {
        reconcile(web, Arc::clone(&data))
    });
    let address = variable("WEB_CONTROLLER_PROBES", "127.0.0.1:8081");
    let listener = TcpListener::bind(address).await?;
    let router = probes::router(health, metrics, Registry::new().with(window));

    tokio::select! {
        ended = running => {
            for left in ended? {
                eprintln!("left for the next leader: {}", left.key);
            }
            Ok(())
        }
        failed = axum::serve(listener, router) => Ok(failed?),
    }
}
