//! What the steps of a story mean. The README explains the language: operations have the names and
//! arguments that they have in `requeue_core`.

use std::str::FromStr;
use std::time::Duration;

use requeue_core::{Action, AddOptions, Instant};

use crate::histories::MERGES;
use crate::limiter::{FloatBits, LimiterSpec};
use crate::operation::{Drain, Key, Left, Operation, Run, Sleeper, Ticket, left_over};
use crate::subject::{Call, Cap, Configuration, GroupOrder, PolicySpec, Rate};

use Operation as O;

/// What the limiter of a queue does of which a story says nothing.
pub(crate) const BACKOFF: LimiterSpec = LimiterSpec::Exponential {
    base_ns: 1_000_000,
    max_ns: 1_000_000_000,
};

/// What a line does.
pub(crate) enum Step {
    Queue(Configuration),
    Room(Key),
    Get,
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

/// The words of a step that have not been read yet.
struct Words<'s>(Vec<&'s str>);

type Read<T> = Result<T, String>;

impl<'s> Words<'s> {
    /// Takes the next word, which is empty if there is none.
    fn word(&mut self) -> &'s str {
        let count = self.0.len().min(1);
        self.0.drain(..count).next().unwrap_or_default()
    }

    fn read<T>(&mut self, what: &str, read: impl FnOnce(&str) -> Option<T>) -> Read<T> {
        let word = self.word();
        read(word).ok_or_else(|| format!("{word:?} is no {what}"))
    }

    fn number<T: FromStr>(&mut self) -> Read<T> {
        self.read("number", |word| word.parse().ok())
    }

    fn time(&mut self) -> Read<Duration> {
        self.read("time", time)
    }

    fn nanos(&mut self) -> Read<u64> {
        Ok((Instant::EPOCH + self.time()?).as_nanos())
    }

    /// Takes what follows a word, wherever that is.
    fn given<T>(&mut self, name: &str, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<Option<T>> {
        let Some(at) = self.0.iter().position(|word| *word == name) else {
            return Ok(None);
        };
        let mut following = Self(self.0.split_off(at + 1));
        self.0.truncate(at);
        let value = read(&mut following)?;
        self.0.append(&mut following.0);
        Ok(Some(value))
    }

    fn has(&mut self, name: &str) -> bool {
        self.given(name, |_| Ok(())).is_ok_and(|it| it.is_some())
    }

    /// The keys that come next.
    fn keys(&mut self) -> Vec<Key> {
        let keys = self.0.iter().map_while(|word| word.parse().ok());
        let keys: Vec<Key> = keys.collect();
        self.0.drain(..keys.len());
        keys
    }

    /// A run of a key: the last, or the one that is named.
    fn run(&mut self, last: &dyn Fn(Key) -> u64) -> Read<Run> {
        self.read("run", |word| {
            let (key, run) = word.split_once('#').unwrap_or((word, ""));
            let key = key.parse().ok()?;
            let run = run.parse().unwrap_or_else(|_| last(key));
            Some(Run::Of(Ticket { key, run }))
        })
    }

    fn action(&mut self) -> Read<Action> {
        let action = match self.word() {
            "Release" => Action::Release,
            "Success" => Action::Success,
            "Retry" => Action::Retry,
            "RequeueAfter" => Action::RequeueAfter(self.time()?),
            "Snooze" => Action::Snooze(self.time()?),
            other => return Err(format!("{other:?} is no action")),
        };
        let slack = self.given("slack", Self::number)?;
        Ok(slack.map_or(action, |slack| action.with_slack(slack)))
    }

    fn options(&mut self) -> Read<AddOptions> {
        let merge = MERGES.into_iter().find(|it| self.has(&format!("{it:?}")));
        Ok(AddOptions {
            after: self.given("after", Self::time)?,
            rate_limited: self.has("rate_limited"),
            priority: self.given("level", Self::number)?,
            merge: merge.unwrap_or_default(),
            slack: self.given("slack", Self::number)?.unwrap_or_default(),
        })
    }

    /// A key that another queue has left.
    fn left(&mut self) -> Read<Left> {
        let key = self.number()?;
        let left = self.given("after", Self::time)?.unwrap_or_default();
        let failures = self.given("failures", Self::number)?.unwrap_or_default();
        let level = self.given("level", Self::number)?.unwrap_or_default();
        Ok(left_over(key, left, failures, level))
    }

    /// So many runs a second, of which one at once, or as many as the burst.
    fn rate(&mut self) -> Read<Rate> {
        let per_second = FloatBits(self.number()?);
        let burst = self.given("burst", Self::number)?.unwrap_or(1);
        Ok(Rate { per_second, burst })
    }

    fn cap(&mut self) -> Read<Cap> {
        Ok(Cap {
            max_active: self.given("max_active", Self::number)?,
            rate: self.given("rate", Self::rate)?,
            ..Cap::default()
        })
    }

    fn limiter(&mut self) -> Read<LimiterSpec> {
        let exponential = self.given("backoff", |it| {
            let (base_ns, max_ns) = (it.nanos()?, it.nanos()?);
            Ok(LimiterSpec::Exponential { base_ns, max_ns })
        })?;
        let fast_slow = self.given("fast", |it| {
            Ok(LimiterSpec::FastSlow {
                max_fast_attempts: it.number()?,
                fast_ns: it.nanos()?,
                slow_ns: it.nanos()?,
            })
        })?;
        Ok(match (exponential, fast_slow) {
            (Some(one), Some(other)) => LimiterSpec::MaxOf {
                limiters: vec![one, other],
            },
            (one, other) => one.or(other).unwrap_or(BACKOFF),
        })
    }

    fn configuration(&mut self) -> Read<Configuration> {
        let mut made = Configuration::new(self.limiter()?);
        made.policy = PolicySpec {
            cool_down_ns: self.given("cool_down", Self::nanos)?.unwrap_or_default(),
            hold_failures: self.has("hold_failures"),
            run_rate: self.given("run_rate", Self::rate)?,
        };
        let due_keys = self.given("due_keys", Self::number)?;
        made.due_keys_max = due_keys.unwrap_or(made.due_keys_max);
        let records = self.given("failure_records", Self::number)?;
        made.failure_records_max = records.unwrap_or(made.failure_records_max);
        Ok(made)
    }

    fn call(&mut self) -> Read<Call> {
        Ok(match self.word() {
            "get" => Call::Get,
            "get_timeout" => Call::GetTimeout(self.time()?),
            "next" => Call::Next(self.action()?),
            "drain" => Call::Drain,
            "drain_timeout" => Call::DrainTimeout(self.time()?),
            "wait_idle" => Call::WaitIdle,
            "wait_settled" => Call::WaitSettled,
            "flush" => Call::Flush(self.number()?),
            "cancel_and_wait" => Call::CancelAndWait(self.number()?),
            "add_wait" => Call::AddWait(self.number()?),
            other => return Err(format!("{other:?} is no call")),
        })
    }

    /// Which of those that wait, counted from 1.
    fn place(&mut self) -> Read<u8> {
        let number: u8 = self.number()?;
        number.checked_sub(1).ok_or(String::from("0 is no place"))
    }
}

