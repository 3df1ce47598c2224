//! One queue under inspection: what it answers, and what it is told to do. Owns the way from an id
//! to its key; what a queue does is core's.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::fmt::{self, Display, Write as _};
use std::hash::Hash;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use requeue_core::binding::{AsShared, Host, Shared};
use requeue_core::priority::{Grouped, Rates};
use requeue_core::{DeadKeys, GroupLimits, GroupState, Instant, KeyState, Workers};

use crate::history::History;
use crate::text::{displays, id, millis};
use crate::view::{
    Command, DeadKeyView, EndView, GroupPage, GroupView, KeyDetail, KeyPage, KeyPhase, KeyQuery,
    KeyView, Limits, QueueView, Rate, RunView, Sort,
};
use crate::why::{Facts, findings, sentence};

/// How many keys a list may skip and return.
const OFFSET_MAX: usize = 10_000;
const LIMIT_MAX: usize = 200;
/// How many groups are looked at for the findings.
const GROUPS_MAX: usize = 1_000;
/// How many ids are remembered with their keys.
const FOUND_MAX: usize = 16;

/// A queue that can be looked at and steered without knowing the type of its keys.
///
/// Every method takes the queue's lock for a bounded time, as a
/// [snapshot](requeue_core::binding::Shared::snapshot) does, however many keys the queue has. Keys
/// are named by their ids: the text that they display.
///
/// [`Inspector`] implements it. The trait is dyn-compatible, so a [`Registry`](crate::Registry)
/// holds queues of different keys.
///
/// # Examples
///
/// ```
/// use requeue::std::WorkQueue;
/// use requeue_inspect::{Inspect, Inspector};
///
/// let (pods, nodes) = (WorkQueue::<String>::new(), WorkQueue::<u32>::new());
/// let queues: [Box<dyn Inspect>; 2] =
///     [Box::new(Inspector::new("pods", &pods)), Box::new(Inspector::new("nodes", &nodes))];
/// nodes.add(7).unwrap();
/// let ready: Vec<usize> = queues.iter().map(|queue| queue.view().ready).collect();
/// assert_eq!(ready, [0, 1]);
/// ```
pub trait Inspect: Send + Sync {
    /// Returns the name of the queue in its registry.
    fn name(&self) -> &str;

    /// Returns the counts of the queue, the figures of its runs, and what keeps its keys from
    /// running. O(workers), and O(1) for each of at most 1,000 groups.
    fn view(&self) -> QueueView;

    /// Returns some of the keys. O(`offset + limit`) without a search, a filter or an order; else
    /// O(n) in the keys, with memory for `offset + limit` of them.
    fn keys(&self, query: &KeyQuery) -> KeyPage;

    /// Returns all that is known of a key. `None` if neither the queue, its history nor its dead
    /// keys have it. O(n) in the keys for the first call of an id, unless
    /// [`parse_ids`](Inspector::parse_ids) was called.
    fn key(&self, id: &str) -> Option<KeyDetail>;

    /// Returns the runs in progress, the oldest first, at most `limit`. Empty if no workers are
    /// [watched](Inspector::watch). O(w log w) in the workers.
    fn runs(&self, limit: usize) -> Vec<RunView>;

    /// Returns the runs that ended last, the latest first, at most `limit`. O(`limit`).
    fn ends(&self, limit: usize) -> Vec<EndView>;

    /// Returns the dead keys, the oldest first, at most `limit`. O(`limit`).
    fn dead_keys(&self, limit: usize) -> Vec<DeadKeyView>;

    /// Returns the groups with the longest backlogs, at most `limit`. O(g) in the groups, with memory
    /// for `limit` of them.
    fn groups(&self, limit: usize) -> GroupPage;

    /// Does something to the queue. Returns a sentence that says what was done. Costs as finding
    /// the key or group, and as the method of the queue.
    ///
    /// # Errors
    ///
    /// [`ControlError`] if nothing was done.
    fn control(&self, command: &Command) -> Result<String, ControlError>;
}

