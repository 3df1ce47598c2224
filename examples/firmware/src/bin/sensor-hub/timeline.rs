//! Records when something has happened.

use core::cell::RefCell;
use core::fmt;

use critical_section::Mutex;
use embassy_time::Instant;
use heapless::Vec;

/// How late a deadline may be met: an interrupt, a task switch, and other tasks that run first.
const LATE_MICROS_MAX: u64 = 500;

/// Up to `N` points in time, in microseconds.
pub struct Timeline<const N: usize>(Mutex<RefCell<Vec<u64, N>>>);

impl<const N: usize> Timeline<N> {
    pub const fn new() -> Self {
        Self(Mutex::new(RefCell::new(Vec::new())))
    }

    /// Records the present time.
    pub fn note(&self) {
        let now = Instant::now().as_micros();
        let noted = self.with(|points| points.push(now));
        noted.expect("room for every point");
    }

    /// Panics unless it has happened at these times only, not a microsecond early.
    pub fn assert_is(&self, expected_millis: &[u64]) {
        self.with(|points| {
            assert_eq!(points.len(), expected_millis.len(), "{points:?}");
            for (point, expected) in points.iter().zip(expected_millis) {
                let on_time = expected * 1000..=expected * 1000 + LATE_MICROS_MAX;
                assert!(
                    on_time.contains(point),
                    "{point} us, expected {expected} ms"
                );
            }
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut Vec<u64, N>) -> T) -> T {
        critical_section::with(|section| work(&mut self.0.borrow_ref_mut(section)))
    }
}

impl<const N: usize> fmt::Display for Timeline<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let points = self.with(|points| points.clone());
        for point in &points {
            write!(f, "{}.{:03} ", point / 1000, point % 1000)?;
        }
        Ok(())
    }
}
