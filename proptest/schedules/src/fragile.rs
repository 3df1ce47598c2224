//! A key whose code panics.

use std::hash::{Hash, Hasher};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A key that panics when it, or a copy, is copied for a certain time.
#[derive(Debug)]
pub struct Fragile {
    name: u32,
    copies: Arc<AtomicUsize>,
    breaks_at: usize,
}

impl Fragile {
    /// A key of this name, whose copying panics this time, counted from 1.
    pub fn new(name: u32, breaks_at: usize) -> Self {
        Self {
            name,
            copies: Arc::default(),
            breaks_at,
        }
    }

    /// What distinguishes it from others.
    pub fn name(&self) -> u32 {
        self.name
    }
}

impl Clone for Fragile {
    fn clone(&self) -> Self {
        if self.copies.fetch_add(1, Ordering::SeqCst) + 1 == self.breaks_at {
            // Without the hook, which would take it for the end of the test.
            resume_unwind(Box::new("broken"));
        }
        Self {
            name: self.name,
            copies: Arc::clone(&self.copies),
            breaks_at: self.breaks_at,
        }
    }
}

impl PartialEq for Fragile {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Fragile {}

impl Hash for Fragile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}
