//! The watch of a kind.

use std::fmt::Debug;

use futures::{Stream, StreamExt, stream};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

/// Watches a kind, with kube-runtime's backoff.
///
/// A watch says that a list begins before it asks for it, which the backoff takes for a success. So
/// that is held back until the list has brought something: the pauses between lists that fail grow,
/// and nothing looks well between two of them.
pub(crate) fn watch<K>(
    api: Api<K>,
    config: watcher::Config,
) -> impl Stream<Item = watcher::Result<Event<K>>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut begins = false;
    let events = watcher(api, config).flat_map(move |event| {
        let has_begun = std::mem::replace(&mut begins, matches!(event, Ok(Event::Init)));
        let event = (!begins).then_some(event);
        let brings = has_begun && matches!(event, Some(Ok(_)));
        let begin = brings.then_some(Ok(Event::Init));
        stream::iter(begin.into_iter().chain(event))
    });
    events.default_backoff()
}