/// Why a [`Command`] changed nothing.
///
/// # Examples
///
/// ```
/// use requeue::std::WorkQueue;
/// use requeue_inspect::{Command, ControlError, Inspect, Inspector};
///
/// let inspector = Inspector::new("pods", &WorkQueue::<String>::new());
/// let refused = inspector.control(&Command::SetWorkers { workers: 4 });
/// assert_eq!(refused, Err(ControlError::NoWorkers));
/// assert_eq!(refused.unwrap_err().to_string(), "the workers of this queue are not watched");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControlError {
    /// The queue does not have the key.
    NoKey,
    /// The key is not delayed.
    NotDelayed,
    /// The key is not among the dead keys.
    NotDead,
    /// The queue has no such group.
    NoGroup,
    /// No workers are watched, so that their number is not known.
    NoWorkers,
    /// Several `run`s work on the queue, each with a number of its own.
    ManyRuns,
    /// The queue refused the key, for this reason.
    Rejected(String),
}

impl Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoKey => "the queue does not have this key",
            Self::NotDelayed => "this key is not delayed",
            Self::NotDead => "this key is not among the dead keys",
            Self::NoGroup => "the queue has no such group",
            Self::NoWorkers => "the workers of this queue are not watched",
            Self::ManyRuns => "several runs work on this queue: set their numbers in the program",
            Self::Rejected(why) => return write!(f, "the queue refused the key: {why}"),
        })
    }
}

impl std::error::Error for ControlError {}

type Key<Q> = <<Q as AsShared>::Host as Host>::Key;
type Parse<K> = fn(&str) -> Option<K>;
type Found<K> = VecDeque<(String, K)>;
type Named<Q> = <<Q as AsShared>::Host as Host>::Priorities;

/// Makes a queue inspectable: its name, and what it has beside its keys. Clones are handles to the
/// same.
///
/// Costs nothing unless somebody looks, except for [`watch`](Self::watch): that takes a lock and reads
/// the clock when a run begins and when it ends, and clones the key once: about a microsecond a run.
///
/// # Examples
///
/// ```
/// use requeue::tokio::{WorkQueue, Workers};
/// use requeue_inspect::{Inspect, Inspector};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let queue: WorkQueue<String> = WorkQueue::new();
/// let pods = Inspector::new("pods", &queue);
/// queue.add("web-1".to_owned()).unwrap();
/// let key = pods.key("web-1").unwrap().key;
/// assert_eq!(key.why, "It waits for a worker, and is next.");
///
/// queue.shut_down();
/// let workers = pods.watch(Workers::new(4));
/// queue.run(workers, |_| async { Err::<(), _>("no route") }).await;
/// assert_eq!(pods.ends(10)[0].error.as_deref(), Some("no route"));
/// # }
/// ```
pub struct Inspector<Q: AsShared> {
    name: Arc<str>,
    queue: Q,
    history: Arc<History<Key<Q>>>,
    parse: Option<Parse<Key<Q>>>,
    groups: Option<GroupCalls<Q>>,
    dead: Option<Arc<dyn Dead<Q>>>,
    /// The ids that were looked for last. The page of a key asks for it every second.
    found: Arc<Mutex<Found<Key<Q>>>>,
}

impl<Q: AsShared + Clone> Clone for Inspector<Q> {
    fn clone(&self) -> Self {
        Self {
            name: Arc::clone(&self.name),
            queue: self.queue.clone(),
            history: Arc::clone(&self.history),
            parse: self.parse,
            groups: self.groups,
            dead: self.dead.clone(),
            found: Arc::clone(&self.found),
        }
    }
}

impl<Q: AsShared> fmt::Debug for Inspector<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspector")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

type Groups<'q> = Box<dyn Iterator<Item = GroupView> + 'q>;

/// The calls of a queue with groups, whose names are of any type.
struct GroupCalls<Q: AsShared> {
    name_of: fn(&Q, &Key<Q>) -> String,
    state_of: fn(&Q, &Key<Q>) -> Option<GroupState>,
    all: for<'q> fn(&'q Q) -> Groups<'q>,
    pause: fn(&Q, &str) -> Result<(), ControlError>,
    unpause: fn(&Q, &str) -> Result<(), ControlError>,
    limit: fn(&Q, &str, GroupLimits) -> Result<(), ControlError>,
}

impl<Q: AsShared> Clone for GroupCalls<Q> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Q: AsShared> Copy for GroupCalls<Q> {}

