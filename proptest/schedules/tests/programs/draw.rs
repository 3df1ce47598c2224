//! What several threads do to one queue.

use std::time::Duration;

use requeue_proptest::histories::{Operation, Run, Sleeper, at_once};
use requeue_proptest::limiter::{FloatBits, LimiterSpec};
use requeue_proptest::proptest::collection::vec;
use requeue_proptest::proptest::prelude::*;
use requeue_proptest::proptest::sample::select;
use requeue_proptest::subject::{
    Call, Cap, Configuration, GroupOrder, Key, Kind, PolicySpec, Rate,
};
use requeue_schedules::{SECOND, Shares};
use requeue_std::Action;
use requeue_std::binding::Host;
use requeue_std::storage::Storage;

/// The queue, and the steps of each thread. A step picks one of the runs that its thread has;
/// nothing happens if there is none.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) setup: Configuration,
    /// Whether a call that sleeps has to have a reason. A key whose delay has slack may run before
    /// anyone is woken for it.
    pub(crate) is_exact: bool,
    pub(crate) threads: Vec<Vec<Operation>>,
}

/// The keys of all operations. Calls that wait for room add the two after these.
pub(crate) const KEYS: Key = 4;

/// Draws programs whose delays are seconds.
pub(crate) fn programs<Q: Shares>() -> impl Strategy<Value = Program> {
    (setup::<Q>(), any::<bool>()).prop_flat_map(|(setup, is_exact)| {
        let threads = if is_exact { themed(&setup) } else { mixed() };
        threads.prop_map(move |threads| Program {
            setup: setup.clone(),
            is_exact,
            threads,
        })
    })
}

fn setup<Q: Shares>() -> impl Strategy<Value = Configuration> {
    let second = Some(Rate {
        per_second: FloatBits(1.0),
        burst: 1,
    });
    let one = Some(1);
    let caps = vec![(one, None), (one, None), (one, second), (None, second)];
    let policies = vec![(None, false), (None, false), (second, false), (None, true)];
    let rooms = vec![usize::MAX, 2];
    (select(caps), select(policies), select(rooms)).prop_map(|(cap, policy, room)| {
        let (max_active, rate) = cap;
        let (run_rate, hold_failures) = policy;
        let base_ns = SECOND.as_nanos() as u64;
        let max_ns = base_ns * 1000;
        let storage = <<Q::Host as Host>::Storage as Storage>::CAPACITY;
        let has_groups = <<Q::Host as Host>::Priorities as Kind>::GROUPS > 0;
        Configuration {
            storage,
            groups: has_groups.then(|| Cap {
                max_active,
                rate,
                ..Cap::default()
            }),
            policy: PolicySpec {
                run_rate,
                hold_failures,
                ..PolicySpec::default()
            },
            max_keys: storage.map_or(room, |_| usize::MAX),
            ..Configuration::new(LimiterSpec::Exponential { base_ns, max_ns })
        }
    })
}

/// Any operations, and twice as many programs that are short and about the same key.
fn mixed() -> BoxedStrategy<Vec<Vec<Operation>>> {
    let any = vec(at_once(1..8, KEYS, false, SECOND), 2..=4);
    // A race is between two calls on a key that is in a certain state, and nothing else goes on.
    let bouts = (select(OPENINGS.to_vec()), at_once(1..5, KEYS, true, SECOND));
    let duel = vec(
        bouts.prop_map(|(opening, bouts)| [opening, &bouts].concat()),
        2..=3,
    );
    prop_oneof![1 => any, 2 => duel].boxed()
}

/// Calls that wait, and what they wait for: a wake that is lost shows best where little else
/// happens.
fn themed(setup: &Configuration) -> BoxedStrategy<Vec<Vec<Operation>>> {
    let themes: Vec<&[Operation]> = match setup {
        _ if setup.groups.is_some() => vec![OF_GROUPS],
        _ if setup.policy.run_rate.is_some() => vec![KEYS_ONLY, TIMES, ENDS],
        _ => vec![KEYS_ONLY, TIMES, ENDS, STATES, ROOM, EVENTS],
    };
    let is_fixed = setup.storage.is_some();
    select(themes)
        .prop_flat_map(move |theme| {
            let steps = IN_ALL.iter().chain(theme).filter(|step| {
                let is_limited = matches!(step, Operation::LimitKeys(_));
                !is_fixed || !is_limited
            });
            let steps: Vec<Operation> = steps.cloned().collect();
            let first = select(OPENINGS.to_vec());
            let threads = (first, vec(vec(select(steps), 1..=4), 2..=4));
            threads.prop_map(move |(opening, mut threads)| {
                threads[0].splice(0..0, opening.iter().cloned());
                if theme == ROOM && matches!(opening, [Add(_), Add(_)]) {
                    // All others wait for room. The first is dropped, perhaps as it is woken.
                    threads[0].extend([CancelKey(1), Cancel(0)]);
                    for (thread, key) in threads[1..].iter_mut().zip([5, 6, 5]) {
                        thread.insert(0, Start(Call::AddWait(key)));
                    }
                }
                threads
            })
        })
        .boxed()
}

