//! What a run, and the world, can do.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::error::Error;
use std::fmt::{self, Debug};
use std::future::{pending, poll_fn};
use std::io;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use requeue_core::binding::Clock;
use requeue_core::{AddOptions, Added, Instant, Rejected};

use super::World;
use super::choices::{Choice, Fault, Point, RANK};
use super::shared::{Effect, Shared, Slot, Task};
use super::timeline::Who;

/// Where keys are added; and a [`Clock`], for code that takes one. Clones are the same queue.
///
/// The example of the [module](super) has one.
pub struct Keys<K> {
    pub(super) shared: Rc<Shared<K>>,
    pub(super) who: Who,
}

impl<K: Ord + Clone + Debug + 'static> Keys<K> {
    /// Adds a key.
    ///
    /// # Errors
    ///
    /// As the queue's `add`. What is refused because the queue is shutting down is given to its
    /// successor, as a caller that got it back would do, so that the error may be ignored then.
    pub fn add(&self, key: K) -> Result<Added, Rejected<K>> {
        self.add_with(key, AddOptions::new())
    }

    /// Adds a key after a delay.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn add_after(&self, key: K, delay: Duration) -> Result<Added, Rejected<K>> {
        self.add_with(key, after(delay))
    }

    /// Adds a key in any of the ways there are: after a failure, say, or with a priority.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn add_with(&self, key: K, options: AddOptions) -> Result<Added, Rejected<K>> {
        self.shared.add(self.who, key, options)
    }

    /// Suspends a key until [`resume`](Self::resume), and for `timeout` at most: now, or when its run
    /// ends. Returns whether it is suspended then. A run that waits for what it has begun itself
    /// calls this before it begins it. A run that learns at its end what it waits for returns
    /// [`Action::Suspend`](requeue_core::Action::Suspend).
    ///
    /// # Examples
    ///
    /// A run asks for a volume, and an event says that it is there:
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_core::Action;
    /// use requeue_proptest::proptest::prelude::*;
    /// use requeue_proptest::simulation::{CallFailed, Check, Context, Keys, World};
    ///
    /// #[derive(Default)]
    /// struct Volume {
    ///     is_wanted: bool,
    ///     is_there: bool,
    /// }
    ///
    /// #[derive(Clone, Debug)]
    /// enum Event {
    ///     Wanted,
    ///     Provisioned,
    /// }
    ///
    /// impl World for Volume {
    ///     type Key = &'static str;
    ///     type Event = Event;
    ///     type Error = CallFailed;
    ///
    ///     fn event(&self) -> BoxedStrategy<Event> {
    ///         prop_oneof![Just(Event::Wanted), Just(Event::Provisioned)].boxed()
    ///     }
    ///
    ///     fn happen(&mut self, event: &Event, keys: &Keys<&'static str>) {
    ///         match event {
    ///             Event::Wanted => drop(keys.add("volume")),
    ///             Event::Provisioned => {
    ///                 self.is_there |= self.is_wanted;
    ///                 keys.resume(&"volume");
    ///             }
    ///         }
    ///     }
    ///
    ///     async fn reconcile(
    ///         context: Context<Self>,
    ///         _: &'static str,
    ///     ) -> Result<Action, CallFailed> {
    ///         let ask = |world: &mut Self| std::mem::replace(&mut world.is_wanted, true);
    ///         context.call("ask", ask).await?;
    ///         if context.call("look", |world| world.is_there).await? {
    ///             return Ok(Action::Success);
    ///         }
    ///         Ok(Action::Suspend(Duration::from_secs(60)))
    ///     }
    /// }
    ///
    /// // A volume that never comes is looked for each minute, until the history ends.
    /// Check::new(Volume::default).seeds(50).run();
    /// ```
    pub fn suspend(&self, key: &K, timeout: Duration) -> bool {
        self.shared.suspend(self.who, key, timeout)
    }

    /// Ends the suspension of a key: the event has come that it waits for. Returns whether it was
    /// suspended. A run of the key that ends later and asks to be suspended heeds it.
    ///
    /// The example of [`suspend`](Self::suspend) has one.
    pub fn resume(&self, key: &K) -> bool {
        self.shared.resume(self.who, key)
    }

    /// Does something else with the queue, if it is a `Q`: sets the limits of a group, say.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::limiter::NoLimit;
    /// use requeue_core::priority::Groups;
    /// use requeue_core::storage::Growable;
    /// use requeue_core::{GroupLimits, Queue};
    /// use requeue_proptest::simulation::Keys;
    ///
    /// type Tenants = Queue<(u8, u32), Groups<u8>, NoLimit, Growable>;
    ///
    /// // In `World::happen`: a tenant moves to a larger plan.
    /// fn upgrade(tenant: u8, keys: &Keys<(u8, u32)>) {
    ///     let plan = GroupLimits::new().max_active(8);
    ///     let limited = keys.with_queue(|queue: &mut Tenants, now| {
    ///         queue.at(now).limit_group(tenant, Some(plan))
    ///     });
    ///     assert_eq!(limited, Some(Ok(())));
    /// }
    /// ```
    pub fn with_queue<Q: 'static, T>(&self, work: impl FnOnce(&mut Q, Instant) -> T) -> Option<T> {
        self.shared.with_queue(work)
    }

    /// Returns whether the queue is shutting down.
    pub fn is_shutting_down(&self) -> bool {
        self.shared.is_shutting_down()
    }

    /// Returns the virtual time.
    pub fn now(&self) -> Instant {
        self.shared.now()
    }

    /// Writes a line into the history.
    pub fn note(&self, note: impl Into<String>) {
        self.shared.write(self.who, None, note);
    }
}

