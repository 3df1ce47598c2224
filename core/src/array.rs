//! Values by number, in an array of a fixed length or in segments that grow: what lists, groups and
//! levels are written over once. Owns no order and no meaning of what it holds.

/// Values by number.
#[doc(hidden)]
pub trait Array: ConstDefault {
    type Item;

    /// The value of a number. `None` if there is no room for one, or there never was one.
    fn get(&self, index: usize) -> Option<&Self::Item>;
    fn get_mut(&mut self, index: usize) -> Option<&mut Self::Item>;
    /// The value of a number, which an array that grows adds if it is not there.
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
