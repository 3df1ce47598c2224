//! Tasks on Tokio: throughput compared with `async-channel`, the cost of a get, wake-ups,
//! deadlines.

use std::io;
use std::process::ExitCode;

use requeue_bench::harness::{Contender, Suite, machine};
use requeue_bench::keys::Random;
use requeue_bench::tasks::{
    self, Batches, Behind, Channel, Events, GetThenDone, OneByOne, Shared, StdChannel, Tally,
    Unconstrained, Whence, percentile, wake_task, wake_thread,
};
use requeue_bench::threads::{self, Crew, Shared as _};
use requeue_bench::workloads::{Round, Scale, cpu_time};
use tokio::runtime::Runtime;

fn main() -> io::Result<ExitCode> {
    println!("{}", machine());
    let mut suite = Suite::from_args();
    let current_thread = tasks::current_thread()?;
    let multi_thread = tasks::multi_thread()?;
    suite.group("Tokio, a thread per processor, beside async-channel: wall time per key");
    crews(&mut suite, &multi_thread);
    suite.group("Tokio, one thread, beside async-channel: wall time per key");
    crews(&mut suite, &current_thread);
    suite.group("Tokio, a worker that finds a key at every get: CPU time per key");
    hot_loop(&mut suite, &current_thread);
    suite.group("Wake-up of an idle worker, from the add to the key in hand");
    wake_threads(&mut suite);
    let (one, many) = ("Tokio, one thread", "Tokio, a thread per processor");
    for whence in [Whence::Outside, Whence::Inside] {
        wake_tasks(&mut suite, one, &current_thread, whence);
        wake_tasks(&mut suite, many, &multi_thread, whence);
    }
    suite.group("From an event to the run of its key, p50");
    suite.row("threads", 15, scale(1_000), |Scale { keys, .. }| {
        let event = move |waits| {
            let queue = Events::<requeue_std::WorkQueue<u64>>::new(waits);
            percentile(wake_thread(&queue, keys), 50)
        };
        vec![
            Contender::new("a plain event", move || event(false)),
            Contender::new("a key that waits", move || event(true)),
        ]
    });
    events(&mut suite, one, &current_thread);
    events(&mut suite, many, &multi_thread);
    suite.group("Tokio, a deadline that comes while getters wait: CPU time of the process");
    deadlines(&mut suite, one, &current_thread);
    deadlines(&mut suite, many, &multi_thread);
    Ok(suite.finish())
}

fn crews(suite: &mut Suite, runtime: &Runtime) {
    for count in [1, 2, 8] {
        let crew = Crew {
            producers: count,
            workers: count,
        };
        let work = format!("{count}/{count}");
        suite.row(&work, 5, scale(1_000_000), |Scale { keys, .. }| {
            vec![
                Contender::new("requeue", move || send::<OneByOne>(runtime, crew, keys)),
                Contender::new("async-channel", move || {
                    send::<Channel>(runtime, crew, keys)
                }),
                Contender::new("get then done", move || {
                    send::<GetThenDone>(runtime, crew, keys)
                }),
                Contender::new("batches of 32", move || {
                    send::<Batches>(runtime, crew, keys)
                }),
            ]
        });
    }
}

fn send<Q: Shared + Default>(runtime: &Runtime, crew: Crew, keys: usize) -> Round {
    let keys = new_keys(keys);
    let expected: Tally = keys.iter().copied().collect();
    let (round, seen) = tasks::run::<Tally>(runtime, &Q::default(), keys, crew);
    let seen: Tally = seen.into_iter().sum();
    assert_eq!(seen, expected, "every key arrives once");
    round
}

