//! Tenants that hang, flood and change their limits, and a queue whose groups they are.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use requeue_core::binding::{Effect, Getter, Next, Ticket, Wake};
use requeue_core::{
    Action, AddOptions, Finished, GroupLimits, Groups, Growable, Instant, ItemExponentialFailure,
    Leftover, NoMetrics, NotActive, Queue, RandomState, Rejected, Scheduled,
};
use requeue_proptest::simulation::{CallFailed, Context, Driven, Keys, Taken, World};

/// A tenant, and one of its objects.
pub(crate) type Object = (u8, u8);

const TENANTS: u8 = 4;
const FLOOD: u8 = 12;
/// How many keys of a tenant are active at most, at first.
const MOST: usize = 2;

/// What is wrong with a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    None,
    /// One key too many is active.
    ExceedsLimits,
    /// A tenant gives two keys in its turn.
    ServesTwice,
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
    queue: Queue<Object, Growable<RandomState, Groups<u8>>, ItemExponentialFailure>,
    accounts: BTreeMap<u8, Account>,
    closed: bool,
}

#[derive(Debug)]
struct Account {
    most: usize,
    paused: bool,
    active: usize,
    /// It has had a key to hand out since, and these tenants have handed out one each.
    waits: Option<BTreeSet<u8>>,
}

impl Account {
    const NEW: Self = Self {
        most: MOST,
        paused: false,
        active: 0,
        waits: None,
    };

    fn may_start(&self, closed: bool) -> bool {
        self.active < self.most.max(usize::from(closed)) && (closed || !self.paused)
    }
}

impl Audited {
    pub(crate) fn new(defect: Defect) -> Self {
        let (base, max) = (Duration::from_millis(5), Duration::from_secs(10));
        let limiter = ItemExponentialFailure::new(base, max);
        let hasher = RandomState::default();
        let tenant = |object: &Object| object.0;
        let mut audited = Self {
            defect,
            queue: Queue::growable_with_groups(limiter, NoMetrics, hasher, 0, tenant),
            accounts: (0..TENANTS).map(|tenant| (tenant, Account::NEW)).collect(),
            closed: false,
        };
        let limits = audited.limits(MOST);
        let _ = audited.queue.limit_groups(limits, Instant::EPOCH);
        audited
    }

    fn limits(&self, most: usize) -> GroupLimits {
        let limits = GroupLimits::new();
        match self.defect {
            Defect::ExceedsLimits => limits.max_active(most + 1),
            Defect::ServesTwice => limits.max_active(most).weight(2),
            _ => limits.max_active(most),
        }
    }

    /// Sets how many keys of a tenant are active at most.
    fn limit(&mut self, tenant: u8, most: usize, now: Instant) -> Effect<()> {
        self.account(tenant).most = most;
        let limits = self.limits(most);
        let limited = self.queue.limit_group(tenant, Some(limits), now);
        self.changed(limited.map(|limited| assert_eq!(limited, Ok(()))))
    }

    fn pause(&mut self, tenant: u8, paused: bool, now: Instant) -> Effect<()> {
        self.account(tenant).paused = paused;
        let effect = if paused {
            let paused = self.queue.pause_group(tenant, now);
            paused.map(|paused| assert_eq!(paused, Ok(())))
        } else {
            self.queue.resume_group(tenant, now)
        };
        self.changed(effect)
    }

    fn changed(&mut self, mut effect: Effect<()>) -> Effect<()> {
        if self.defect == Defect::WakesNoneAfterAChange {
            effect.wake = Wake::NONE;
        }
        self.audited(effect)
    }

    fn account(&mut self, tenant: u8) -> &mut Account {
        self.accounts.entry(tenant).or_insert(Account::NEW)
    }

