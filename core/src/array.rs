//! Values by number, in an array of a fixed length or in growing segments. Lists, groups and levels
//! are written once, over this trait. Owns neither an order nor the meaning of the values.

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
