//! Histories that are drawn from seeds. One that fails is shortened, and printed with its seed.

use std::env;
use std::fmt::Debug;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use tokio::time::Instant;

/// What happened, in order, with the time. Clones are the same.
#[derive(Clone)]
pub(crate) struct Timeline {
    began: Instant,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Timeline {
    pub(crate) fn begin() -> Self {
        Self {
            began: Instant::now(),
            lines: Arc::default(),
        }
    }

    pub(crate) fn note(&self, what: impl AsRef<str>) {
        let at = self.began.elapsed().as_secs_f64();
        let line = format!("{at:>9.3} s  {}", what.as_ref());
        self.lines.lock().unwrap().push(line);
    }

    pub(crate) fn text(&self) -> String {
        self.lines.lock().unwrap().join("\n")
    }
}

/// The timeline of a history, and what is wrong in the end.
pub(crate) type Outcome = (String, Result<(), String>);

/// Runs a history of each seed. `KUBE_SEEDS` is how many seeds there are, `KUBE_SEED` the only one.
///
/// Whatever is drawn comes from the seed: the steps, the faults of links, and the jitter of
/// backoff, resyncs and elections.
pub(crate) fn each_seed<S: Strategy>(seeds: u64, steps: &S, simulate: impl Fn(&S::Value) -> Outcome)
where
    S::Value: Debug,
{
    for seed in chosen(seeds) {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let config = Config {
            failure_persistence: None,
            ..Config::with_cases(1)
        };
        let run = |steps: &S::Value| {
            fastrand::seed(seed);
            // A panic has no timeline; the steps have to do.
            let caught = catch_unwind(AssertUnwindSafe(|| simulate(steps)));
            caught.unwrap_or_else(|_| (String::new(), Err("it panicked".to_owned())))
        };
        let ended = TestRunner::new_with_rng(config, rng).run(steps, |steps| {
            let (_, wrong) = run(&steps);
            wrong.map_err(TestCaseError::fail)
        });
        if let Err(TestError::Fail(_, steps)) = ended {
            let (timeline, wrong) = run(&steps);
            panic!("KUBE_SEED={seed}: {wrong:?}\n{steps:#?}\n{timeline}");
        }
    }
}

fn chosen(seeds: u64) -> Range<u64> {
    let number = |name| env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    match number("KUBE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("KUBE_SEEDS").unwrap_or(seeds),
    }
}
