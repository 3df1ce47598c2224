//! What the lists of groups are stored in: fixed, or growable.

use core::hash::Hash;
use core::marker::PhantomData;

use crate::Instant;
use crate::delay::Nodes;
use crate::id::{Index, SlotId};
use crate::limiter::Bucket;
use crate::lists::leveled::{ConstDefault, LevelArray};
use crate::lists::{ConstEmpty, Link, LinkArray, Links, List};
use crate::priority::Priorities;
use crate::storage::Slots;
use crate::storage::fixed::{FixedNodes, FixedSlots};

use super::turns::Ring;
use super::{Depth, Group, GroupedLists};

/// A value for each priority level.
pub(crate) type PerLevel<B, T> = <<B as Backing>::Priorities as Priorities>::PerLevel<T>;

#[doc(hidden)]
pub trait Backing {
    type Name: Eq + Hash;
    type Priorities: Priorities;
    type Index: Index;
    /// The link and the group of each slot that a key has.
    type Members: LinkArray<Self::Index> + Members;
    type Lanes: LevelArray<Lane<Self::Index>>;
    type Groups: Slots<Self::Name, Group<Self::Lanes>>;
    type Rates: Rates;
    type Nodes: Nodes;

    const LEVELS: usize = Self::Priorities::LEVELS as usize;
    /// Whether there is room for a number of groups only.
    const FEW_GROUPS: bool;
}

/// The ready keys of a group at one level, and its place in the turn of that level.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Lane<I> {
    pub(super) keys: List<I>,
    /// How many keys it has given in this turn.
    pub(super) served: u16,
    pub(super) turn: Link<u32>,
}

impl<I: Index> ConstDefault for Lane<I> {
    const DEFAULT: Self = Self {
        keys: List::new(),
        served: 0,
        turn: Link::UNLINKED,
    };
}

/// The group of each slot.
#[doc(hidden)]
pub trait Members {
    fn group(&self, id: SlotId) -> SlotId;
    fn set_group(&mut self, id: SlotId, group: SlotId);
}

/// A slot in its group: beside each other, because they are used together.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Member<I, G> {
    link: Link<I>,
    group: G,
}

impl<I: Index, G: Index> Member<I, G> {
    const NONE: Self = Self {
        link: Link::UNLINKED,
        group: G::NONE,
    };
}

impl<const N: usize, I: Index> LinkArray<I> for [Member<I, u8>; N] {
    const EMPTY: Self = [Member::NONE; N];
}

impl<const N: usize, I: Index> Links<I> for [Member<I, u8>; N] {
    #[inline]
    fn link(&self, id: SlotId) -> Link<I> {
        let member = self.as_slice().get(id.index());
        member.map_or(Link::UNLINKED, |member| member.link)
    }

    #[inline]
    fn set_link(&mut self, id: SlotId, link: Link<I>) {
        if let Some(member) = self.as_mut_slice().get_mut(id.index()) {
            member.link = link;
        }
    }
}

impl<const N: usize, I: Index> Members for [Member<I, u8>; N] {
    #[inline]
    fn group(&self, id: SlotId) -> SlotId {
        let member = self.as_slice().get(id.index());
        let group = member.and_then(|member| member.group.get());
        group.unwrap_or(SlotId::NONE)
    }

    #[inline]
    fn set_group(&mut self, id: SlotId, group: SlotId) {
        if let Some(member) = self.as_mut_slice().get_mut(id.index()) {
            member.group = u8::new(group);
        }
    }
}

/// What groups with a rate keep, apart from the groups, because most have none.
#[doc(hidden)]
pub trait Rates {
    const EMPTY: Self;

    fn rate(&self, group: SlotId) -> Option<&Rate>;
    fn set_rate(&mut self, group: SlotId, rate: Rate);
    fn rate_mut(&mut self, group: SlotId) -> Option<&mut Rate>;
}

/// The rate of a group.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Rate {
    pub(super) bucket: Bucket,
    /// It does not allow the next run before.
    pub(super) rest_until: Instant,
}

impl Rate {
    const NONE: Self = Self {
        bucket: Bucket::new(0.0, 0),
        rest_until: Instant::EPOCH,
    };
}

impl<const MAX: usize> Rates for [Rate; MAX] {
    const EMPTY: Self = [Rate::NONE; MAX];

    fn rate(&self, group: SlotId) -> Option<&Rate> {
        self.as_slice().get(group.index())
    }

    fn set_rate(&mut self, group: SlotId, rate: Rate) {
        if let Some(to) = self.rate_mut(group) {
            *to = rate;
        }
    }