impl<K: Ord + Clone + Debug + 'static> Clock for Keys<K> {
    fn now(&self) -> Instant {
        self.shared.now()
    }
}

impl<K> Clone for Keys<K> {
    fn clone(&self) -> Self {
        Self {
            shared: Rc::clone(&self.shared),
            who: self.who,
        }
    }
}

impl<K> Debug for Keys<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

/// One run's way to the world: every call takes its time there, and may fail.
///
/// Clones belong to the same run, so that a fake client which one's own code takes can hold one.
///
/// # Examples
///
/// ```
#[doc = include_str!("example.txt")]
/// struct Client(Context<Replica>);
///
/// impl Client {
///     async fn read(&self) -> Result<u32, CallFailed> {
///         self.0.call("read", |world| world.wanted).await
///     }
///
///     /// A service that is slow by itself, whatever the seed says.
///     async fn write(&self, version: u32) -> Result<(), CallFailed> {
///         self.0.sleep(Duration::from_millis(200)).await;
///         self.0.call("write", move |world| world.real = version).await
///     }
/// }
/// # let _ = (Client::read, Client::write);
/// ```
pub struct Context<W: World> {
    pub(super) world: Rc<RefCell<W>>,
    pub(super) keys: Keys<W::Key>,
    pub(super) key: W::Key,
    pub(super) run: u32,
    pub(super) timed_out: bool,
    /// Counts the run's choices.
    pub(super) points: Rc<Cell<u32>>,
}

impl<W: World> Context<W> {
    /// Calls something that may be slow or fail. `effect` is applied when the request arrives, and
    /// its result is returned when the answer does. The seed decides how long each takes, and
    /// whether the effect comes after the call has failed.
    ///
    /// `effect` must not use this context, because the world is borrowed while it runs.
    ///
    /// # Cancel safety
    ///
    /// The call may be dropped at any time. `effect` has been applied then, or it will never be,
    /// unless the call had failed with a [`Fault::EffectLate`].
    ///
    /// # Errors
    ///
    /// [`CallFailed`] if the request or the answer was lost, or comes late: as in production no
    /// caller can tell which, and so whether the call had its effect or will have it.
    pub async fn call<T>(
        &self,
        name: impl Into<Cow<'static, str>>,
        effect: impl FnOnce(&mut W) -> T + 'static,
    ) -> Result<T, CallFailed> {
        let call = name.into();
        let request = self.choose(Point::Request);
        if !request.delay.is_zero() {
            self.write(format!("{call}: sent, {:?} on its way", request.delay));
        }
        self.meet(request).await;
        if request.fault == Some(Fault::EffectLate) {
            self.write(format!("{call}: fails, and may come LATE"));
            self.land_late(call.clone(), effect);
            return Err(CallFailed { call });
        }
        if request.fault.is_some() {
            self.write(format!("{call}: fails, the request was LOST"));
            return Err(CallFailed { call });
        }
        let result = self.world(effect);
        let (answer, done) = (self.choose(Point::Answer), self.now());
        let is_lost = answer.fault == Some(Fault::AnswerLost);
        match answer.delay {
            Duration::ZERO if is_lost => {}
            Duration::ZERO => self.write(format!("{call}: done")),
            delay => self.write(format!("{call}: done, the answer takes {delay:?}")),
        }
        self.meet(answer).await;
        if is_lost {
            self.write(format!("{call}: fails, done but the answer was LOST"));
            return Err(CallFailed { call });
        }
        if self.now() > done {
            self.write(format!("{call}: answered"));
        }
        Ok(result)
    }

    /// Plans the effect of a call that has failed.
    fn land_late<T>(&self, call: Cow<'static, str>, effect: impl FnOnce(&mut W) -> T + 'static) {
        let choice = self.choose(Point::Late);
        let (world, key) = (Rc::clone(&self.world), self.key.clone());
        let keys = Keys {
            shared: Rc::clone(&self.keys.shared),
            who: Who::World,
        };
        let effect = Box::new(move || {
            effect(&mut world.borrow_mut());
            let shared = &keys.shared;
            shared.last_fault.set(shared.now());
            shared.write(keys.who, Some(&key), format!("{call}: done LATE"));
            // What is refused at a shutdown goes to the successor.
            let _ = keys.add(key);
        });
        let at = self.now() + LATE + choice.delay;
        let task = Task::Effect(Effect(effect));
        self.keys.shared.plan(at, choice.rank, task);
    }

