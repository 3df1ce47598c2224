//! Whatever a benchmark does, ours and the port hand out the same keys in the same order.

// A lock that a failed test has poisoned fails the test again.
#![allow(clippy::unwrap_used)]

use requeue_bench::keys::Key;
use requeue_bench::port::Port;
use requeue_bench::subject::{Subject, Traced, ours};
use requeue_bench::workloads::{
    Dedup, Delayed, FillDrain, LimitedCycle, Scale, Sooner, Steady, When, Workload,
};

type Fold = foldhash::fast::RandomState;

const SCALE: Scale = Scale {
    keys: 300,
    operations: 1_000,
};

/// What a subject hands out in three rounds of a workload, and after that.
fn handed_out<K: Key, Q, W>(subject: Q) -> Vec<K>
where
    Q: Subject<K>,
    W: Workload<K, Traced<Q, K>>,
{
    let mut workload = W::set_up(Traced::new(subject), SCALE, 1);
    for _ in 0..3 {
        assert!(workload.round().operations >= SCALE.operations);
    }
    let mut subject = workload.into_subject();
    while subject.get(u64::MAX / 2).is_some() {}
    subject.handed_out().to_vec()
}

macro_rules! agree {
    ($($test:ident: $Workload:ident),* $(,)?) => {$(
        #[test]
        fn $test() {
            agree::<u64, $Workload<_, _>, $Workload<_, _>>();
            agree::<String, $Workload<_, _>, $Workload<_, _>>();
        }
    )*};
}

fn agree<K: Key, A, B>()
where
    A: Workload<K, Traced<requeue_bench::subject::Ours<K>, K>>,
    B: Workload<K, Traced<Port<K, Fold>, K>>,
{
    let ours = handed_out::<K, _, A>(ours());
    let port = handed_out::<K, _, B>(Port::default());
    assert!(ours.len() >= SCALE.keys, "there is something to compare");
    assert!(ours == port, "{} against {} keys", ours.len(), port.len());
}

agree! {
    steady: Steady,
    dedup: Dedup,
    fill_and_drain: FillDrain,
    delay_and_expire: Delayed,
    earlier_deadlines: Sooner,
    fail_and_forget: LimitedCycle,
    fail_again: When,
}

mod threads {
    use std::collections::HashSet;
    use std::sync::Mutex;

    use requeue_bench::keys::Random;
    use requeue_bench::port::SharedPort;
    use requeue_bench::threads::{Batches, Crew, GetThenDone, OneByOne, Shared, run};

    /// Every key reaches one worker, however many there are.
    #[track_caller]
    fn reaches_every_key<Q: Shared<u64> + Default>() {
        for (producers, workers) in [(1, 1), (2, 3), (8, 8)] {
            let keys: Vec<u64> = Random::new(7).keys(1_000);
            let seen = Mutex::new(Vec::new());
            let crew = Crew { producers, workers };
            let round = run(&Q::default(), keys.clone(), crew, || {
                |key: &u64| seen.lock().unwrap().push(*key)
            });
            let seen = seen.into_inner().unwrap();
            assert_eq!((round.operations, seen.len()), (keys.len(), keys.len()));
            let seen: HashSet<u64> = seen.into_iter().collect();
            assert_eq!(seen, keys.into_iter().collect());
        }
    }

    #[test]
    fn one_by_one() {
        reaches_every_key::<OneByOne<u64>>();
    }

    #[test]
    fn get_then_done() {
        reaches_every_key::<GetThenDone<u64>>();
    }

    #[test]
    fn batches() {
        reaches_every_key::<Batches<u64>>();
    }

    #[test]
    fn port() {
        reaches_every_key::<SharedPort<u64, super::Fold>>();
    }
}

mod tasks {
    use std::collections::HashSet;

    use requeue_bench::keys::Random;
    use requeue_bench::tasks::{
        Batches, Channel, GetThenDone, OneByOne, Shared, Unconstrained, current_thread, drain,
        multi_thread, run,
    };
    use requeue_bench::threads::Crew;

    /// Every key reaches one worker, on either runtime and however many workers there are.
    #[track_caller]
    fn reaches_every_key<Q: Shared + Default>() {
        let keys: Vec<u64> = Random::new(7).keys(1_000);
        let added: HashSet<u64> = keys.iter().copied().collect();
        for runtime in [current_thread().unwrap(), multi_thread().unwrap()] {
            for (producers, workers) in [(1, 1), (2, 3), (8, 8)] {
                let crew = Crew { producers, workers };
                let (round, seen) = run::<Vec<u64>>(&runtime, &Q::default(), keys.clone(), crew);
                let seen = seen.concat();
                assert_eq!((round.operations, seen.len()), (keys.len(), keys.len()));
                assert_eq!(seen.into_iter().collect::<HashSet<u64>>(), added);
            }
            let (_, seen) = drain::<Vec<u64>>(&runtime, &Q::default(), &keys);
            assert!(seen == keys, "one worker gets the keys in their order");
        }
    }

    #[test]
    fn one_by_one() {
        reaches_every_key::<OneByOne>();
    }

    #[test]
    fn unconstrained() {
        reaches_every_key::<Unconstrained>();
    }

    #[test]
    fn get_then_done() {
        reaches_every_key::<GetThenDone>();
    }

    #[test]
    fn batches() {
        reaches_every_key::<Batches>();
    }

    #[test]
    fn channel() {
        reaches_every_key::<Channel>();
    }
}