/// A list of dead keys, whatever is known of each.
trait Dead<Q: AsShared>: Send + Sync {
    fn len(&self) -> usize;
    fn list(&self, limit: usize) -> Vec<(Key<Q>, String)>;
    /// The first key that is wanted, and why it was given up. Copies no other.
    fn find(&self, is_wanted: &dyn Fn(&Key<Q>) -> bool) -> Option<(Key<Q>, String)>;
    fn retry(&self, key: &Key<Q>, queue: &Q) -> Result<(), ControlError>;
    fn remove(&self, key: &Key<Q>) -> bool;
}

impl<Q, W> Dead<Q> for DeadKeys<Key<Q>, W>
where
    Q: AsShared,
    Key<Q>: Clone + Send + Sync,
    W: Display + Send + Sync,
{
    fn len(&self) -> usize {
        self.len()
    }

    fn list(&self, limit: usize) -> Vec<(Key<Q>, String)> {
        self.map(limit, |key, why| (key.clone(), id(why)))
    }

    fn find(&self, is_wanted: &dyn Fn(&Key<Q>) -> bool) -> Option<(Key<Q>, String)> {
        let mut found = None;
        self.map(usize::MAX, |key, why| {
            if found.is_none() && is_wanted(key) {
                found = Some((key.clone(), id(why)));
            }
        });
        found
    }

    fn retry(&self, key: &Key<Q>, queue: &Q) -> Result<(), ControlError> {
        match self.retry(key, queue.as_shared()) {
            None => Err(ControlError::NotDead),
            Some(Err(rejected)) => Err(ControlError::Rejected(rejected.to_string())),
            Some(Ok(_)) => Ok(()),
        }
    }

    fn remove(&self, key: &Key<Q>) -> bool {
        self.remove(key).is_some()
    }
}

impl<Q> Inspector<Q>
where
    Q: AsShared + Clone + Send + Sync + 'static,
    Key<Q>: Clone + Display + Send + Sync + 'static,
{
    /// Creates an inspector of a queue, which keeps the last 500 runs that failed and the last 500
    /// that did not. O(1).
    pub fn new(name: impl Into<String>, queue: &Q) -> Self {
        Self {
            name: name.into().into(),
            queue: queue.clone(),
            history: Arc::new(History::new(500)),
            parse: None,
            groups: None,
            dead: None,
            found: Arc::default(),
        }
    }

    /// Sets how many runs are kept that failed, and how many that did not. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::std::{WorkQueue, Workers};
    /// use requeue_inspect::{Inspect, Inspector};
    ///
    /// let queue = WorkQueue::new();
    /// let nodes = Inspector::new("nodes", &queue).keep_ends(3);
    /// let _ = queue.add_many(1..=9);
    /// queue.shut_down();
    /// queue.run(nodes.watch(Workers::new(1)), |_| {});
    /// let last = nodes.ends(10);
    /// assert!(last.iter().map(|end| &*end.id).eq(["9", "8", "7"]));
    /// ```
    pub fn keep_ends(self, ends: usize) -> Self {
        self.history.set_capacity(ends);
        self
    }

    /// Lets the inspector see the runs of these workers, and set their number. Call it after
    /// [`concurrency`](Workers::concurrency). O(1).
    ///
    /// The type of [`Inspector`] has an example.
    pub fn watch<'w, E: Display>(
        &self,
        workers: impl Into<Workers<'w, Key<Q>, E>>,
    ) -> Workers<'w, Key<Q>, E> {
        let workers = workers.into();
        self.history.watch(workers.wanted());
        let (history, queue) = (Arc::clone(&self.history), self.queue.clone());
        workers.on_event(move |key, event| history.note(key, event, queue.as_shared().now()))
    }
}