fn hot_loop(suite: &mut Suite, runtime: &Runtime) {
    for keys in [100, 10_000] {
        let work = format!("{keys} ready");
        suite.row(&work, 51, scale(keys), |Scale { keys, .. }| {
            vec![
                Contender::new("requeue", move || drain::<OneByOne>(runtime, keys)),
                Contender::new("without Tokio's budget", move || {
                    drain::<Unconstrained>(runtime, keys)
                }),
                Contender::new("get then done", move || drain::<GetThenDone>(runtime, keys)),
                Contender::new("batches of 32", move || drain::<Batches>(runtime, keys)),
                Contender::new("requeue on threads", move || drain_on_thread(keys)),
                Contender::new("async-channel", move || drain::<Channel>(runtime, keys)),
            ]
        });
    }
}

fn drain<Q: Shared + Default>(runtime: &Runtime, keys: usize) -> Round {
    let keys = new_keys(keys);
    let (round, seen) = tasks::drain::<Tally>(runtime, &Q::default(), &keys);
    assert_eq!(seen, keys.into_iter().collect(), "every key arrives once");
    round
}

fn drain_on_thread(keys: usize) -> Round {
    let keys = new_keys(keys);
    let operations = keys.len();
    let expected: Tally = keys.iter().copied().collect();
    let queue = threads::OneByOne::default();
    queue.produce(keys);
    queue.close();
    let mut seen = Tally::default();
    let time = cpu_time(|| queue.work(&mut |key| seen.extend([*key])));
    assert_eq!(seen, expected, "every key arrives once");
    Round { time, operations }
}

fn wake_threads(suite: &mut Suite) {
    for percent in [50, 99] {
        let work = format!("a thread, p{percent}");
        suite.row(&work, 5, scale(1_000), |Scale { keys, .. }| {
            vec![
                Contender::new("requeue", move || {
                    let queue = threads::OneByOne::default();
                    percentile(wake_thread(&queue, keys), percent)
                }),
                Contender::new("a channel", move || {
                    percentile(wake_thread(&StdChannel::default(), keys), percent)
                }),
            ]
        });
    }
}

fn wake_tasks(suite: &mut Suite, name: &str, runtime: &Runtime, whence: Whence) {
    let adds = match whence {
        Whence::Outside => "from outside",
        Whence::Inside => "from a task",
    };
    for percent in [50, 99] {
        let work = format!("{name}, {adds}, p{percent}");
        suite.row(&work, 5, scale(1_000), |Scale { keys, .. }| {
            let wake = move |nanos| percentile(nanos, percent);
            vec![
                Contender::new("requeue", move || {
                    wake(wake_task(runtime, &OneByOne::default(), keys, whence))
                }),
                Contender::new("a channel", move || {
                    wake(wake_task(runtime, &Channel::default(), keys, whence))
                }),
            ]
        });
    }
}

fn events(suite: &mut Suite, name: &str, runtime: &Runtime) {
    let p50 = |nanos| percentile(nanos, 50);
    suite.row(name, 15, scale(1_000), |Scale { keys, .. }| {
        let event = move |waits| {
            let queue = Events::<requeue_tokio::WorkQueue<u64>>::new(waits);
            p50(wake_task(runtime, &queue, keys, Whence::Outside))
        };
        vec![
            Contender::new("a plain event", move || event(false)),
            Contender::new("a key that waits", move || event(true)),
        ]
    });
}

fn deadlines(suite: &mut Suite, name: &str, runtime: &Runtime) {
    for (behind, rest) in [
        (Behind::Nothing, "nothing else delayed"),
        (Behind::FarKey, "another key due in an hour"),
    ] {
        let work = format!("{name}, {rest}");
        suite.row(&work, 5, scale(300), |Scale { keys, .. }| {
            let fire = move |getters| tasks::fire(runtime, getters, behind, keys);
            vec![
                Contender::new("1 getter", move || fire(1)),
                Contender::new("1000 getters", move || fire(1_000)),
                Contender::new("Tokio's timer alone", move || tasks::ring(runtime, keys)),
            ]
        });
    }
}

fn new_keys(count: usize) -> Vec<u64> {
    Random::new(Random::any_seed()).keys(count)
}

const fn scale(keys: usize) -> Scale {
    Scale {
        keys,
        operations: keys,
    }
}