/// Reads a step. `last` knows the number of the last run of a key.
pub(crate) fn step(text: &str, last: &dyn Fn(Key) -> u64) -> Read<Step> {
    let words = text.split_whitespace();
    let mut words = Words(words.map(|word| word.trim_end_matches(',')).collect());
    let step = match words.word() {
        "queue" => Step::Queue(words.configuration()?),
        "room" => Step::Room(words.number()?),
        "get" => Step::Get,
        verb => Step::Operation(operation(verb, &mut words, last)?),
    };
    match words.word() {
        "" => Ok(step),
        more => Err(format!("{more:?} is too much")),
    }
}

fn operation(verb: &str, it: &mut Words<'_>, last: &dyn Fn(Key) -> u64) -> Read<Operation> {
    Ok(match verb {
        "add" => O::Add(it.number()?),
        "add_after" => O::AddAfter(it.number()?, it.time()?),
        "add_within" => O::AddWithin(it.number()?, it.time()?, it.time()?),
        "add_at" => O::AddAt(it.number()?, Instant::EPOCH + it.time()?),
        "add_rate_limited" => O::AddRateLimited(it.number()?),
        "add_with" => O::AddWith(it.number()?, it.options()?),
        "add_displacing" => O::AddDisplacing(it.number()?, it.options()?),
        "add_debounced" => O::AddDebounced(it.number()?, it.time()?, it.time()?),
        "add_many" => O::AddMany(it.keys()),
        "restore" => O::Restore(it.left()?),
        "forget" => O::Forget(it.number()?),
        "cancel" => O::CancelKey(it.number()?),
        "cancel_delay" => O::CancelDelay(it.number()?),
        "expedite" => O::Expedite(it.number()?),
        "expedite_all" => O::ExpediteAll,
        "retain_below" => O::RetainBelow(it.number()?),
        "pause" => O::Pause,
        "unpause" => O::Unpause,
        "limit_groups" => O::Order(GroupOrder::LimitAll(it.cap()?)),
        "limit_group" => O::Order(GroupOrder::Limit(it.number()?, Some(it.cap()?))),
        "pause_group" => O::Order(GroupOrder::Pause(it.number()?)),
        "unpause_group" => O::Order(GroupOrder::Unpause(it.number()?)),
        "age_after" => O::AgeAfter(Some(it.time()?)),
        "limit_keys" => O::LimitKeys(it.read("number", |word| match word {
            "any" => Some(usize::MAX),
            number => number.parse().ok(),
        })?),

        "get_many" => O::GetMany(it.number()?, Sleeper::New),
        "next" => O::Next(it.run(last)?, it.action()?, Sleeper::New),
        "done" => O::DoneKey(it.number()?),
        "release" => O::Done(it.run(last)?),
        "finish" => O::Complete(it.run(last)?, it.action()?),
        "finish_many" => {
            let run = |key| {
                Run::Of(Ticket {
                    key,
                    run: last(key),
                })
            };
            O::CompleteMany(it.keys().into_iter().map(run).collect(), it.action()?)
        }
        "panic_at_work" => O::PanicAtWork,
        "panic_under_lock" => O::PanicUnderLock,

        "shut_down" => O::ShutDown,
        "begin_drain" => O::BeginDrain,
        "drained" => O::Drained(Drain(it.number().unwrap_or_default())),
        "take_delayed" => O::TakeDelayed,
        "take_ready" => O::TakeReady,
        "len" => O::Len,
        "snapshot" => O::Snapshot,
        "state" => O::State(it.number()?),
        "contains" => O::Contains(it.number()?),
        "failures" => O::Failures(it.number()?),
        "why" => O::Why(it.number()?),
        "stats" => O::Stats,
        "next_look" => O::NextLook,
        "is_paused" => O::IsPaused,
        "is_shutting_down" => O::IsShuttingDown,

        "advance" => O::Advance(it.time()?),
        "start" => O::Start(it.call()?),
        "next_unrun" => O::NextUnrun(it.action()?),
        "drop_call" => O::Cancel(it.place()?),
        "nudge_call" => O::Nudge(it.place()?),
        "settle" => O::Settle,
        other => return Err(format!("{other:?} is no step")),
    })
}
