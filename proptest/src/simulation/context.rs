//! What a run, and the world, can do.

use std::any::Any;
use std::borrow::Cow;
use std::cell::RefCell;
use std::error::Error;
use std::fmt::{self, Debug};
use std::future::pending;
use std::io;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::time::Duration;

use requeue_core::binding::Clock;
use requeue_core::{AddOptions, Added, Instant, Rejected, RunContext};

use super::World;
use super::history::{History, Run, is_pending};
use super::plan::Fault::{Abort, AnswerLost, EffectLate, Panic, RequestLost};
use super::plan::{Choice, Fault};
use super::queue::{Task, yield_now};

/// The keys of the queue; and a [`Clock`], for code that takes one. Clones are the same queue.
///
/// The example of the [module](super) has one.
#[derive(Clone)]
pub struct Keys<K> {
    pub(super) history: Rc<History<K>>,
    /// The run that has this. `None` in the world.
    pub(super) run: Option<Rc<Run<K>>>,
}

impl<K: Ord + Clone + Debug + 'static> Keys<K> {
    /// Adds a key.
    ///
    /// # Errors
    ///
    /// As the queue's `add`. You may ignore [`Rejected::Closed`]: the queue of the next process gets
    /// the key.
    pub fn add(&self, key: K) -> Result<Added, Rejected<K>> {
        self.add_with(key, AddOptions::new())
    }

    /// Adds a key after a delay.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn add_after(&self, key: K, delay: Duration) -> Result<Added, Rejected<K>> {
        let mut options = AddOptions::new();
        options.after = Some(delay);
        self.add_with(key, options)
    }

    /// Adds a key in any of the ways there are: after a failure, say, or with a priority.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn add_with(&self, key: K, options: AddOptions) -> Result<Added, Rejected<K>> {
        let scheduled = self.history.queue().add_with(key.clone(), options);
        let how = match options.after {
            _ if options.rate_limited => String::from("add_rate_limited"),
            Some(delay) => format!("add_after {delay:?}"),
            None => String::from("add"),
        };
        let outcome = match &scheduled {
            Ok(scheduled) => format!("{:?}", scheduled.added).to_lowercase(),
            Err(Rejected::Closed(_)) => {
                self.history.refused.borrow_mut().push(key.clone());
                String::from("refused, the queue is shutting down")
            }
            Err(other) => other.to_string(),
        };
        self.write(Some(&key), format!("{how}: {outcome}"));
        scheduled.map(|scheduled| scheduled.added)
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
        let suspends = self.history.queue().suspend(key, timeout);
        let what = match suspends {
            true => format!("suspend: for {timeout:?} at most"),
            false => String::from("suspend: the queue does not have the key"),
        };
        self.write(Some(key), what);
        suspends
    }

    /// Ends the suspension of a key, because the event that it waits for has happened. Returns
    /// whether it was suspended. A run of the key that ends later and asks to be suspended heeds it.
    ///
    /// The example of [`suspend`](Self::suspend) has one.
    pub fn resume(&self, key: &K) -> bool {
        let was_suspended = self.history.queue().resume(key);
        let was = if was_suspended { "was" } else { "was not" };
        self.write(Some(key), format!("resume: it {was} suspended"));
        was_suspended
    }

    /// Returns the queue, with all methods of core's: to set the limits of a group, say. The
    /// history does not show what you do with it.
    ///
    /// `Q` is the [`SimQueue`](super::SimQueue) with the types of the queue, which
    /// [`Check::queue`](super::Check::queue) has made. `None` if it is another.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::GroupLimits;
    /// use requeue_core::limiter::NoLimit;
    /// use requeue_core::priority::Groups;
    /// use requeue_proptest::simulation::{Keys, SimQueue};
    ///
    /// // The queue of `Check::queue`, if that makes a `Queue<(u8, u32), Groups<u8>, NoLimit, Growable>`.
    /// type Tenants = SimQueue<(u8, u32), Groups<u8>, NoLimit>;
    ///
    /// // In `World::happen`: a tenant moves to a larger plan.
    /// fn upgrade(tenant: u8, keys: &Keys<(u8, u32)>) {
    ///     let plan = GroupLimits::new().max_active(8);
    ///     let tenants = keys.queue::<Tenants>().unwrap();
    ///     tenants.limit_group(tenant, Some(plan)).unwrap();
    /// }
    /// ```
    pub fn queue<Q: 'static>(&self) -> Option<Rc<Q>> {
        let queue: Rc<dyn Any> = self.history.queue();
        queue.downcast().ok()
    }

    /// Returns whether the queue is shutting down.
    pub fn is_shutting_down(&self) -> bool {
        self.history.queue().is_shutting_down()
    }

    /// Returns the virtual time.
    pub fn now(&self) -> Instant {
        self.history.clock.now()
    }

    /// Writes a line into the history.
    pub fn note(&self, note: impl Into<String>) {
        self.write(self.run.as_ref().map(|run| &run.key), note);
    }

    fn write(&self, key: Option<&K>, what: impl Into<String>) {
        let time = self.now().to_string();
        let run = self.run.as_ref();
        let worker = run.map(|run| format!("worker {}", run.worker));
        let who = worker.unwrap_or(String::from("world"));
        let key = key.map_or(String::new(), |key| format!("{key:?}"));
        let mut lines = self.history.lines.borrow_mut();
        lines.push([time, who, key, what.into()]);
    }
}

