//! Numbers in as few bytes as they need. `src/bin/conformance/recording.rs` is the other end.

use serde_json::Value;

/// Seven bits a byte, the low ones first.
pub fn number(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7F {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The bits of a float, which a recording has in 16 digits.
pub fn bits(out: &mut Vec<u8>, digits: &Value) {
    let digits = digits.as_str().expect("digits");
    let bits = u64::from_str_radix(digits, 16).expect("digits");
    out.extend(bits.to_le_bytes());
}

/// A member that is a number; one that is negative acts as zero does.
pub fn get(object: &Value, name: &str) -> u64 {
    let value = &object[name];
    let negative = || value.as_i64().map(|_| 0);
    value.as_u64().or_else(negative).expect("a number")
}