    fn rate_mut(&mut self, group: SlotId) -> Option<&mut Rate> {
        self.as_mut_slice().get_mut(group.index())
    }
}

/// As many groups as the storage says.
#[doc(hidden)]
#[derive(Debug)]
pub struct FixedGroups<G, P, const N: usize, I, const MAX: usize>(PhantomData<(G, P, I)>);

impl<G, P, const N: usize, I, const MAX: usize> Backing for FixedGroups<G, P, N, I, MAX>
where
    G: Eq + Hash,
    P: Priorities,
    I: Index,
{
    type Name = G;
    type Priorities = P;
    type Index = I;
    type Members = [Member<I, u8>; N];
    type Lanes = P::PerLevel<Lane<I>>;
    type Groups = FixedSlots<G, Group<Self::Lanes>, MAX, u8>;
    type Rates = [Rate; MAX];
    type Nodes = FixedNodes<MAX, u8>;

    const FEW_GROUPS: bool = true;
}

impl<G, P, const N: usize, I, const MAX: usize> ConstEmpty
    for GroupedLists<FixedGroups<G, P, N, I, MAX>>
where
    G: Eq + Hash,
    P: Priorities,
    I: Index,
{
    const EMPTY: Self = Self::from_parts(
        LinkArray::EMPTY,
        FixedSlots::new(),
        FixedNodes::new(),
        <P::PerLevel<Ring> as LevelArray<Ring>>::EMPTY,
        <P::PerLevel<Depth> as LevelArray<Depth>>::EMPTY,
    );
}

#[cfg(feature = "alloc")]
mod growable {
    use crate::segments::Segments;
    use crate::storage::growable::{GrowableNodes, GrowableSlots, RandomState};

    use super::*;

    /// As many groups as there are names.
    #[doc(hidden)]
    #[derive(Debug)]
    pub struct GrowableGroups<G, P>(PhantomData<(G, P)>);

    impl<G: Eq + Hash, P: Priorities> Backing for GrowableGroups<G, P> {
        type Name = G;
        type Priorities = P;
        type Index = u32;
        type Members = Segments<Member<u32, u32>, 512>;
        type Lanes = P::PerLevel<Lane<u32>>;
        type Groups = GrowableSlots<G, Group<Self::Lanes>, RandomState>;
        type Rates = Segments<Rate, 64>;
        type Nodes = GrowableNodes;

        const FEW_GROUPS: bool = false;
    }

    impl LinkArray<u32> for Segments<Member<u32, u32>, 512> {
        const EMPTY: Self = Self::new();
    }

    impl Links<u32> for Segments<Member<u32, u32>, 512> {
        #[inline]
        fn link(&self, id: SlotId) -> Link<u32> {
            let member = self.get(id.index());
            member.map_or(Link::UNLINKED, |member| member.link)
        }

        #[inline]
        fn set_link(&mut self, id: SlotId, link: Link<u32>) {
            // A key has a group before it is in a list.
            if let Some(member) = self.get_mut(id.index()) {
                member.link = link;
            }
        }
    }

    impl Members for Segments<Member<u32, u32>, 512> {
        #[inline]
        fn group(&self, id: SlotId) -> SlotId {
            let member = self.get(id.index());
            SlotId(member.map_or(u32::NONE, |member| member.group))
        }

        #[inline]
        fn set_group(&mut self, id: SlotId, group: SlotId) {
            if let Some(member) = self.slot(id.index(), Member::NONE) {
                member.group = group.0;
            }
        }
    }

    impl Rates for Segments<Rate, 64> {
        const EMPTY: Self = Self::new();

        fn rate(&self, group: SlotId) -> Option<&Rate> {
            self.get(group.index())
        }

        fn set_rate(&mut self, group: SlotId, rate: Rate) {
            if let Some(to) = self.slot(group.index(), Rate::NONE) {
                *to = rate;
            }
        }

        fn rate_mut(&mut self, group: SlotId) -> Option<&mut Rate> {
            self.get_mut(group.index())
        }
    }

    impl<G: Eq + Hash, P: Priorities> Default for GroupedLists<GrowableGroups<G, P>> {
        fn default() -> Self {
            Self::from_parts(
                LinkArray::EMPTY,
                GrowableSlots::with_capacity(RandomState::default(), 0),
                GrowableNodes::new(),
                <P::PerLevel<Ring> as LevelArray<Ring>>::EMPTY,
                <P::PerLevel<Depth> as LevelArray<Depth>>::EMPTY,
            )
        }
    }
}

#[cfg(feature = "alloc")]
pub(crate) use growable::GrowableGroups;