impl<K: Ord + Clone + Debug + 'static> Clock for Keys<K> {
    fn now(&self) -> Instant {
        self.history.clock.now()
    }
}

impl<K: Debug> Debug for Keys<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.run.as_ref().map(|run| &run.key);
        f.debug_tuple("Keys").field(&key).finish()
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
    pub(super) run: Rc<Run<W::Key>>,
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
        let request = self.choose(&[RequestLost, EffectLate, Panic, Abort]);
        if !request.delay.is_zero() {
            self.note(format!("{call}: sent, {:?} on its way", request.delay));
        }
        self.meet(request).await;
        if let Some(fault) = request.fault {
            if fault == EffectLate {
                self.note(format!("{call}: fails, and may come LATE"));
                self.land_late(call.clone(), effect);
            } else {
                self.note(format!("{call}: fails, the request was LOST"));
            }
            return Err(CallFailed { call });
        }
        let result = self.world(effect);
        let (answer, done) = (self.choose(&[AnswerLost, Panic, Abort]), self.now());
        let is_lost = answer.fault == Some(AnswerLost);
        match answer.delay {
            Duration::ZERO if is_lost => {}
            Duration::ZERO => self.note(format!("{call}: done")),
            delay => self.note(format!("{call}: done, the answer takes {delay:?}")),
        }
        self.meet(answer).await;
        if is_lost {
            self.note(format!("{call}: fails, done but the answer was LOST"));
            return Err(CallFailed { call });
        }
        if self.now() > done {
            self.note(format!("{call}: answered"));
        }
        Ok(result)
    }

    /// Plans the effect of a call that has failed.
    fn land_late<T>(&self, call: Cow<'static, str>, effect: impl FnOnce(&mut W) -> T + 'static) {
        let (world, key) = (Rc::clone(&self.world), self.run.key.clone());
        let history = Rc::clone(&self.keys.history);
        let sleep = history.sleep(LATE + self.choose(&[]).delay);
        let keys = Keys { history, run: None };
        let mut land: Task = Box::pin(async move {
            sleep.await;
            effect(&mut world.borrow_mut());
            keys.history.last_trouble.set(keys.now());
            keys.write(Some(&key), format!("{call}: done LATE"));
            // A key that is refused at a shutdown is added to the next process.
            let _ = keys.add(key);
        });
        // Only a timer that was polled is set.
        if is_pending(&mut land) {
            self.keys.history.late.borrow_mut().push(land);
        }
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
        self.note(format!("sleeps {delay:?}"));
        let fault = None;
        self.meet(Choice { delay, fault }).await;
    }

    /// Lets other tasks run, for as long as the seed decides. A fault may end the run here.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped at any time.
    pub async fn pause(&self) {
        self.meet(self.choose(&[Panic, Abort])).await;
    }

    /// Returns the virtual time.
    pub fn now(&self) -> Instant {
        self.keys.now()
    }

    /// Returns what the runtimes' `run_with` tells a run: which attempt it is, its deadline, and
    /// whether the key was suspended and not resumed in time.
    pub fn run(&self) -> RunContext {
        self.run.context
    }

    /// Returns where more keys are added.
    pub fn keys(&self) -> &Keys<W::Key> {
        &self.keys
    }

    /// Writes a line into the history.
    pub fn note(&self, note: impl Into<String>) {
        self.keys.note(note);
    }

    fn choose(&self, possible: &[Fault]) -> Choice {
        self.keys.history.choose(&self.run, possible)
    }

    /// Waits for the delay of a choice, and then applies its fault if that ends the run.
    async fn meet(&self, choice: Choice) {
        // One wake for each choice, so that a shorter delay leaves the sites of others as they are.
        match choice.delay {
            Duration::ZERO => yield_now().await,
            delay => self.keys.history.sleep(delay).await,
        }
        match choice.fault {
            // Not `panic!`, which would be reported by the hook for panics.
            Some(Panic) => resume_unwind(Box::new("simulated")),
            Some(Abort) => {
                self.keys.history.aborts.set(true);
                pending().await
            }
            _ => {}
        }
    }
}

impl<W: World> Clone for Context<W> {
    fn clone(&self) -> Self {
        Self {
            world: Rc::clone(&self.world),
            keys: self.keys.clone(),
            run: Rc::clone(&self.run),
        }
    }
}

impl<W: World> Debug for Context<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Context").field(&self.keys).finish()
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
