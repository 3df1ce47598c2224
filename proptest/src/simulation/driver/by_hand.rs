//! What a scripted test does.

use std::time::Duration;

use requeue_core::{AddOptions, Added, Instant, Leftover, Rejected};

use super::{Breach, Property, Simulation, World};
use crate::caught::guarded;
use crate::simulation::choices::Fault;
use crate::simulation::context::after;
use crate::simulation::plan::{Arrival, Stop};
use crate::simulation::shared::Task;
use crate::simulation::timeline::Who;

impl<W: World> Simulation<W> {
    /// Adds a key.
    ///
    /// # Errors
    ///
    /// As the queue's `add`.
    pub fn add(&mut self, key: W::Key) -> Result<Added, Rejected<W::Key>> {
        self.add_with(key, AddOptions::new())
    }

    /// Adds a key after a delay.
    ///
    /// # Errors
    ///
    /// As the queue's `add_after`.
    pub fn add_after(&mut self, key: W::Key, delay: Duration) -> Result<Added, Rejected<W::Key>> {
        self.add_with(key, after(delay))
    }

    /// Adds a key in any of the ways there are.
    ///
    /// # Errors
    ///
    /// As the queue's `add_with`.
    pub fn add_with(
        &mut self,
        key: W::Key,
        options: AddOptions,
    ) -> Result<Added, Rejected<W::Key>> {
        self.shared.add(Who::World, key, options)
    }

    /// Lets an event happen now.
    ///
    /// # Errors
    ///
    /// [`Breach`] if the world panics, or does not hold what [`World::always`] promises.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("../example.txt")]
    /// let mut sim = Simulation::new(Replica::default());
    /// sim.happen(&5)?;
    /// sim.run_until_idle()?;
    /// assert_eq!(sim.world(|world| world.real), 5);
    /// # Ok::<(), Breach>(())
    /// ```
    pub fn happen(&mut self, event: &W::Event) -> Result<(), Breach> {
        self.attempt(|simulation| {
            simulation.happens(event);
            simulation.look_after()
        })
    }

    /// Lets a fault happen at the next point where it can: a call, or a pause.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("../example.txt")]
    /// let mut sim = Simulation::new(Replica::default());
    /// sim.inject(Fault::Panic);
    /// sim.happen(&5)?;
    /// sim.run_until_idle()?;
    /// assert!(sim.timeline().contains("run PANICS: simulated"));
    /// sim.advance(Duration::from_secs(1))?;
    /// assert_eq!(sim.world(|world| world.real), 5, "it was tried again");
    /// # Ok::<(), Breach>(())
    /// ```
    pub fn inject(&mut self, fault: Fault) {
        self.shared.choices.borrow_mut().inject(fault);
    }

    /// Lets this much time pass, and all happen that happens meanwhile.
    ///
    /// # Errors
    ///
    /// [`Breach`] of a property; of [`Property::HistoryEnds`] after 100,000 steps.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("../example.txt")]
    /// let mut sim = Simulation::new(Replica::default());
    /// sim.world(|world| world.wanted = 5);
    /// sim.add_after("config", Duration::from_secs(60)).unwrap();
    /// sim.advance(Duration::from_secs(59))?;
    /// assert_eq!(sim.world(|world| world.real), 0);
    /// sim.advance(Duration::from_secs(1))?;
    /// assert_eq!(sim.world(|world| world.real), 5);
    /// # Ok::<(), Breach>(())
    /// ```
    pub fn advance(&mut self, by: Duration) -> Result<(), Breach> {
        let end = self.shared.now() + by;
        loop {
            self.deliver_wakes();
            if self.shared.next_time().is_none_or(|next| next > end) {
                break;
            }
            self.step()?;
        }
        self.before_time_passes(end)?;
        self.shared.set_now(end);
        Ok(())
    }

    /// Takes steps until no key is ready or active. Keys that wait for a later time keep waiting:
    /// [`advance`](Self::advance) to it.
    ///
    /// # Errors
    ///
    /// [`Breach`] of a property; of [`Property::RunEnds`] if a run waits for something that never
    /// happens.
    pub fn run_until_idle(&mut self) -> Result<(), Breach> {
        loop {
            if self.shared.is_idle() {
                return Ok(());
            }
            if !self.step()? {
                return self.rest();
            }
        }
    }

    /// Shuts the queue down, takes steps until all workers have gone, and returns what is handed
    /// back.
    ///
    /// # Errors
    ///
    /// [`Breach`] of a property; of [`Property::RunEnds`] if a run waits for something that never
    /// happens.
    pub fn shut_down(&mut self, stop: Stop) -> Result<Vec<Leftover<W::Key>>, Breach> {
        self.stop = Some(stop);
        self.attempt(|simulation| {
            simulation.stops();
            Ok(())
        })?;
        while !self.is_over() {
            if !self.step()? {
                self.rest()?;
            }
        }
        Ok(self.handed_back())
    }

    /// Starts a successor of a queue that was shut down: a new queue, with these keys, those that
    /// were refused since, and workers.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("../example.txt")]
    /// let mut sim = Simulation::new(Replica::default());
    /// sim.happen(&5)?;
    /// let leftovers = sim.shut_down(Stop::Abort)?;
    /// assert_eq!(leftovers[0].key, "config");
    /// assert_eq!(sim.world(|world| world.real), 0);
    ///
    /// sim.restart(leftovers);
    /// sim.run_until_idle()?;
    /// assert_eq!(sim.world(|world| world.real), 5);
    /// # Ok::<(), Breach>(())
    /// ```
    pub fn restart(&mut self, leftovers: Vec<Leftover<W::Key>>) {
        self.succeed(leftovers);
    }

    /// Looks at the world, or changes it.
    pub fn world<T>(&mut self, look: impl FnOnce(&mut W) -> T) -> T {
        look(&mut self.world.borrow_mut())
    }

    /// Returns the virtual time.
    pub fn now(&self) -> Instant {
        self.shared.now()
    }

    /// Checks that [`World::eventually`] holds now.
    ///
    /// # Errors
    ///
    /// [`Breach`] if it does not.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("../example.txt")]
    /// let mut sim = Simulation::new(Replica::default());
    /// sim.happen(&5)?;
    /// assert!(sim.check_eventually().is_err(), "not yet");
    /// sim.run_until_idle()?;
    /// sim.check_eventually()?;
    /// # Ok::<(), Breach>(())
    /// ```
    pub fn check_eventually(&self) -> Result<(), Breach> {
        guarded(|| self.world.borrow().eventually())
            .and_then(|held| held)
            .map_err(|reason| self.breach(Property::Eventually, &reason))
    }

    /// Lets events happen at their times.
    pub(in crate::simulation) fn plan_arrivals(&mut self, arrivals: &[Arrival<W::Event>]) {
        for Arrival { at, event, .. } in arrivals {
            let task = Task::Event(self.events.len());
            self.events.push(event.clone());
            self.shared.plan(Instant::EPOCH + *at, 0, task);
        }
    }

    pub(in crate::simulation) fn plan_stop(&mut self, at: Duration, stop: Stop) {
        self.stop = Some(stop);
        self.shared.plan(Instant::EPOCH + at, 0, Task::Stop);
    }
}
