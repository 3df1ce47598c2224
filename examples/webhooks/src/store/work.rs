//! What a thread of a database does: work, together in one transaction if that can be shared.

use tokio::sync::oneshot;

use super::db::Db;
use super::{Scope, StoreError};

/// What the thread of a connection gets.
pub(super) enum Message {
    Work(Work),
    /// The thread finishes what it has, closes its connection, and ends.
    Close(oneshot::Sender<()>),
}

/// Work, and what it touches.
pub(super) struct Work {
    pub(super) scope: Scope,
    run: Run,
}

/// Runs within the open transaction, or gets the error if none could be opened.
type Run = Box<dyn FnOnce(Result<&mut Db<'_>, StoreError>) -> Done + Send>;

/// Work that ran, with or without success.
struct Done {
    /// Sends the answer, given how the transaction ended.
    settle: Box<dyn FnOnce(Result<(), StoreError>) + Send>,
    /// Why the transaction cannot go on, if it cannot.
    spoiled: Option<StoreError>,
}

/// How much work shares a transaction.
pub(super) const BATCH_MAX: usize = 256;

impl Work {
    /// Returns the work, and its answer once the transaction has ended.
    pub(super) fn new<T: Send + 'static>(
        scope: Scope,
        work: impl FnOnce(&mut Db<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> (Self, oneshot::Receiver<Result<T, StoreError>>) {
        let (answer, answered) = oneshot::channel();
        let run: Run = Box::new(move |db| {
            let (done, spoiled) = match db {
                Ok(db) => db.in_savepoint(work),
                Err(error) => (Err(error), None),
            };
            let settle = move |ended: Result<(), StoreError>| {
                // A caller that has gone away needs no answer.
                let _ = answer.send(done.and_then(|value| ended.map(|()| value)));
            };
            let settle = Box::new(settle);
            Done { settle, spoiled }
        });
        (Self { scope, run }, answered)
    }

    /// Does a single statement, without a transaction.
    pub(super) fn run_alone(self, db: Result<&mut Db<'_>, StoreError>) {
        let done = (self.run)(db);
        (done.settle)(Ok(()));
    }

    /// Sends an error instead of a result.
    pub(super) fn refuse(self, error: StoreError) {
        self.run_alone(Err(error));
    }
}

/// Does work in one transaction: all of it, or as much as is done when the transaction is lost.
/// Takes at least one.
pub(super) fn transact(db: &mut Db<'_>, scope: Scope, works: &mut impl Iterator<Item = Work>) {
    let mut ended = db.begin(scope);
    let mut settles = Vec::new();
    for work in works {
        let done = (work.run)(match &ended {
            Ok(()) => Ok(&mut *db),
            Err(error) => Err(error.clone()),
        });
        settles.push(done.settle);
        if let Some(error) = done.spoiled {
            ended = Err(error);
            break;
        }
        if db.is_rolled_back() && ended.is_ok() {
            // Work that hid its error; `COMMIT` says that there is no transaction.
            break;
        }
    }
    let ended = ended.and_then(|()| db.commit());
    if let Err(error) = &ended {
        if !matches!(error, StoreError::Fenced(_)) {
            crate::say(&error.to_string());
        }
        db.roll_back();
    }
    for settle in settles {
        settle(ended.clone());
    }
}
