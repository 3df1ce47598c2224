//! The number of workers, which stays as it is: only with the feature `std` it can change.

/// How many workers a `run` has.
#[derive(Debug)]
pub(crate) struct Concurrency(usize);

impl Concurrency {
    pub(crate) const fn new(workers: usize) -> Self {
        Self(workers)
    }

    pub(crate) const fn get(&self) -> usize {
        self.0
    }
}