impl<Q> Inspector<Q>
where
    Q: AsShared + Send + Sync + 'static,
    Key<Q>: Clone + Display + Send + Sync + 'static,
{
    /// Finds a key by parsing its id, in O(1). Otherwise the queue is searched for a key that displays
    /// the id. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::std::WorkQueue;
    /// use requeue_inspect::{Inspect, Inspector};
    ///
    /// let queue: WorkQueue<u32> = WorkQueue::new();
    /// let nodes = Inspector::new("nodes", &queue).parse_ids();
    /// queue.add(7).unwrap();
    /// assert!(nodes.key("7").is_some() && nodes.key("seven").is_none());
    /// ```
    #[must_use = "this returns an inspector that parses ids"]
    pub fn parse_ids(mut self) -> Self
    where
        Key<Q>: FromStr,
    {
        self.parse = Some(|id| id.parse().ok());
        self
    }

    /// Shows the groups of the queue. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::std::WorkQueue;
    /// use requeue_inspect::{Inspect, Inspector};
    ///
    /// let queue = WorkQueue::builder().build_with_groups(|node: &u32| node % 2);
    /// let nodes = Inspector::new("nodes", &queue).with_groups();
    /// let _ = queue.add_many([1, 2, 3]);
    /// let longest = &nodes.groups(1).groups[0];
    /// assert_eq!((&*longest.name, longest.ready), ("1", 2));
    /// ```
    #[must_use = "this returns an inspector that shows groups"]
    pub fn with_groups<G>(mut self) -> Self
    where
        Named<Q>: Grouped<Group = G, Rates = Rates>,
        G: Clone + Display + Eq + Hash + 'static,
    {
        self.groups = Some(GroupCalls {
            name_of: |queue, key| id(&queue.as_shared().group_of(key)),
            state_of: |queue, key| {
                let queue = queue.as_shared();
                queue.group(&queue.group_of(key))
            },
            all: |queue| {
                let groups = queue.as_shared().groups();
                Box::new(groups.map(|(name, state)| group_view(id(&name), &state)))
            },
            pause: |queue, name| {
                let group = find_group(queue.as_shared(), name)?;
                let paused = queue.as_shared().pause_group(group);
                paused.map_err(|_| ControlError::NoGroup)
            },
            unpause: |queue, name| {
                let group = find_group(queue.as_shared(), name)?;
                queue.as_shared().unpause_group(&group);
                Ok(())
            },
            limit: |queue, name, limits| {
                let group = find_group(queue.as_shared(), name)?;
                let limited = queue.as_shared().limit_group(group, limits);
                limited.map_err(|_| ControlError::NoGroup)
            },
        });
        self
    }

    /// Shows a list of dead keys, and lets them be retried or dropped. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::std::{DeadKeys, WorkQueue};
    /// use requeue_inspect::{Command, Inspect, Inspector};
    ///
    /// let queue: WorkQueue<u32> = WorkQueue::new();
    /// let dead = DeadKeys::new(1_000, |_, _| {});
    /// let nodes = Inspector::new("nodes", &queue).with_dead_keys(&dead);
    /// dead.insert(7, "no route");
    /// assert_eq!(nodes.dead_keys(10)[0].why, "no route");
    ///
    /// nodes.control(&Command::RetryDead { id: "7".to_owned() }).unwrap();
    /// assert!(dead.is_empty() && queue.contains(&7));
    /// ```
    #[must_use = "this returns an inspector that shows dead keys"]
    pub fn with_dead_keys<W>(mut self, dead: &DeadKeys<Key<Q>, W>) -> Self
    where
        W: Display + Send + Sync + 'static,
    {
        self.dead = Some(Arc::new(dead.clone()));
        self
    }
}

