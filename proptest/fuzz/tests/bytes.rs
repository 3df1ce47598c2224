//! Every target on stable Rust: on the files of its corpus, and on bytes that look random.
//!
//! `REQUEUE_SOAK=20` tries twenty times as many, `REQUEUE_SEED=7` others.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::env;
use std::fs;
use std::path::Path;

use fastrand::Rng;
use requeue_proptest::rounds;

fn corpus(name: &str, target: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    let mut files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        target(&fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files > 0, "there is a corpus");
}

fn random(target: fn(&[u8])) {
    let seed = env::var("REQUEUE_SEED").ok();
    let seed = seed.and_then(|text| text.parse().ok()).unwrap_or(SEED);
    let count = rounds(COUNT);
    println!("{count} strings of bytes, REQUEUE_SEED={seed}");
    let mut draws = Rng::with_seed(seed);
    for _ in 0..count {
        let length = draws.u64(..LENGTH_MAX);
        let words = (0..length).map(|_| draws.u64(..).to_le_bytes());
        target(&words.flatten().collect::<Vec<u8>>());
    }
}

const SEED: u64 = 0x7265_7175_6575_6521;
/// How many strings.
const COUNT: u32 = 2000;
/// In words of eight bytes.
const LENGTH_MAX: u64 = 80;

macro_rules! targets {
    ($($name:ident)+) => {
        $(
            mod $name {
                #[test]
                fn corpus() {
                    super::corpus(stringify!($name), requeue_fuzz::$name);
                }

                #[test]
                fn random() {
                    super::random(requeue_fuzz::$name);
                }
            }
        )+
    };
}

targets! {
    queue clock limiters backoff
}
