//! The loop of one worker, as those of the runtimes. Owns what a run is; when it is polled, and
//! whether it is dropped, is the simulation's.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::mem;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use requeue_core::binding::{Host, Shared, Wait, Worker};
use requeue_core::{Action, Failure, Finished, Guard, Instant, Workers};

use super::World;
use super::choices::Site;
use super::clock::VirtualClock;
use super::context::{Context, Keys};
use super::history::History;
use crate::caught::{caught, describe};

pub(super) type Task = Pin<Box<dyn Future<Output = ()>>>;

/// One worker, and what it works with.
pub(super) struct WorkerLoop<W: World> {
    pub(super) number: usize,
    pub(super) workers: Rc<Workers<'static, W::Key, W::Error>>,
    pub(super) world: Rc<RefCell<W>>,
    pub(super) history: Rc<History<W::Key>>,
    pub(super) run: CurrentRun<W::Key>,
}

/// The run of a worker, if it has a key.
pub(super) type CurrentRun<K> = Rc<RefCell<Option<Rc<Run<K>>>>>;

/// One run of a key.
pub(super) struct Run<K> {
    pub(super) key: K,
    /// Counts the runs of the key, from one.
    pub(super) number: u64,
    pub(super) began: Instant,
    pub(super) polls: Cell<u32>,
    /// Counts what was left to chance in it.
    points: Cell<u32>,
}

impl<K: Clone> Run<K> {
    pub(super) fn next_site(&self) -> Site<K> {
        let point = self.points.replace(self.points.get() + 1);
        Site {
            key: Some(self.key.clone()),
            run: self.number,
            point,
        }
    }
}

impl<W: World> WorkerLoop<W> {
    /// Processes keys until the queue is shut down and drained, or the worker is surplus.
    pub(super) async fn work<H>(self, queue: Rc<Shared<H>>)
    where
        H: Host<Key = W::Key, Clock = VirtualClock>,
    {
        loop {
            let mut call = Wait::for_key(&*queue);
            let taken = call.wait(None, |session, getter| {
                let worker = Worker::new(self.number);
                let mut worker = worker.drain_limit(self.history.drain_limit.get());
                worker.poll_get(self.workers.count(), session, queue.clock(), getter)
            });
            let Ok(work) = taken.await else {
                return;
            };
            self.reconcile(Guard::new(work, &*queue)).await;
            yield_now().await;
        }
    }

    /// One run of one key.
    async fn reconcile<H>(&self, guard: Guard<H, &Shared<H>>)
    where
        H: Host<Key = W::Key, Clock = VirtualClock>,
    {
        let (queue, key) = (guard.queue(), guard.key());
        let run = Rc::new(Run {
            key: key.clone(),
            number: self.history.count_run(key),
            began: queue.now(),
            polls: Cell::new(0),
            points: Cell::new(0),
        });
        let keys = Keys {
            history: Rc::clone(&self.history),
            worker: Some(self.number),
            key: Some(key.clone()),
        };
        *self.run.borrow_mut() = Some(Rc::clone(&run));
        keys.note(match guard.attempt() {
            1 => format!("run {} begins", run.number),
            attempt => format!("run {} begins, attempt {attempt}", run.number),
        });
        let begun = self.workers.begin(key, guard.context(), queue);
        let context = Context {
            world: Rc::clone(&self.world),
            keys: keys.clone(),
            run,
            context: begun.context(),
        };
        let result = {
            let reconcile = async { W::reconcile(context, key.clone()).await };
            let mut reconcile = pin!(begun.contain(queue.clock(), reconcile));
            let ended = poll_fn(|task| match caught(|| reconcile.as_mut().poll(task)) {
                Ok(poll) => poll.map(Ok),
                Err(payload) => Poll::Ready(Err(payload)),
            });
            match ended.await {
                Ok(Some(result)) => result.map_err(Failure::Error),
                Ok(None) => Err(Failure::TimedOut(
                    self.workers.run_limit().unwrap_or_default(),
                )),
                Err(payload) => Err(Failure::Panic(payload)),
            }
        };
        keys.note(match &result {
            Ok(action) => format!("run ends: {action:?}"),
            Err(Failure::Error(error)) => format!("run ends: Err({error:?})"),
            Err(Failure::Panic(payload)) => format!("run PANICS: {}", describe(&**payload)),
            Err(other) => format!("run ends: {other:?}"),
        });
        let action = self.workers.end(key, begun, result, queue);
        if action == Action::GiveUp {
            keys.note("the key is given up");
            self.world.borrow_mut().gave_up(key);
        }
        self.run.take();
        match guard.finish(action) {
            Finished::Idle => {}
            Finished::Ready => keys.note("the key is ready again"),
            other => keys.note(format!("the key is {other:?}")),
        }
    }
}

/// Lets other tasks run between two runs, as the runtimes do.
async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|task| {
        if mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        task.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
