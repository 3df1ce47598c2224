//! Time.
use requeue_bench::harness::*;
use requeue_bench::keys::*;
use requeue_bench::port::*;
use requeue_bench::subject::*;
use requeue_bench::workloads::*;
type Fold = foldhash::fast::RandomState;
type Sip = std::hash::RandomState;

fn run<K: Key, A, B, C>(name: &str, scale: Scale, rounds: usize)
where
    A: Workload<K, Ours<K>>,
    B: Workload<K, Port<K, Sip>>,
    C: Workload<K, Port<K, Fold>>,
{
    let filter = std::env::args()
        .skip(1)
        .find(|a| !a.starts_with('-'))
        .unwrap_or_default();
    let work = format!("{name} {} {}", scale.keys, K::NAME);
    if !work.contains(&filter) {
        return;
    }
    let seed = Random::any_seed();
    let mut a = A::set_up(ours(), scale, seed);
    let mut b = B::set_up(Port::default(), scale, seed);
    let mut c = C::set_up(Port::default(), scale, seed);
    let row = compare(
        work,
        vec![
            Contender::new("ours", || a.round()),
            Contender::new("sip", || b.round()),
            Contender::new("fold", || c.round()),
        ],
        rounds,
    );
    print!("{:30}", row.work);
    for f in row.results {
        print!(
            " | {} {:.1} {:.2}x ({:.2}-{:.2})",
            f.name, f.nanos, f.ratio, f.ratios.0, f.ratios.1
        );
    }
    println!();
}
macro_rules! both {
    ($w:ident, K, $name:literal, $keys:expr, $ops:expr, $rounds:expr) => {
        run::<u64, $w<u64, _>, $w<u64, _>, $w<u64, _>>(
            $name,
            Scale {
                keys: $keys,
                operations: $ops,
            },
            $rounds,
        );
        run::<String, $w<String, _>, $w<String, _>, $w<String, _>>(
            $name,
            Scale {
                keys: $keys,
                operations: $ops,
            },
            $rounds,
        );
    };
    ($w:ident, $name:literal, $keys:expr, $ops:expr, $rounds:expr) => {
        run::<u64, $w<_>, $w<_>, $w<_>>(
            $name,
            Scale {
                keys: $keys,
                operations: $ops,
            },
            $rounds,
        );
        run::<String, $w<_>, $w<_>, $w<_>>(
            $name,
            Scale {
                keys: $keys,
                operations: $ops,
            },
            $rounds,
        );
    };
}
fn main() {
    both!(Steady, K, "steady", 100, 200_000, 11);
    both!(Steady, K, "steady", 10_000, 200_000, 11);
    both!(Steady, K, "steady", 1_000_000, 200_000, 11);
    both!(Dedup, K, "dedup", 1_000, 200_000, 11);
    both!(FillDrain, "filldrain", 1_000_000, 1, 5);
    both!(Delayed, "delayed", 1_000, 100_000, 11);
    both!(Delayed, "delayed", 100_000, 1, 11);
    both!(Delayed, "delayed", 1_000_000, 1, 3);
    both!(Sooner, "sooner", 100_000, 1, 11);
    both!(LimitedCycle, "limited", 1, 100_000, 11);
    both!(LimitedCycle, "limited", 10_000, 100_000, 11);
    both!(When, K, "when", 1_000, 100_000, 11);
    both!(When, K, "when", 1_000_000, 100_000, 11);
}