impl<Q> Inspect for Inspector<Q>
where
    Q: AsShared + Send + Sync + 'static,
    Key<Q>: Clone + Display + Send + Sync + 'static,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn view(&self) -> QueueView {
        let mut view = self.counts();
        let mut groups: Vec<GroupView> = self.all_groups().take(GROUPS_MAX).collect();
        groups.sort_by(longest_backlog_first);
        view.findings = findings(&view, &self.runs(3), &groups);
        view
    }

    fn keys(&self, query: &KeyQuery) -> KeyPage {
        let (offset, limit) = (query.offset.min(OFFSET_MAX), query.limit.min(LIMIT_MAX));
        let wanted = offset + limit;
        let mut is_wanted = self.filter(query);
        let filters = !query.search.is_empty() || query.phase.is_some() || query.group.is_some();
        let keys = self
            .shared()
            .snapshot()
            .filter(|(key, state)| is_wanted(key, state));

        let (first, matching) = if query.sort.is_none() && !filters {
            let keys = keys.map(|(key, _)| key);
            (keys.take(wanted + 1).collect::<Vec<_>>(), None)
        } else {
            let mut matching = 0;
            let keys = keys.inspect(|_| matching += 1);
            let ranked = keys.map(|(key, state)| (self.rank(query.sort, &key, &state), key));
            let first = first(ranked, wanted, |(a, _), (b, _)| a.cmp(b));
            (
                first.into_iter().map(|(_, key)| key).collect(),
                Some(matching),
            )
        };
        let more = matching.unwrap_or(first.len()) > wanted;
        let counts = self.counts();
        let page = first.iter().take(wanted).skip(offset);
        KeyPage {
            keys: page.map(|key| self.key_view(key, &counts)).collect(),
            matching,
            more,
        }
    }

    fn key(&self, wanted: &str) -> Option<KeyDetail> {
        let key = self.find(wanted)?;
        Some(KeyDetail {
            key: self.key_view(&key, &self.counts()),
            dead: self.find_dead(|dead| *dead == key).map(|(_, why)| why),
            history: self.history.ends(Some(&key), 50, self.now()),
        })
    }

    fn runs(&self, limit: usize) -> Vec<RunView> {
        self.history.runs(limit, self.now())
    }

    fn ends(&self, limit: usize) -> Vec<EndView> {
        self.history.ends(None, limit, self.now())
    }

    fn dead_keys(&self, limit: usize) -> Vec<DeadKeyView> {
        let dead = self.dead.iter().flat_map(|dead| dead.list(limit));
        dead.map(|(key, why)| DeadKeyView { id: id(&key), why })
            .collect()
    }

    fn groups(&self, limit: usize) -> GroupPage {
        let mut total = 0;
        let groups = self.all_groups().inspect(|_| total += 1);
        let groups = first(groups, limit, longest_backlog_first);
        GroupPage { groups, total }
    }

    fn control(&self, command: &Command) -> Result<String, ControlError> {
        let queue = self.shared();
        let key = |id: &str| self.find(id).ok_or(ControlError::NoKey);
        let calls = || self.groups.ok_or(ControlError::NoGroup);
        Ok(match command {
            Command::Expedite { id } => match queue.expedite(&key(id)?) {
                true => "ended the delay of the key",
                false => return Err(ControlError::NotDelayed),
            },
            Command::Cancel { id } => match queue.cancel(&key(id)?) {
                Some(_) => "cancelled the key",
                None => return Err(ControlError::NoKey),
            },
            Command::RetryDead { id } => {
                self.dead()?.retry(&key(id)?, &self.queue)?;
                "added the dead key again"
            }
            Command::DropDead { id } => match self.dead()?.remove(&key(id)?) {
                true => "dropped the dead key",
                false => return Err(ControlError::NotDead),
            },
            Command::Pause => {
                queue.pause();
                "paused the queue"
            }
            Command::Unpause => {
                queue.unpause();
                "unpaused the queue"
            }
            Command::PauseGroup { group } => {
                (calls()?.pause)(&self.queue, group)?;
                "paused the group"
            }
            Command::UnpauseGroup { group } => {
                (calls()?.unpause)(&self.queue, group)?;
                "unpaused the group"
            }
            Command::LimitGroup { group, limits } => {
                (calls()?.limit)(&self.queue, group, limits.into())?;
                "set the limits of the group"
            }
            Command::SetWorkers { workers } => {
                if self.counts().workers.is_none() {
                    return Err(ControlError::NoWorkers);
                }
                if !self.history.set_workers(*workers) {
                    return Err(ControlError::ManyRuns);
                }
                return Ok(format!("set the number of workers to {workers}"));
            }
        }
        .to_owned())
    }
}

