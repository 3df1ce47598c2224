//! Numbers that are worth trying, made of bytes.

use std::time::Duration;

use arbitrary::{Result, Unstructured};
use requeue_core::Instant;

/// Any number, but mostly a small one, and the last ones more often than chance would.
pub(crate) fn nanos(bytes: &mut Unstructured) -> Result<u64> {
    Ok(match bytes.int_in_range(0..=15_u8)? {
        0 => 0,
        1..=9 => bytes.int_in_range(0..=8)?,
        10..=12 => bytes.int_in_range(0..=100_000)?,
        13 => u64::MAX - bytes.int_in_range(0..=2)?,
        14 => (1 << bytes.int_in_range(0..=63_u32)?) - u64::from(bytes.arbitrary::<bool>()?),
        _ => bytes.arbitrary()?,
    })
}

/// As [`nanos`], and sometimes more than fits into them.
pub(crate) fn duration(bytes: &mut Unstructured) -> Result<Duration> {
    Ok(match bytes.int_in_range(0..=15_u8)? {
        0 => Duration::MAX,
        1 => Duration::new(bytes.arbitrary()?, bytes.int_in_range(0..=999_999_999)?),
        _ => Duration::from_nanos(nanos(bytes)?),
    })
}

/// A time, which has nothing to do with any other.
pub(crate) fn instant(bytes: &mut Unstructured) -> Result<Instant> {
    nanos(bytes).map(Instant::from_nanos)
}

/// A count, which may be the greatest.
pub(crate) fn count(bytes: &mut Unstructured) -> Result<u32> {
    Ok(match bytes.int_in_range(0..=3_u8)? {
        0 => u32::MAX - bytes.int_in_range(0..=1)?,
        1 => bytes.arbitrary()?,
        _ => bytes.int_in_range(0..=5)?,
    })
}

/// Any float there is: also the infinite, the negative, the tiny, and what is no number.
pub(crate) fn float(bytes: &mut Unstructured) -> Result<f64> {
    Ok(match bytes.int_in_range(0..=7_u8)? {
        0..=2 => *bytes.choose(&NOTABLE)?,
        3 => f64::from_bits(bytes.arbitrary()?),
        4 => f64::from(bytes.arbitrary::<i8>()?) / 16.0,
        _ => f64::from(bytes.arbitrary::<u16>()?) / 256.0,
    })
}

const NOTABLE: [f64; 12] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MAX,
    f64::MIN,
    f64::MIN_POSITIVE,
    5e-324,
    -0.0,
    1.0,
    1e9,
    1e-9,
    1.8e19,
];
