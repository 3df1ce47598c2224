//! Nothing.

pub(crate) const fn no_place(_waiters: usize) {}

pub(crate) const fn run_failed(_attempt: u32) {}

pub(crate) const fn gave_up(_attempt: u32) {}
