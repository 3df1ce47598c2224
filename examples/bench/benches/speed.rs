//! Time, compared with the port with two hashers.

use std::process::ExitCode;

use requeue_bench::harness::{Contender, Suite, machine};
use requeue_bench::keys::{Key, Random};
use requeue_bench::port::{Port, SharedPort};
use requeue_bench::subject::ours;
use requeue_bench::threads::{self, BATCH, Batches, Crew, GetThenDone, Numbers, OneByOne, Shared};
use requeue_bench::workloads::{
    Dedup, Delayed, FillDrain, LimitedCycle, Scale, Sooner, Steady, When, Workload,
};

type Fold = foldhash::fast::RandomState;
type Sip = std::hash::RandomState;

fn main() -> ExitCode {
    println!("{}", machine());
    let mut suite = Suite::from_args();
    single::<u64>(&mut suite, "One thread, u64 keys: CPU time per key");
    single::<String>(&mut suite, "One thread, String keys: CPU time per key");
    threaded(&mut suite);
    suite.finish()
}

/// One row: the same workload on requeue, on the port with SipHash and on the port with foldhash.
macro_rules! row {
    (
        $suite:ident, $Workload:ident<$K:ident>, $work:expr, $rounds:expr, $scale:expr
    ) => {
        $suite.row($work, $rounds, $scale, |scale| {
            let seed = Random::any_seed();
            let mut ours = $Workload::<$K, _>::set_up(ours::<$K, Fold>(), scale, seed);
            let mut sip = $Workload::<$K, _>::set_up(Port::<$K, Sip>::default(), scale, seed);
            let mut fold = $Workload::<$K, _>::set_up(Port::<$K, Fold>::default(), scale, seed);
            vec![
                Contender::new("requeue", move || ours.round()),
                Contender::new("port, SipHash", move || sip.round()),
                Contender::new("port, foldhash", move || fold.round()),
            ]
        });
    };
}

fn single<K: Key>(suite: &mut Suite, title: &'static str) {
    suite.group(title);
    steady::<K>(suite);
    delays::<K>(suite);
    failures::<K>(suite);
}

fn steady<K: Key>(suite: &mut Suite) {
    for keys in [100, 1_000, 10_000, 100_000, 1_000_000] {
        let work = format!("steady, {keys} waiting");
        row!(suite, Steady<K>, &work, 25, scale(keys, 50_000));
    }
    let (keys, operations) = (1_000, 50_000);
    row!(
        suite,
        Dedup<K>,
        "dedup hit, 1000 keys",
        25,
        scale(keys, operations)
    );
    let keys = 1_000_000;
    row!(
        suite,
        FillDrain<K>,
        "fill and drain 1000000",
        5,
        scale(keys, keys)
    );
}

fn delays<K: Key>(suite: &mut Suite) {
    for (keys, rounds) in [(1_000, 25), (100_000, 15), (1_000_000, 5)] {
        let work = format!("delay, expire, take {keys}");
        row!(suite, Delayed<K>, &work, rounds, scale(keys, 20_000));
    }
    let work = "an earlier deadline, 100000 waiting";
    row!(suite, Sooner<K>, work, 15, scale(100_000, 1));
}

fn failures<K: Key>(suite: &mut Suite) {
    for keys in [1, 10_000] {
        let work = format!("fail, wait, get, forget, done; {keys} waiting");
        row!(suite, LimitedCycle<K>, &work, 25, scale(keys, 20_000));
    }
    for keys in [1_000, 1_000_000] {
        let work = format!("fail again, {keys} waiting");
        row!(suite, When<K>, &work, 15, scale(keys, 50_000));
    }
}

const fn scale(keys: usize, operations: usize) -> Scale {
    Scale { keys, operations }
}

fn threaded(suite: &mut Suite) {
    suite.group("Threads, u64 keys: wall time per key");
    for crew in [1, 2, 8].map(|count| Crew {
        producers: count,
        workers: count,
    }) {
        let scale = Scale {
            keys: 1_000_000,
            operations: 1,
        };
        let count = crew.workers;
        suite.row(
            &format!("{count}/{count}, done with the next get"),
            5,
            scale,
            |scale| against_port::<_, 1>(crew, scale, OneByOne::default),
        );
        suite.row(
            &format!("{count}/{count}, get then done"),
            5,
            scale,
            |scale| against_port::<_, 1>(crew, scale, GetThenDone::default),
        );
        suite.row(
            &format!("{count}/{count}, batches of 32"),
            5,
            scale,
            |scale| against_port::<_, BATCH>(crew, scale, Batches::default),
        );
    }
}

fn against_port<Q: Shared<u64> + 'static, const COUNT: usize>(
    crew: Crew,
    scale: Scale,
    ours: fn() -> Q,
) -> Vec<Contender<'static>> {
    vec![
        Contender::new("requeue", move || round(&ours(), crew, scale)),
        Contender::new("port, SipHash", move || {
            round(&SharedPort::<u64, Sip>::default(), crew, scale)
        }),
        Contender::new("port, foldhash", move || {
            round(&SharedPort::<u64, Fold>::default(), crew, scale)
        }),
        Contender::new("numbers behind a lock", move || {
            round(&Numbers::<u64, COUNT>::default(), crew, scale)
        }),
    ]
}

fn round(queue: &impl Shared<u64>, crew: Crew, scale: Scale) -> requeue_bench::workloads::Round {
    let keys = Random::new(Random::any_seed()).keys(scale.keys);
    threads::run(queue, keys, crew, || {
        |key: &u64| {
            core::hint::black_box(key);
        }
    })
}
