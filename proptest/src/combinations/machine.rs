//! The state machine without a runtime, of every kind that configurations describe.

use std::marker::PhantomData;

use requeue_core::metrics::Metrics;
use requeue_core::priority::{Groups, Levels, Plain, WithSlack, WithSuspension};
use requeue_core::storage::{Fixed, Growable};

use super::{Family, kind_of};
use crate::Figures;
use crate::subject::{Configuration, Direct, Key, Kind, Subject};

/// The state machine on storage that grows.
struct Growing;

impl Family for Growing {
    type One = Plain;
    type Three = Levels<3>;
    type Grouped<P: Kind<Naming<Key> = ()> + 'static> = Groups<u8, P>;
    type Even<P: Kind + 'static> = Direct<P, Growable>;
    type Odd<P: Kind + 'static> = Direct<P, Growable, ()>;
}

/// The state machine on storage of a fixed size, for so many groups.
struct OfSize<const N: usize, const GROUPS: usize, Even, Odd>(PhantomData<(Even, Odd)>);

impl<const N: usize, const GROUPS: usize, Even, Odd> Family for OfSize<N, GROUPS, Even, Odd>
where
    Even: Metrics + Default + 'static,
    Odd: Metrics + Default + 'static,
{
    type One = WithSlack<WithSuspension>;
    type Three = WithSlack<WithSuspension<Levels<3>>>;
    type Grouped<P: Kind<Naming<Key> = ()> + 'static> = Groups<u8, P, GROUPS>;
    type Even<P: Kind + 'static> = Direct<P, Fixed<N>, Even>;
    type Odd<P: Kind + 'static> = Direct<P, Fixed<N>, Odd>;
}

/// Makes the state machine that a configuration describes, with metrics or without.
pub fn core(configuration: &Configuration) -> Box<dyn Subject> {
    match configuration.storage {
        None => kind_of::<Growing>(configuration),
        Some(..=3) => kind_of::<OfSize<3, 2, Figures, ()>>(configuration),
        Some(_) => kind_of::<OfSize<64, 3, (), Figures>>(configuration),
    }
}
