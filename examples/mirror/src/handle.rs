//! An entry that is held open while its attributes are read and set.
//!
//! With a name instead, another program could replace it by a hard link to a file elsewhere.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod unix;

use rustix::fs::{Mode, Timespec, Timestamps, UTIME_OMIT};

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use linux::{Handle, set_mode, set_time};
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) use unix::{Handle, set_mode, set_time};

/// A modification time to set. The time of the last access stays as it is.
fn modified(mtime: Timespec) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: mtime,
    }
}

/// The type of the bits differs between systems.
fn mode_of(bits: u32) -> Mode {
    Mode::from_raw_mode(bits as _)
}
