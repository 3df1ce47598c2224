//! Tests your own reconciler on virtual time, with the delays, faults and restarts of production.
//!
//! The reconciler and what it works on are a [`World`]: events that change it, `reconcile`, and
//! what has to be true. [`Check`] draws histories from seeds: which events come and when, how long
//! calls take, which run goes first, what fails, panics, or is aborted, and when the queue is
//! shut down. The queue is the real one, with its limiter. Everything runs on one thread, on a clock
//! that moves when there is nothing else to do: the same seed gives the same history. A history that
//! breaks a property is shortened and reported. You drive a [`Simulation`] by hand.
//!
//! # Examples
//!
//! A reconciler that copies a wanted version to a replica:
//!
//! ```
//! use requeue_core::Action;
//! use requeue_proptest::proptest::prelude::*;
//! use requeue_proptest::simulation::{CallFailed, Check, Context, Keys, Property, World};
//!
//! #[derive(Default)]
//! struct Replica {
//!     wanted: u32,
//!     real: u32,
//!     is_careless: bool,
//! }
//!
//! impl World for Replica {
//!     type Key = &'static str;
//!     type Event = u32;
//!     type Error = CallFailed;
//!
//!     fn event(&self) -> BoxedStrategy<u32> {
//!         (1..100u32).boxed()
//!     }
//!
//!     fn happen(&mut self, version: &u32, keys: &Keys<&'static str>) {
//!         self.wanted = *version;
//!         let _ = keys.add("config");
//!     }
//!
//!     async fn reconcile(context: Context<Self>, _: &'static str) -> Result<Action, CallFailed> {
//!         let wanted = context.call("read", |world| world.wanted).await?;
//!         let wrote = context.call("write", move |world| world.real = wanted).await;
//!         if context.world(|world| world.is_careless) {
//!             return Ok(Action::Success);
//!         }
//!         wrote.map(|()| Action::Success)
//!     }
//!
//!     fn eventually(&self) -> Result<(), String> {
//!         let Self { wanted, real, .. } = self;
//!         (wanted == real).then_some(()).ok_or(format!("wanted {wanted}, it is {real}"))
//!     }
//! }
//!
//! Check::new(Replica::default).seeds(64).run();
//!
//! let careless = || Replica { is_careless: true, ..Replica::default() };
//! let failure = Check::new(careless).find().unwrap_err();
//! assert_eq!(failure.breach.property, Property::Eventually);
//! assert!(failure.timeline.contains("write: fails, the request was LOST"));
//! ```

mod check;
mod context;
mod driver;
mod history;
mod plan;
mod queue;
mod shrink;

use std::fmt::Debug;
use std::hash::Hash;

use proptest::strategy::BoxedStrategy;
use requeue_core::Action;

pub use check::{Breach, Check, Failure, Property, Settings, Summary};
pub use context::{CallFailed, Context, Keys};
pub use driver::Simulation;
pub use plan::{Fault, Stop};
pub use queue::SimQueue;

/// What a reconciler works on, and what has to be true of it.
///
/// Nothing in it may be left to chance: no clock but the kit's, no random state, no order of a
/// `HashMap`. A [`Check`] that finds otherwise says so.
///
/// What was asked for stands best where `reconcile` cannot write: if `eventually` compares with an
/// object that a stale write has overwritten, all is well in the end.
///
/// The example of the [module](self) has one.
pub trait World: Sized + 'static {
    /// The keys of the queue.
    type Key: Clone + Ord + Hash + Debug + 'static;
    /// What happens to the world from outside. Its `Debug` stands in the history.
    type Event: Clone + Debug + 'static;
    /// How a run fails.
    type Error: Debug + 'static;

    /// How events are drawn: any strategy of proptest's, whose values are shortened as it says. The
    /// world is a fresh one.
    fn event(&self) -> BoxedStrategy<Self::Event>;

    /// An event happens: changes the world, and adds the keys that it concerns.
    fn happen(&mut self, event: &Self::Event, keys: &Keys<Self::Key>);

    /// One run of one key. What it awaits is the kit's, or its own futures that are woken by a
    /// waker.
    ///
    /// # Errors
    ///
    /// Whatever it answers to its queue.
    fn reconcile(
        context: Context<Self>,
        key: Self::Key,
    ) -> impl Future<Output = Result<Action, Self::Error>>;

    /// Which keys a process begins with, as that of an informer which lists what there is. At first
    /// nothing is listed, and no process dies in a [`Check`].
    fn list(&self) -> Option<Vec<Self::Key>> {
        None
    }

    /// A key was [given up](requeue_core::Workers::on_give_up). At first nothing is done.
    fn gave_up(&mut self, key: &Self::Key) {
        let _ = key;
    }

    /// What is true after every step. It may assert, too: a panic is a breach like any other.
    ///
    /// # Errors
    ///
    /// What is not true, in words.
    fn always(&self) -> Result<(), String> {
        Ok(())
    }

    /// What is true once events and faults have ceased, and everything is quiet. It may assert,
    /// too.
    ///
    /// # Errors
    ///
    /// What is not true, in words.
    fn eventually(&self) -> Result<(), String> {
        Ok(())
    }
}