impl<Q> Inspector<Q>
where
    Q: AsShared + Send + Sync + 'static,
    Key<Q>: Clone + Display + Send + Sync + 'static,
{
    fn shared(&self) -> &Shared<Q::Host> {
        self.queue.as_shared()
    }

    fn now(&self) -> Instant {
        self.shared().now()
    }

    fn dead(&self) -> Result<&dyn Dead<Q>, ControlError> {
        self.dead.as_deref().ok_or(ControlError::NotDead)
    }

    fn find_dead(&self, is_wanted: impl Fn(&Key<Q>) -> bool) -> Option<(Key<Q>, String)> {
        self.dead.as_ref()?.find(&is_wanted)
    }

    /// The view without the findings.
    fn counts(&self) -> QueueView {
        let (stats, now) = (self.shared().stats(), self.now());
        let next = stats.next_deadline.filter(|next| !next.is_never());
        let mut view = QueueView {
            name: self.name.to_string(),
            ready: stats.ready,
            active: stats.active,
            dirty: stats.dirty,
            delayed: stats.delayed,
            suspended: stats.suspended,
            failure_records: stats.failure_records,
            total: stats.total,
            max_keys: stats.max_keys,
            next_deadline_ms: next.map(|next| millis(next.saturating_since(now))),
            paused: stats.paused,
            shutting_down: stats.shutting_down,
            dead: self.dead.as_ref().map(|dead| dead.len()),
            has_groups: self.groups.is_some(),
            ..QueueView::default()
        };
        self.history.fill(&mut view);
        view
    }

    fn all_groups(&self) -> impl Iterator<Item = GroupView> {
        let groups = self.groups.iter();
        groups.flat_map(|calls| (calls.all)(&self.queue))
    }

    fn group_of(&self, key: &Key<Q>) -> Option<String> {
        let calls = self.groups.as_ref()?;
        Some((calls.name_of)(&self.queue, key))
    }

    /// What a list is to contain.
    fn filter<'q>(&'q self, query: &'q KeyQuery) -> impl FnMut(&Key<Q>, &KeyState) -> bool + 'q {
        let mut text = String::new();
        move |key, state| {
            if query.phase.is_some_and(|phase| !is_in(phase, state)) {
                return false;
            }
            if !query.search.is_empty() {
                text.clear();
                // A `Display` that fails shows what it has written.
                let _ = write!(text, "{key}");
                if !text.contains(&query.search) {
                    return false;
                }
            }
            query.group.is_none() || self.group_of(key) == query.group
        }
    }

    fn rank(&self, sort: Option<Sort>, key: &Key<Q>, state: &KeyState) -> Rank {
        match sort {
            // In the order in which they are found.
            None => Rank::default(),
            Some(Sort::Phase) => Rank(phase_of(state) as u64, String::new()),
            Some(Sort::Group) => Rank(0, self.group_of(key).unwrap_or_default()),
            Some(Sort::Failures) => Rank(u64::MAX - u64::from(state.failures), String::new()),
            Some(Sort::Next) => Rank(next_of(state), String::new()),
        }
    }

    fn key_view(&self, key: &Key<Q>, counts: &QueueView) -> KeyView {
        let queue = self.shared();
        let (state, why, now) = (queue.state(key), queue.why(key), self.now());
        let state_of_group = self
            .groups
            .as_ref()
            .and_then(|calls| (calls.state_of)(&self.queue, key));
        let group = self.group_of(key);
        let facts = Facts {
            run: self.history.run_of(key, now),
            group: group
                .clone()
                .zip(state_of_group)
                .map(|(name, state)| group_view(name, &state)),
            last_error: self.history.last_error(key),
        };
        let state = state.unwrap_or_default();
        let since = state.active_since.map(|since| now.saturating_since(since));
        let running = facts
            .run
            .map(|(age, _)| age)
            .or(since)
            .filter(|_| state.active);
        let due = state.suspended.or(state.due).filter(|due| !due.is_never());
        KeyView {
            id: id(key),
            phase: phase_of(&state),
            group,
            failures: state.failures,
            priority: state.priority,
            running_ms: running.map(millis),
            due_in_ms: due.map(|due| millis(due.saturating_since(now))),
            why: sentence(why, now, counts, &facts),
        }
    }

    /// The key that displays an id.
    fn find(&self, wanted: &str) -> Option<Key<Q>> {
        if let Some(parse) = self.parse {
            return parse(wanted).filter(|key| self.knows(key));
        }
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let known = found.iter().find(|(id, _)| id == wanted);
        if let Some(key) = known.map(|(_, key)| key.clone()) {
            drop(found);
            return Some(key).filter(|key| self.knows(key));
        }
        drop(found);
        let is_wanted = |key: &Key<Q>| displays(key, wanted);
        let in_dead = || self.find_dead(is_wanted).map(|(key, _)| key);
        let in_queue = || self.shared().snapshot().map(|(key, _)| key).find(is_wanted);
        let key = self
            .history
            .find(is_wanted)
            .or_else(in_dead)
            .or_else(in_queue)?;
        found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.push_back((wanted.to_owned(), key.clone()));
        let oldest = (found.len() > FOUND_MAX).then(|| found.pop_front());
        drop(found);
        drop(oldest);
        Some(key)
    }

    fn knows(&self, key: &Key<Q>) -> bool {
        let is_dead = || self.find_dead(|dead| dead == key).is_some();
        let has_state = self.shared().state(key).is_some();
        has_state || self.history.find(|known| known == key).is_some() || is_dead()
    }
}

