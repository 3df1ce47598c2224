//! What the steps of a story mean. The README explains the language: operations have the names and
//! arguments that they have in `requeue_core`.

use std::str::FromStr;
use std::time::Duration;

use requeue_core::{Action, AddOptions, Instant};

use crate::histories::MERGES;
use crate::limiter::{FloatBits, LimiterSpec};
use crate::operation::{Arguments, Key, Left, Operation, ROWS, Run, Ticket, left_over};
use crate::subject::{Cap, Configuration, PolicySpec, Rate};

/// What the limiter of a queue does of which a story says nothing.
pub(crate) const BACKOFF: LimiterSpec = LimiterSpec::Exponential {
    base_ns: 1_000_000,
    max_ns: 1_000_000_000,
};

const ACTIONS: &str =
    "action (Release, Success, GiveUp, Retry, RequeueAfter, Snooze, Suspend, poll)";

/// What a line does.
pub(crate) enum Step {
    Queue(Configuration),
    Room(Key),
    Operation(Operation),
}

pub(super) fn time(word: &str) -> Option<Duration> {
    if word == "never" {
        return Some(Duration::MAX);
    }
    let unit = word.find(|c: char| !c.is_ascii_digit())?;
    let (count, unit) = word.split_at(unit);
    let count = count.parse().ok()?;
    Some(match unit {
        "ns" => Duration::from_nanos(count),
        "ms" => Duration::from_millis(count),
        "s" => Duration::from_secs(count),
        _ => return None,
    })
}

/// Reads a step. `last` knows the number of the last run of a key.
pub(crate) fn step(text: &str, last: &dyn Fn(Key) -> u64) -> Result<Step, String> {
    let words = text.split_whitespace();
    let mut words = Words {
        rest: words.map(|word| word.trim_end_matches(',')).collect(),
        last,
        wrong: None,
    };
    let step = match words.word() {
        "queue" => Step::Queue(words.configuration()),
        "room" => Step::Room(words.parsed()),
        verb => {
            let is_call = verb == "start";
            let begin = match is_call {
                true => format!("{verb} {}", words.word()),
                false => String::from(verb),
            };
            let row = ROWS.iter().find(|row| row.words == begin);
            let row = row.ok_or_else(|| format!("{begin:?} is no step"))?;
            Step::Operation((row.make)(&mut words))
        }
    };
    match (words.wrong.take(), words.word()) {
        (None, "") => Ok(step),
        (Some(wrong), _) => Err(wrong),
        (None, more) => Err(format!("{more:?} is too much")),
    }
}

/// The words of a step that have not been read yet.
struct Words<'s> {
    rest: Vec<&'s str>,
    last: &'s dyn Fn(Key) -> u64,
    /// The first word that could not be read.
    wrong: Option<String>,
}

impl<'s> Words<'s> {
    /// Takes the next word, which is empty if there is none.
    fn word(&mut self) -> &'s str {
        let count = self.rest.len().min(1);
        self.rest.drain(..count).next().unwrap_or_default()
    }

    fn read<T: Default>(&mut self, what: &str, read: impl FnOnce(&str) -> Option<T>) -> T {
        let word = self.word();
        read(word).unwrap_or_else(|| {
            self.is_no(word, what);
            T::default()
        })
    }

    fn is_no(&mut self, word: &str, what: &str) {
        self.wrong.get_or_insert(format!("{word:?} is no {what}"));
    }

    fn parsed<T: FromStr + Default>(&mut self) -> T {
        self.read("number", |word| word.parse().ok())
    }

    fn nanos(&mut self) -> u64 {
        (Instant::EPOCH + self.delay()).as_nanos()
    }

    /// Takes what follows a word, wherever that is.
    fn given<T>(&mut self, name: &str, read: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let at = self.rest.iter().position(|word| *word == name)?;
        let following = self.rest.split_off(at + 1);
        self.rest.truncate(at);
        let mut before = std::mem::replace(&mut self.rest, following);
        let value = read(self);
        before.append(&mut self.rest);
        self.rest = before;
        Some(value)
    }

    fn has(&mut self, name: &str) -> bool {
        self.given(name, |_| ()).is_some()
    }

    /// What comes before the first word that is no key.
    fn several<T>(&mut self, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let is_key = |word: &&&str| word.starts_with(|c: char| c.is_ascii_digit());
        let count = self.rest.iter().take_while(is_key).count();
        (0..count).map(|_| one(self)).collect()
    }

    /// So many runs a second, of which one at once, or as many as the burst.
    fn rate(&mut self) -> Rate {
        Rate {
            per_second: FloatBits(self.parsed()),
            burst: self.given("burst", Self::parsed).unwrap_or(1),
        }
    }

    fn limiter(&mut self) -> LimiterSpec {
        let exponential = self.given("backoff", |it| LimiterSpec::Exponential {
            base_ns: it.nanos(),
            max_ns: it.nanos(),
        });
        let fast_slow = self.given("fast", |it| LimiterSpec::FastSlow {
            max_fast_attempts: it.parsed(),
            fast_ns: it.nanos(),
            slow_ns: it.nanos(),
        });
        match (exponential, fast_slow) {
            (Some(one), Some(other)) => LimiterSpec::MaxOf {
                limiters: vec![one, other],
            },
            (one, other) => one.or(other).unwrap_or(BACKOFF),
        }
    }

    fn configuration(&mut self) -> Configuration {
        let mut made = Configuration::new(self.limiter());
        made.policy = self.policy();
        made.metrics = !self.has("no_metrics");
        let due_keys = self.given("due_keys", Self::parsed);
        made.due_keys_max = due_keys.unwrap_or(made.due_keys_max);
        let records = self.given("failure_records", Self::parsed);
        made.failure_records_max = records.unwrap_or(made.failure_records_max);
        made
    }
}