use Operation::*;

const RUN: Run = Run::Pick(0);
const ANEW: Sleeper = Sleeper::New;
const LATER: Duration = Duration::from_secs(2);

/// Steps that bring keys into a state that matters to the calls which follow.
static OPENINGS: [&[Operation]; 11] = [
    &[],
    &[],
    &[Add(1)],
    &[Add(1), Add(2)],
    &[Add(1), Add(4)],
    &[Add(1), TryGet],
    &[Add(1), TryGet, Add(1)],
    &[Add(1), Add(4), TryGet],
    &[AddAfter(1, LATER)],
    &[AddRateLimited(1)],
    &[Add(1), Add(2), Add(3), TryGet, TryGet],
];

/// Steps of every theme.
static IN_ALL: &[Operation] = &[
    Add(1),
    Start(Call::Get),
    Next(RUN, Action::Success, ANEW),
    Complete(RUN, Action::Success),
    Cancel(0),
    Nudge(0),
];

static KEYS_ONLY: &[Operation] = &[
    Start(Call::Get),
    Start(Call::GetTimeout(SECOND)),
    Advance(SECOND),
    Add(2),
    Pause,
    Unpause,
    TryGet,
    GetMany(2, ANEW),
    Complete(RUN, Action::GiveUp),
];

static TIMES: &[Operation] = &[
    Start(Call::Get),
    Start(Call::GetTimeout(SECOND)),
    Advance(SECOND),
    Add(2),
    AddAfter(1, SECOND),
    AddAfter(1, LATER),
    AddAfter(2, SECOND),
    Advance(SECOND),
    Expedite(1),
    CancelDelay(1),
    Complete(RUN, Action::Retry),
    Complete(RUN, Action::RequeueAfter(SECOND)),
];

static ENDS: &[Operation] = &[
    Start(Call::GetTimeout(SECOND)),
    Advance(SECOND),
    Add(2),
    AddAfter(1, SECOND),
    ShutDown,
    Start(Call::Drain),
    Start(Call::DrainTimeout(Duration::ZERO)),
    Complete(RUN, Action::Retry),
];

static STATES: &[Operation] = &[
    Advance(SECOND),
    AddAfter(1, SECOND),
    CancelKey(1),
    CancelDelay(1),
    Start(Call::WaitIdle),
    Start(Call::WaitSettled),
    Start(Call::Flush(1)),
    Start(Call::CancelAndWait(1)),
    Complete(RUN, Action::Retry),
];

static ROOM: &[Operation] = &[
    Add(2),
    Start(Call::AddWait(5)),
    Start(Call::AddWait(6)),
    TryGet,
    Complete(RUN, Action::Retry),
    CancelKey(1),
    LimitKeys(3),
    ShutDown,
];

static EVENTS: &[Operation] = &[
    Start(Call::GetTimeout(SECOND)),
    Advance(SECOND),
    Suspend(1, LATER),
    Resume(1),
    Resume(1),
    Next(RUN, Action::Suspend(SECOND), ANEW),
    Complete(RUN, Action::Suspend(LATER)),
    Complete(RUN, Action::Suspend(SECOND)),
    CancelKey(1),
];

static OF_GROUPS: &[Operation] = &[
    Start(Call::Get),
    Start(Call::GetTimeout(SECOND)),
    Advance(SECOND),
    Add(4),
    Add(2),
    Complete(RUN, Action::Retry),
    Order(GroupOrder::Pause(1)),
    Order(GroupOrder::Unpause(1)),
    Order(GroupOrder::Limit(1, None)),
    Order(GroupOrder::LimitAll(Cap {
        max_active: Some(2),
        weight: 1,
        rate: None,
    })),
    ShutDown,
];
