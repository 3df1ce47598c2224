//! Streams of others, fed into a queue of one's own.

use std::cell::Cell;
use std::convert::Infallible;
use std::pin::pin;
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
                Action::Success
            }
        }
    });
    let fed = async {
        let fed = timeout(seconds(1), feed(requests, &queue)).await;
        assert!(fed.is_err(), "the stream has not ended");
        queue.shut_down();
        // A queue that is shut down takes nothing more, so that the stream keeps it.
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
    assert_eq!(noted.take(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_shut_down_ends_a_feed_whose_stream_is_quiet() {
    let queue: Keys<ConfigMap> = WorkQueue::builder().levels::<2>().build();
    let requests = stream::iter(["a"]).map(|name| Ok::<_, Infallible>(key(name)));
    let mut fed = pin!(feed(requests.chain(stream::pending()), &queue));
    assert!(timeout(seconds(3600), fed.as_mut()).await.is_err());
    // The key that is ready, and that no worker takes, does not matter.
    queue.shut_down();
    let ended = timeout(seconds(3600), fed).await;
    assert!(ended.is_ok(), "the feed is still pending an hour later");
    assert_eq!(queue.try_get().unwrap().name, "a");
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_a_feed_whose_stream_is_quiet() {
    let queue: Keys<ConfigMap> = WorkQueue::builder().levels::<2>().build();
    let requests = stream::pending::<Result<ObjectRef<ConfigMap>, Infallible>>();
    let mut fed = pin!(feed(requests, &queue));
    assert!(timeout(seconds(1), fed.as_mut()).await.is_err());
    let (ended, drained) = futures::join!(timeout(seconds(3600), fed), queue.drain());
    assert!(ended.is_ok(), "the feed is still pending an hour later");
    assert_eq!(drained, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_shut_down_ends_a_feed_whose_stream_only_fails() {
    let queue: Keys<ConfigMap> = WorkQueue::builder().levels::<2>().build();
    let asked = Cell::new(0);
    let requests = stream::repeat_with(|| {
        asked.set(asked.get() + 1);
        if asked.get() == 100 {
            queue.shut_down();
        }
        assert!(asked.get() <= 100, "asked after the shutdown");
        Err::<ObjectRef<ConfigMap>, _>("failed")
    });
    feed(requests, &queue).await;
    assert_eq!(asked.get(), 100);
}

fn key(name: &str) -> ObjectRef<ConfigMap> {
    ObjectRef::new(name).within("default")
}

/// A queue with groups, without levels, and with another limiter.
#[tokio::test(start_paused = true)]
async fn a_queue_of_any_kind_can_be_fed() {
    let queue = WorkQueue::builder()
        .limiter(requeue::limiter::NoLimit)
        .build_with_groups(|key: &ObjectRef<ConfigMap>| key.namespace.clone());
    let requests = stream::iter(["a", "b"]).map(|name| Ok::<_, Infallible>(key(name)));
    feed(requests, &queue).await;
    assert_eq!(queue.len(), 2);
}
