//! The calls of a recording that wait for a drain, of which there are two at most.

use core::future::Future;
use core::pin::Pin;
use core::task::Poll;

use requeue_embassy::Instant;
use requeue_embassy::WaitError;

use crate::judge::Judge;
use crate::poll;

pub const DRAINS_MAX: usize = 2;

type Ended = Result<(), WaitError>;

pub struct Drains<'f, F> {
    calls: [Pin<&'f mut F>; DRAINS_MAX],
    /// How many have begun.
    begun: usize,
    /// How each has to end, and how it has ended.
    expected: [Option<Ended>; DRAINS_MAX],
    ended: [Option<Ended>; DRAINS_MAX],
}

impl<'f, F: Future<Output = Ended>> Drains<'f, F> {
    pub fn new(calls: [Pin<&'f mut F>; DRAINS_MAX]) -> Self {
        Self {
            calls,
            begun: 0,
            expected: [None; DRAINS_MAX],
            ended: [None; DRAINS_MAX],
        }
    }

    /// Begins one more.
    pub fn begin(&mut self) {
        self.begun += 1;
    }

    /// A shutdown ends those that wait.
    pub fn interrupt(&mut self) {
        self.end_with(Err(WaitError::Interrupted));
    }

    /// Compares after a step whether each has ended as it should: all of them, if no key is `left`.
    pub fn look(&mut self, judge: &mut Judge, at: Instant, left: usize) {
        if left == 0 {
            self.end_with(Ok(()));
        }
        let calls = self.calls.iter_mut().zip(&mut self.ended).take(self.begun);
        for (call, ended) in calls.filter(|(_, ended)| ended.is_none()) {
            if let Poll::Ready(how) = poll(call.as_mut()) {
                *ended = Some(how);
            }
        }
        judge.expect(at, "the drains", self.ended, self.expected);
    }

    /// client-go's drain looks at active keys only. It may return while this one waits, and never
    /// waits after this one has returned.
    pub fn compare(&self, judge: &mut Judge, at: Instant, recorded: bool) {
        match self.ended[0] {
            Some(_) => judge.expect(at, "the first drain", true, recorded),
            None => judge.differences += u32::from(recorded),
        }
    }

    fn end_with(&mut self, how: Ended) {
        for expected in self.expected.iter_mut().take(self.begun) {
            expected.get_or_insert(how);
        }
    }
}