    /// Reads or changes the world. No time passes.
    ///
    /// # Panics
    ///
    /// If `look` uses this context in its turn.
    pub fn world<T>(&self, look: impl FnOnce(&mut W) -> T) -> T {
        look(&mut self.world.borrow_mut())
    }

    /// Waits on virtual time.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped at any time.
    pub async fn sleep(&self, delay: Duration) {
        self.write(format!("sleeps {delay:?}"));
        sleep_until(&self.keys.shared, self.now() + delay, RANK).await;
    }

    /// Lets other tasks run, for as long as the seed decides. A fault may end the run here.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped at any time.
    pub async fn pause(&self) {
        let choice = self.choose(Point::Pause);
        self.meet(choice).await;
    }

    /// Returns the virtual time.
    pub fn now(&self) -> Instant {
        self.keys.now()
    }

    /// Returns whether the key was suspended, and its timeout has ended before an event has resumed
    /// it.
    pub fn timed_out(&self) -> bool {
        self.timed_out
    }

    /// Returns where more keys are added.
    pub fn keys(&self) -> &Keys<W::Key> {
        &self.keys
    }

    /// Writes a line into the history.
    pub fn note(&self, note: impl Into<String>) {
        self.write(note);
    }

    fn choose(&self, point: Point) -> Choice {
        let number = self.points.get();
        self.points.set(number + 1);
        let key = Some(&self.key);
        self.keys.shared.choose(key, self.run, number, point)
    }

    /// Waits for the delay of a choice, and then applies its fault if that ends the run.
    async fn meet(&self, choice: Choice) {
        let shared = &self.keys.shared;
        sleep_until(shared, self.now() + choice.delay, choice.rank).await;
        match choice.fault {
            // Not `panic!`, which would be reported by the hook for panics.
            Some(Fault::Panic) => resume_unwind(Box::new("simulated")),
            Some(Fault::Abort) => {
                shared.aborts.set(true);
                pending().await
            }
            Some(Fault::RequestLost | Fault::AnswerLost | Fault::EffectLate) | None => {}
        }
    }

    fn write(&self, what: impl Into<String>) {
        self.keys.shared.write(self.keys.who, Some(&self.key), what);
    }
}

impl<W: World> Clone for Context<W> {
    fn clone(&self) -> Self {
        Self {
            world: Rc::clone(&self.world),
            keys: self.keys.clone(),
            key: self.key.clone(),
            run: self.run,
            timed_out: self.timed_out,
            points: Rc::clone(&self.points),
        }
    }
}

impl<W: World> Debug for Context<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("key", &self.key)
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}

/// A call that failed, whether or not it had its effect.
///
/// It becomes a `String` or an [`io::Error`] where a reconciler has those.
///
/// # Examples
///
/// ```
/// use requeue_proptest::simulation::CallFailed;
///
/// fn tell(failed: CallFailed) -> String {
///     failed.into()
/// }
/// # let _ = tell;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFailed {
    call: Cow<'static, str>,
}

impl fmt::Display for CallFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed", self.call)
    }
}

impl Error for CallFailed {}

impl From<CallFailed> for String {
    fn from(failed: CallFailed) -> Self {
        failed.to_string()
    }
}

impl From<CallFailed> for io::Error {
    fn from(failed: CallFailed) -> Self {
        Self::new(io::ErrorKind::TimedOut, failed)
    }
}

/// The least time after a failed call at which its effect comes: a retry may precede it.
const LATE: Duration = Duration::from_millis(100);

/// Options of an add after a delay.
pub(super) fn after(delay: Duration) -> AddOptions {
    AddOptions {
        after: Some(delay),
        ..AddOptions::new()
    }
}

/// Waits until `until`, and lets others go first in any case.
async fn sleep_until<K: Ord + Clone + Debug + 'static>(
    shared: &Rc<Shared<K>>,
    until: Instant,
    rank: u8,
) {
    let mut timer = Timer { shared, slot: None };
    poll_fn(|context| match timer.slot {
        None => {
            let task = Task::Wake(context.waker().clone());
            timer.slot = Some(shared.plan(until, rank, task));
            Poll::Pending
        }
        Some(slot) if shared.renew(slot, context.waker()) => Poll::Pending,
        Some(_) => Poll::Ready(()),
    })
    .await;
}

/// No getter is woken for a wait that was dropped.
struct Timer<'h, K: Ord + Clone + Debug + 'static> {
    shared: &'h Shared<K>,
    slot: Option<Slot>,
}

impl<K: Ord + Clone + Debug + 'static> Drop for Timer<'_, K> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            let _ = self.shared.cancel(slot);
        }
    }
}
