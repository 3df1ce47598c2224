//! Values by number, in an array of a fixed length or in growing segments, and values that only some
//! queues have. Lists, groups and levels are written once, over these traits. Owns neither an order
//! nor the meaning of the values.

use core::fmt::Debug;

/// Values by number.
#[doc(hidden)]
pub trait Array: ConstDefault {
    type Item;

    /// The value of a number. `None` if there is no room for it, or it was never added.
    fn get(&self, index: usize) -> Option<&Self::Item>;
    fn get_mut(&mut self, index: usize) -> Option<&mut Self::Item>;
    /// The value of a number. An array that grows adds it if necessary.
    fn slot(&mut self, index: usize) -> Option<&mut Self::Item>;
}

/// A value that exists at compile time.
#[doc(hidden)]
pub trait ConstDefault {
    const DEFAULT: Self;
}

/// A value that only some queues have: [`Stored`], or `()` in the others, where it takes no room and
/// is always the default.
#[doc(hidden)]
pub trait Optional<T: Default>: Copy + Debug + Default {
    #[inline]
    fn get(self) -> T {
        T::default()
    }

    /// Changes the value. No effect where there is none.
    #[inline]
    fn set(&mut self, _change: impl FnOnce(&mut T)) {}
}

impl<T: Default> Optional<T> for () {}

#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Stored<T>(T);

impl<T: Copy + Debug + Default> Optional<T> for Stored<T> {
    #[inline]
    fn get(self) -> T {
        self.0
    }

    #[inline]
    fn set(&mut self, change: impl FnOnce(&mut T)) {
        change(&mut self.0);
    }
}

impl<T: ConstDefault, const N: usize> ConstDefault for [T; N] {
    const DEFAULT: Self = [const { T::DEFAULT }; N];
}

impl<T: ConstDefault, const N: usize> Array for [T; N] {
    type Item = T;

    #[inline]
    fn get(&self, index: usize) -> Option<&T> {
        self.as_slice().get(index)
    }

    #[inline]
    fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.as_mut_slice().get_mut(index)
    }

    #[inline]
    fn slot(&mut self, index: usize) -> Option<&mut T> {
        self.as_mut_slice().get_mut(index)
    }
}