    /// Sees which tenants could have a key handed out now.
    fn audited<T>(&mut self, effect: Effect<T>) -> Effect<T> {
        for (tenant, account) in &mut self.accounts {
            let ready = self.queue.group(tenant).map_or(0, |group| group.ready);
            if ready == 0 || !account.may_start(self.closed) {
                account.waits = None;
            } else if account.waits.is_none() {
                account.waits = Some(BTreeSet::new());
            }
        }
        effect
    }

    fn handed_out(&mut self, tenant: u8) {
        let closed = self.closed;
        let account = self.account(tenant);
        assert!(
            account.may_start(closed),
            "tenant {tenant} has a run too many"
        );
        account.active += 1;
        account.waits = None;
        for (other, account) in &mut self.accounts {
            if let Some(waits) = &mut account.waits {
                let is_new = waits.insert(tenant);
                assert!(is_new, "{other} waits for {tenant} a second time");
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
    ) -> Effect<Result<Scheduled, Rejected<Object>>> {
        let added = self.queue.add_with(key, options, now);
        self.audited(added)
    }

    fn get(&mut self, now: Instant, getter: &mut Getter) -> Effect<Next<Taken<Object>>> {
        let next = Driven::get(&mut self.queue, now, getter);
        if let Next::Work(work) = &next.value {
            self.handed_out(work.key.0);
        }
        self.audited(next)
    }

    fn finish(
        &mut self,
        ticket: Ticket,
        key: &Object,
        action: Action,
        now: Instant,
    ) -> Effect<Result<Finished, NotActive>> {
        let mut finished = self.queue.finish(ticket, action, now);
        self.account(key.0).active -= 1;
        if self.defect == Defect::WakesNoneAtTheEndOfARun {
            finished.wake = Wake::NONE;
        }
        self.audited(finished)
    }

    fn due(&mut self, key: &Object, now: Instant) -> Effect<Option<Instant>> {
        Driven::due(&mut self.queue, key, now)
    }

    fn shut_down(&mut self, now: Instant) -> Effect<()> {
        let mut effect = Driven::shut_down(&mut self.queue, now);
        if self.defect == Defect::SleepsThroughADrain {
            effect.wake = Wake::NONE;
        }
        self.closed = true;
        self.audited(effect)
    }

    fn is_drained(&self) -> bool {
        self.queue.is_drained()
    }

    fn take_leftover(&mut self, now: Instant) -> Effect<Option<Leftover<Object>>> {
        Driven::take_leftover(&mut self.queue, now)
    }

    fn holds_back(&self, key: &Object) -> bool {
        !self.accounts[&key.0].may_start(self.closed)
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
    Limit(u8, usize),
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
            2 => (tenant(), 0..4usize).prop_map(|(tenant, most)| Event::Limit(tenant, most)),
            1 => tenant().prop_map(Event::Pause),
            1 => tenant().prop_map(Event::Resume),
        ]
        .boxed()
    }

    fn happen(&mut self, event: &Event, keys: &Keys<Object>) {
        let change = |tenant, change: &dyn Fn(&mut Audited, Instant) -> Effect<()>| {
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
            Event::Limit(tenant, most) => {
                if most == 0 {
                    self.stopped.insert(tenant);
                }
                change(tenant, &|queue, now| queue.limit(tenant, most, now));
            }
            Event::Pause(tenant) => {
                self.stopped.insert(tenant);
                change(tenant, &|queue, now| queue.pause(tenant, true, now));
            }
            Event::Resume(tenant) => {
                self.stopped.remove(&tenant);
                change(tenant, &|queue, now| queue.limit(tenant, MOST, now));
                change(tenant, &|queue, now| queue.pause(tenant, false, now));
            }
        }
    }

    async fn reconcile(context: Context<Self>, object: Object) -> Result<Action, CallFailed> {
        if context.world(|world| world.hang.contains(&object.0)) {
            context.sleep(Duration::from_secs(60)).await;
        }
        let wanted = context.call("read", |world| world.wanted[&object]).await?;
        let write = |world: &mut Self| world.real.insert(object, wanted);
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
