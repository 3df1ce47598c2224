//! What a limiter around another one passes on.

/// Passes on the methods of [`HOLDS`](crate::RateLimiter::HOLDS), for a limiter whose record is
/// that of the inner one.
macro_rules! delegate_record {
    ($inner:ty, $self:ident, $to:expr) => {
        fn set_requeues(&$self, record: &mut Self::Record, requeues: u32) {
            ($to).set_requeues(record, requeues);
        }

        const HOLDS: bool = <$inner as RateLimiter>::HOLDS;

        #[inline]
        fn held_until(&$self, record: &Self::Record) -> Instant {
            ($to).held_until(record)
        }

        #[inline]
        fn ended(&mut $self, record: &mut Self::Record, now: Instant) {
            ($to).ended(record, now);
        }

        #[inline]
        fn forget(&$self, record: &mut Self::Record) {
            ($to).forget(record);
        }

        #[inline]
        fn is_blank(&$self, record: &Self::Record, now: Instant) -> bool {
            ($to).is_blank(record, now)
        }

        #[inline]
        fn note_deadline(&$self, record: &mut Self::Record, due: Instant) {
            ($to).note_deadline(record, due);
        }
    };
}

/// The same, for a limiter that needs the time only if the inner one does.
macro_rules! delegate_holds {
    ($inner:ty, $self:ident, $to:expr) => {
        delegate_record!($inner, $self, $to);

        #[inline]
        fn needs_time(&$self) -> bool {
            ($to).needs_time()
        }
    };
}

/// Passes on the methods of [`PACES`](crate::RateLimiter::PACES).
macro_rules! delegate_pace {
    ($inner:ty, $self:ident, $to:expr) => {
        const PACES: bool = <$inner as RateLimiter>::PACES;

        #[inline]
        fn next_start(&$self) -> Instant {
            ($to).next_start()
        }

        #[inline]
        fn started(&mut $self, now: Instant) {
            ($to).started(now);
        }
    };
}

/// Passes on [`Debounces`](crate::Debounces), for a limiter whose record holds that of the inner
/// one, here.
macro_rules! delegate_debounce {
    ($limiter:ty $(where $other:ident: $bound:ident)?, $record:ident => $inner:expr) => {
        impl<L: crate::Debounces $(, $other: $bound)?> crate::Debounces for $limiter {
            #[inline]
            fn burst($record: &mut Self::Record) -> &mut crate::Burst {
                L::burst($inner)
            }
        }
    };
}
