//! Time, compared with crates that do a part of the same work.

use std::process::ExitCode;

use requeue_bench::harness::{Contender, Suite, machine};
use requeue_bench::keys::{Key, Random};
use requeue_bench::peers::{Channel, Delays, governor, governor_at_best, keyed_limiter};
use requeue_bench::subject::ours;
use requeue_bench::threads::{self, Batches, Crew, OneByOne, Shared};
use requeue_bench::workloads::{Delayed, Round, Scale, Sooner, When, Workload};

type Fold = foldhash::fast::RandomState;

fn main() -> ExitCode {
    println!("{}", machine());
    let mut suite = Suite::from_args();
    suite.group("Deadlines, beside tokio-util's DelayQueue, which drops no duplicates");
    delays::<u64>(&mut suite);
    delays::<String>(&mut suite);
    suite.group("A limiter per key, beside governor's keyed check");
    limiters::<u64>(&mut suite);
    limiters::<String>(&mut suite);
    suite.group("Threads, u64 keys, beside crossbeam's channel, which drops no duplicates");
    channels(&mut suite);
    suite.finish()
}

fn delays<K: Key>(suite: &mut Suite) {
    for keys in [1_000, 100_000, 1_000_000] {
        let work = format!("delay, expire, take {keys}, {}", K::NAME);
        let scale = Scale {
            keys,
            operations: 20_000,
        };
        suite.row(&work, if keys > 500_000 { 5 } else { 15 }, scale, |scale| {
            let seed = Random::any_seed();
            let mut ours = Delayed::<K, _>::set_up(ours::<K, Fold>(), scale, seed);
            let mut contenders = vec![Contender::new("requeue", move || ours.round())];
            if let Ok(mut delays) = Delays::<K>::new(scale, seed) {
                contenders.push(Contender::new("DelayQueue", move || delays.expire()));
            }
            contenders
        });
    }
    let scale = Scale {
        keys: 100_000,
        operations: 1,
    };
    suite.row(
        &format!("an earlier deadline, 100000 waiting, {}", K::NAME),
        15,
        scale,
        |scale| {
            let seed = Random::any_seed();
            let mut ours = Sooner::<K, _>::set_up(ours::<K, Fold>(), scale, seed);
            let mut contenders = vec![Contender::new("requeue", move || ours.round())];
            if let Ok(mut delays) = Delays::<K>::new(scale, seed) {
                contenders.push(Contender::new("DelayQueue", move || delays.sooner()));
            }
            contenders
        },
    );
}

fn limiters<K: Key>(suite: &mut Suite) {
    for keys in [1_000, 1_000_000] {
        let scale = Scale {
            keys,
            operations: 50_000,
        };
        suite.row(
            &format!("`KeyedLimiter::when`, {keys} known, {}", K::NAME),
            15,
            scale,
            |scale| {
                let seed = Random::any_seed();
                vec![
                    Contender::new("requeue", keyed_limiter::<K>(scale, seed)),
                    Contender::new("governor", governor::<K>(scale, seed)),
                    Contender::new("governor at best", governor_at_best::<K>(scale, seed)),
                ]
            },
        );
        suite.row(
            &format!("`add_rate_limited`, {keys} waiting, {}", K::NAME),
            15,
            scale,
            |scale| {
                let seed = Random::any_seed();
                let mut ours = When::<K, _>::set_up(ours::<K, Fold>(), scale, seed);
                vec![
                    Contender::new("requeue", move || ours.round()),
                    Contender::new("governor", governor::<K>(scale, seed)),
                    Contender::new("governor at best", governor_at_best::<K>(scale, seed)),
                ]
            },
        );
    }
}

fn channels(suite: &mut Suite) {
    let scale = Scale {
        keys: 1_000_000,
        operations: 1,
    };
    for count in [1, 2, 8] {
        let crew = Crew {
            producers: count,
            workers: count,
        };
        suite.row(&format!("{count}/{count}, one by one"), 5, scale, |scale| {
            beside_channel(crew, scale, OneByOne::default)
        });
        suite.row(
            &format!("{count}/{count}, batches of 32"),
            5,
            scale,
            |scale| beside_channel(crew, scale, Batches::default),
        );
    }
}

fn beside_channel<Q: Shared<u64> + 'static>(
    crew: Crew,
    scale: Scale,
    ours: fn() -> Q,
) -> Vec<Contender<'static>> {
    vec![
        Contender::new("requeue", move || round(&ours(), crew, scale)),
        Contender::new("crossbeam", move || round(&Channel::default(), crew, scale)),
    ]
}

fn round(queue: &impl Shared<u64>, crew: Crew, scale: Scale) -> Round {
    let keys = Random::new(Random::any_seed()).keys(scale.keys);
    threads::run(queue, keys, crew, || {
        |key: &u64| {
            core::hint::black_box(key);
        }
    })
}
