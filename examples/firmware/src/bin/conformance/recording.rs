//! Recordings as the build has packed them: `build/pack.rs` is the other end of this.

use core::time::Duration;

/// Bytes that are read from the front.
#[derive(Clone)]
pub struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    pub fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    pub fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().expect("the recording is complete");
        self.0 = rest;
        *first
    }

    /// Seven bits a byte, the low ones first.
    pub fn number(&mut self) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = self.byte();
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    }

    pub fn small(&mut self) -> u32 {
        u32::try_from(self.number()).expect("a small number")
    }

    pub fn duration(&mut self) -> Duration {
        match self.number() {
            u64::MAX => Duration::MAX,
            nanos => Duration::from_nanos(nanos),
        }
    }

    pub fn word(&mut self) -> u64 {
        u64::from_le_bytes(core::array::from_fn(|_| self.byte()))
    }
}

/// An operation, and the result that client-go returned.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    Add(u8),
    AddAfter(u8, Duration),
    AddRateLimited(u8, Duration),
    /// Nothing was ready.
    GetNothing,
    GetClosed,
    Get(u8),
    Done(u8),
    /// The key was not active.
    DoneIdle(u8),
    Forget(u8),
    NumRequeues(u8, u32),
    /// Only compares the length.
    Len,
    ShuttingDown(bool),
    ShutDown,
    ShutDownWithDrain,
    Advance {
        by: Duration,
        unfinished: Duration,
        longest: Duration,
        /// Nothing is ready, and a key will be taken next.
        is_waited: bool,
    },
}

/// An operation, and what could be observed after it.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub operation: Operation,
    pub len: usize,
    pub is_drained: bool,
}

impl Step {
    pub fn read(bytes: &mut Bytes<'_>) -> Self {
        let first = bytes.byte();
        let key = first & 0xF;
        let operation = match first >> 4 {
            0 => Operation::Add(key),
            1 => Operation::AddAfter(key, bytes.duration()),
            2 => Operation::AddRateLimited(key, bytes.duration()),
            3 if key == 0 => Operation::GetNothing,
            3 if key == 15 => Operation::GetClosed,
            3 => Operation::Get(key),
            4 => Operation::Done(key),
            5 => Operation::DoneIdle(key),
            6 => Operation::Forget(key),
            7 => Operation::NumRequeues(key, bytes.small()),
            8 => Operation::Len,
            9 => Operation::ShuttingDown(key == 1),
            10 => Operation::ShutDown,
            11 => Operation::ShutDownWithDrain,
            12 => Operation::Advance {
                by: bytes.duration(),
                unfinished: bytes.duration(),
                longest: bytes.duration(),
                is_waited: key == 1,
            },
            other => panic!("{other}: unknown"),
        };
        let last = bytes.byte();
        Self {
            operation,
            len: usize::from(last & 0x7F),
            is_drained: last & 0x80 != 0,
        }
    }
}