/// The place of a key in a list.
#[derive(Default, PartialEq, Eq, PartialOrd, Ord)]
struct Rank(u64, String);

fn next_of(state: &KeyState) -> u64 {
    match state.suspended.or(state.due) {
        _ if state.ready || state.active => 0,
        Some(due) => due.as_nanos(),
        None => u64::MAX,
    }
}

fn is_in(phase: KeyPhase, state: &KeyState) -> bool {
    match phase {
        // A dirty key is active, and a delayed one may be ready or active too.
        KeyPhase::Active => state.active,
        KeyPhase::Delayed => state.due.is_some() && state.suspended.is_none(),
        phase => phase_of(state) == phase,
    }
}

fn phase_of(state: &KeyState) -> KeyPhase {
    match state {
        _ if state.dirty => KeyPhase::Dirty,
        _ if state.active => KeyPhase::Active,
        _ if state.ready => KeyPhase::Ready,
        _ if state.suspended.is_some() => KeyPhase::Suspended,
        _ if state.due.is_some() => KeyPhase::Delayed,
        _ if state.failures > 0 => KeyPhase::Failures,
        _ => KeyPhase::Absent,
    }
}

fn longest_backlog_first(a: &GroupView, b: &GroupView) -> Ordering {
    b.ready.cmp(&a.ready).then_with(|| a.name.cmp(&b.name))
}

/// The first `wanted` in an order. O(n log wanted), with memory for twice as many as are wanted.
fn first<T>(
    all: impl Iterator<Item = T>,
    wanted: usize,
    order: impl Fn(&T, &T) -> Ordering,
) -> Vec<T> {
    let full = wanted.saturating_mul(2).max(1_024);
    let mut first = Vec::new();
    let shrink = |first: &mut Vec<T>| {
        first.sort_by(&order);
        first.truncate(wanted);
    };
    for one in all {
        first.push(one);
        if first.len() >= full {
            shrink(&mut first);
        }
    }
    shrink(&mut first);
    first
}

fn group_view(name: String, state: &GroupState) -> GroupView {
    GroupView {
        name,
        ready: state.ready,
        active: state.active,
        total: state.total,
        blocked: state.blocked,
        paused: state.paused,
        limits: Limits {
            max_active: state.max_active,
            weight: Some(state.weight),
            rate: state
                .rate
                .map(|(per_second, burst)| Rate::new(per_second, burst)),
        },
    }
}

impl From<&Limits> for GroupLimits {
    fn from(limits: &Limits) -> Self {
        let mut own = Self::new().weight(limits.weight.unwrap_or(1));
        if let Some(keys) = limits.max_active {
            own = own.max_active(keys);
        }
        if let Some(Rate { per_second, burst }) = limits.rate {
            own = own.rate(per_second, burst);
        }
        own
    }
}

/// The name of the group that displays this text.
fn find_group<H, G>(queue: &Shared<H>, wanted: &str) -> Result<G, ControlError>
where
    H: Host<Priorities: Grouped<Group = G>>,
    G: Clone + Display,
{
    let mut names = queue.groups().map(|(name, _)| name);
    let found = names.find(|name| displays(name, wanted));
    found.ok_or(ControlError::NoGroup)
}
