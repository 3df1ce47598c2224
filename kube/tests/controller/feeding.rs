//! Streams of others, fed into a queue of one's own.

use std::convert::Infallible;
use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::reflector::ObjectRef;
use requeue::tokio::WorkQueue;
use requeue_kube::{Action, Keys, feed};
use tokio::time::{sleep, timeout};

use crate::noting::Runs;
use crate::seconds;

#[tokio::test(start_paused = true)]
async fn a_queue_without_room_holds_a_stream_up_and_does_not_end_it() {
    let queue: Keys<ConfigMap> = WorkQueue::builder().levels::<2>().max_keys(1).build();
    let requests = stream::iter(["a", "b", "c"]).map(|name| Ok::<_, Infallible>(key(name)));
    let requests = requests.chain(stream::pending());
    let (runs, noted) = (Runs::default(), Runs::default());
    let run = queue.run(1, {
        let noted = runs.clone();
        move |key: ObjectRef<ConfigMap>| {
            noted.push(key.name);
            async {
                sleep(Duration::from_millis(100)).await;
                Ok::<_, Infallible>(Action::Success)
            }
        }
    });
    let fed = async {
        let fed = timeout(seconds(1), feed(requests, &queue)).await;
        assert!(fed.is_err(), "the stream has not ended");
        queue.shut_down();
        // A queue that is shut down takes nothing more.
        let more = stream::iter(["d", "e"]).map(|name| Ok::<_, Infallible>(key(name)));
        feed(
            more.inspect(|_| noted.push("asked"))
                .chain(stream::pending()),
            &queue,
        )
        .await;
    };
    futures::join!(run, fed);
    assert_eq!(runs.take(), ["a", "b", "c"]);
    assert_eq!(noted.take(), ["asked"]);
}

fn key(name: &str) -> ObjectRef<ConfigMap> {
    ObjectRef::new(name).within("default")
}
