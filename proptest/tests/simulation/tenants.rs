//! Tenants that hang, flood and change their limits, and a queue whose groups they are.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::time::Duration;

use proptest::prelude::*;
use requeue_core::binding::RandomState;
use requeue_core::binding::{Getter, Next, Ticket, Wake};
use requeue_core::limiter::Exponential;
use requeue_core::priority::Groups;
use requeue_core::storage::Growable;
use requeue_core::{
    Action, AddOptions, Finished, GroupLimits, Instant, Leftover, Queue, Rejected, Scheduled,
};
use requeue_proptest::simulation::{CallFailed, Context, Driven, Keys, Taken, World};

use crate::accounts::{Account, Plan, plan};

/// A tenant, and one of its objects.
pub(crate) type Object = (u8, u8);

const TENANTS: u8 = 4;
const FLOOD: u8 = 12;

/// What is wrong with a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    None,
    /// One key too many is active.
    ExceedsLimits,
    /// A tenant gives one key too many in its turn.
    ServesTwice,
    /// A tenant has a token too many.
    ExceedsRates,
    /// No getter sleeps until a tenant has its next token.
    SleepsOverATokenThatIsEarned,
    /// The end of a run wakes no getter.
    WakesNoneAtTheEndOfARun,
    /// Nor does a limit that is raised, or the end of a pause.
    WakesNoneAfterAChange,
    /// A pause outlasts the shutdown, as far as getters are concerned.
    SleepsThroughADrain,
}

/// A queue with groups, and an account of each that is kept apart from it.
pub(crate) struct Audited {
    defect: Defect,
    queue: Queue<Object, Groups<u8>, Exponential, Growable>,
    accounts: BTreeMap<u8, Account>,
    closed: bool,
    /// The next wake goes nowhere.
    loses_wake: bool,
}

impl Audited {
    pub(crate) fn new(defect: Defect) -> Self {
        let (base, max) = (Duration::from_millis(5), Duration::from_secs(10));
        let limiter = Exponential::new(base, max);
        let hasher = RandomState::default();
        let tenant = |object: &Object| object.0;
        let mut audited = Self {
            defect,
            queue: Queue::growable_with_groups(limiter, (), hasher, 0, tenant),
            accounts: (0..TENANTS).map(|tenant| (tenant, Account::NEW)).collect(),
            closed: false,
            loses_wake: false,
        };
        let limits = audited.limits(Plan::FIRST);
        audited.queue.at(Instant::EPOCH).limit_groups(limits);
        audited
    }

    fn limits(&self, plan: Plan) -> GroupLimits {
        let is = |defect| self.defect == defect;
        let limits = GroupLimits::new()
            .max_active(plan.most + usize::from(is(Defect::ExceedsLimits)))
            .weight(plan.weight + u16::from(is(Defect::ServesTwice)));
        match plan.rate {
            Some((per_second, burst)) => {
                let burst = u32::from(burst) + u32::from(is(Defect::ExceedsRates));
                limits.rate(per_second.into(), burst)
            }
            None => limits,
        }
    }

    /// Sets what a tenant may do.
    fn limit(&mut self, tenant: u8, plan: Plan, now: Instant) {
        self.account(tenant).set_plan(plan, now);
        for account in self.accounts.values_mut() {
            // What a turn is has changed meanwhile.
            account.waits = None;
        }
        let limits = self.limits(plan);
        let limited = self.queue.at(now).limit_group(tenant, Some(limits));
        assert_eq!(limited, Ok(()));
        self.changed();
    }

    fn pause(&mut self, tenant: u8, paused: bool, now: Instant) {
        self.account(tenant).paused = paused;
        let mut session = self.queue.at(now);
        if paused {
            assert_eq!(session.pause_group(tenant), Ok(()));
        } else {
            session.unpause_group(&tenant);
        }
        self.changed();
    }

    fn changed(&mut self) {
        self.loses_wake = self.defect == Defect::WakesNoneAfterAChange;
        self.audit();
    }

    fn account(&mut self, tenant: u8) -> &mut Account {
        self.accounts.entry(tenant).or_insert(Account::NEW)
    }

    /// Sees which tenants could have a key handed out now.
    fn audit(&mut self) {
        for (tenant, account) in &mut self.accounts {
            let ready = self.queue.group(tenant).map_or(0, |group| group.ready);
            // When a tenant with a rate comes back depends on what else becomes due then.
            let has_rate = account.plan.rate.is_some();
            if ready == 0 || has_rate || !account.may_start(self.closed) {
                account.waits = None;
            } else if account.waits.is_none() {
                account.waits = Some(BTreeMap::new());
            }
        }
    }

    fn handed_out(&mut self, tenant: u8, now: Instant) {
        let closed = self.closed;
        let account = self.account(tenant);
        assert!(
            account.may_start(closed) && account.has_token(now),
            "tenant {tenant} has a run too many"
        );
        account.start(now);
        let weight = account.plan.weight;
        for (other, account) in &mut self.accounts {
            if let Some(waits) = &mut account.waits {
                let handed_out = waits.entry(tenant).or_insert(0);
                *handed_out += 1;
                assert!(
                    *handed_out <= weight,
                    "{other} waits for {tenant} a second time"
                );
            }
        }
    }
}

impl Driven<Object> for Audited {
    fn add_with(
        &mut self,
        key: Object,
        options: AddOptions,
        now: Instant,
    ) -> Result<Scheduled, Rejected<Object>> {
        let added = self.queue.at(now).add_with(key, options);
        self.audit();
        added
    }