impl Arguments for Words<'_> {
    fn key(&mut self) -> Key {
        self.parsed()
    }

    fn keys(&mut self) -> Vec<Key> {
        self.several(Self::parsed)
    }

    fn other_key(&mut self) -> Key {
        self.parsed()
    }

    /// A run of a key: the last, or the one that is named. Or the first that is under way.
    fn run(&mut self) -> Run {
        let last = self.last;
        if self.has("any") {
            return Run::Pick(0);
        }
        let (key, run) = self.read("run", |word| {
            let (key, run) = word.split_once('#').unwrap_or((word, ""));
            let key = key.parse().ok()?;
            Some((key, run.parse().unwrap_or_else(|_| last(key))))
        });
        Run::Of(Ticket { key, run })
    }

    fn runs(&mut self) -> Vec<Run> {
        self.several(Self::run)
    }

    /// Counted from 1.
    fn waiting(&mut self) -> u8 {
        self.read("place", |word| word.parse::<u8>().ok()?.checked_sub(1))
    }

    fn action(&mut self) -> Action {
        let action = match self.word() {
            "Release" => Action::Release,
            "Success" => Action::Success,
            "GiveUp" => Action::GiveUp,
            "Retry" => Action::Retry,
            "RequeueAfter" => Action::RequeueAfter(self.delay()),
            "Snooze" => Action::Snooze(self.delay()),
            "Suspend" => Action::Suspend(self.delay()),
            "poll" => Action::poll(self.delay(), self.delay()),
            other => {
                self.is_no(other, ACTIONS);
                Action::Release
            }
        };
        let slack = self.given("slack", Self::parsed);
        slack.map_or(action, |slack| action.with_slack(slack))
    }

    fn options(&mut self) -> AddOptions {
        let merge = MERGES.into_iter().find(|it| self.has(&format!("{it:?}")));
        AddOptions {
            after: self.given("after", Self::delay),
            rate_limited: self.has("rate_limited"),
            priority: self.given("level", Self::parsed),
            merge: merge.unwrap_or_default(),
            slack: self.given("slack", Self::parsed).unwrap_or_default(),
        }
    }

    fn left(&mut self) -> Left {
        let key = self.parsed();
        let left = self.given("after", Self::delay).unwrap_or_default();
        let failures = self.given("failures", Self::parsed).unwrap_or_default();
        let level = self.given("level", Self::parsed).unwrap_or_default();
        left_over(key, left, failures, level)
    }

    fn delay(&mut self) -> Duration {
        self.read("time, such as 5ms", time)
    }

    fn instant(&mut self) -> Instant {
        Instant::EPOCH + self.delay()
    }

    fn age(&mut self) -> Option<Duration> {
        Some(self.delay())
    }

    fn cap(&mut self) -> Cap {
        Cap {
            max_active: self.given("max_active", Self::parsed),
            rate: self.given("rate", Self::rate),
            ..Cap::default()
        }
    }

    fn own_cap(&mut self) -> Option<Cap> {
        Some(self.cap())
    }

    fn policy(&mut self) -> PolicySpec {
        PolicySpec {
            cool_down_ns: self.given("cool_down", Self::nanos).unwrap_or_default(),
            hold_failures: self.has("hold_failures"),
            run_rate: self.given("run_rate", Self::rate),
        }
    }

    fn number(&mut self, drawn: &[usize]) -> usize {
        match drawn {
            [only] if self.rest.is_empty() => *only,
            _ => self.read("number", |word| match word {
                "any" => Some(usize::MAX),
                number => number.parse().ok(),
            }),
        }
    }
}