    fn get(&mut self, now: Instant, getter: &mut Getter) -> Next<Taken<Object>> {
        let mut next = Driven::get(&mut self.queue, now, getter);
        match &mut next {
            Next::Work(work) => self.handed_out(work.key.0, now),
            Next::Wait { until } if self.defect == Defect::SleepsOverATokenThatIsEarned => {
                *until = None
            }
            _ => {}
        }
        self.audit();
        next
    }

    fn leave(&mut self, getter: &mut Getter) {
        Driven::leave(&mut self.queue, getter);
        self.audit();
    }

    fn finish(&mut self, ticket: Ticket, key: &Object, action: Action, now: Instant) -> Finished {
        let finished = self.queue.at(now).finish(ticket, action);
        self.account(key.0).active -= 1;
        self.loses_wake = self.defect == Defect::WakesNoneAtTheEndOfARun;
        self.audit();
        finished
    }

    fn due(&mut self, key: &Object, now: Instant) -> Option<Instant> {
        Driven::due(&mut self.queue, key, now)
    }

    fn shut_down(&mut self, now: Instant) {
        Driven::shut_down(&mut self.queue, now);
        self.loses_wake = self.defect == Defect::SleepsThroughADrain;
        self.closed = true;
        self.audit();
    }

    fn is_drained(&self) -> bool {
        self.queue.is_drained()
    }

    fn take_leftover(&mut self, now: Instant) -> Option<Leftover<Object>> {
        Driven::take_leftover(&mut self.queue, now)
    }

    fn wake(&mut self) -> Wake {
        let wake = Driven::wake(&mut self.queue);
        if take(&mut self.loses_wake) {
            return Wake::NONE;
        }
        wake
    }

    fn holds_back(&self, key: &Object, until: Instant) -> bool {
        let account = &self.accounts[&key.0];
        !account.may_start(self.closed) || !account.has_token_before(until)
    }

    fn assert_valid(&self) {
        self.queue.assert_valid();
    }
}

/// What the objects of tenants are to be, and what they are.
#[derive(Debug, Default)]
pub(crate) struct Tenants {
    wanted: BTreeMap<Object, u32>,
    real: BTreeMap<Object, u32>,
    /// Calls to them are not answered.
    hang: BTreeSet<u8>,
    /// They have no run until that changes.
    stopped: BTreeSet<u8>,
}

#[derive(Clone, Debug)]
pub(crate) enum Event {
    Changes(Object),
    Floods(u8),
    Hangs(u8),
    Recovers(u8),
    Limit(u8, Plan),
    Pause(u8),
    Resume(u8),
}

impl Tenants {
    fn changes(&mut self, object: Object, keys: &Keys<Object>) {
        *self.wanted.entry(object).or_insert(0) += 1;
        let _ = keys.add(object);
    }
}

impl World for Tenants {
    type Key = Object;
    type Event = Event;
    type Error = CallFailed;

    fn event(&self) -> BoxedStrategy<Event> {
        let tenant = || 0..TENANTS;
        prop_oneof![
            8 => (tenant(), 0..FLOOD).prop_map(Event::Changes),
            3 => tenant().prop_map(Event::Floods),
            1 => tenant().prop_map(Event::Hangs),
            1 => tenant().prop_map(Event::Recovers),
            3 => (tenant(), plan()).prop_map(|(tenant, plan)| Event::Limit(tenant, plan)),
            1 => tenant().prop_map(Event::Pause),
            1 => tenant().prop_map(Event::Resume),
        ]
        .boxed()
    }

    fn happen(&mut self, event: &Event, keys: &Keys<Object>) {
        let change = |tenant, change: &dyn Fn(&mut Audited, Instant)| {
            let changed = keys.with_queue(|queue: &mut Audited, now| change(queue, now));
            assert_eq!(changed, Some(()), "the queue of tenant {tenant}");
        };
        match *event {
            Event::Changes(object) => self.changes(object, keys),
            Event::Floods(tenant) => {
                for number in 0..FLOOD {
                    self.changes((tenant, number), keys);
                }
            }
            Event::Hangs(tenant) => drop(self.hang.insert(tenant)),
            Event::Recovers(tenant) => drop(self.hang.remove(&tenant)),
            Event::Limit(tenant, plan) => {
                if plan.most == 0 {
                    self.stopped.insert(tenant);
                }
                change(tenant, &|queue, now| queue.limit(tenant, plan, now));
            }
            Event::Pause(tenant) => {
                self.stopped.insert(tenant);
                change(tenant, &|queue, now| queue.pause(tenant, true, now));
            }
            Event::Resume(tenant) => {
                self.stopped.remove(&tenant);
                change(tenant, &|queue, now| queue.limit(tenant, Plan::FIRST, now));
                change(tenant, &|queue, now| queue.pause(tenant, false, now));
            }
        }
    }

    async fn reconcile(context: Context<Self>, object: Object) -> Result<Action, CallFailed> {
        if context.world(|world| world.hang.contains(&object.0)) {
            context.sleep(Duration::from_secs(60)).await;
        }
        let wanted = context
            .call("read", move |world| world.wanted[&object])
            .await?;
        let write = move |world: &mut Self| world.real.insert(object, wanted);
        context.call("write", write).await?;
        Ok(Action::Success)
    }

    fn eventually(&self) -> Result<(), String> {
        for (object, wanted) in &self.wanted {
            let is_served = !self.hang.contains(&object.0) && !self.stopped.contains(&object.0);
            let real = self.real.get(object);
            if is_served && real != Some(wanted) {
                return Err(format!("{object:?} is {real:?}, wanted {wanted}"));
            }
        }
        Ok(())
    }
}
