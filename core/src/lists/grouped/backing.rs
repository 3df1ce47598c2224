//! What the lists of groups are stored in: fixed, or growable.

use core::hash::Hash;
use core::marker::PhantomData;

use crate::delay::Nodes;
use crate::id::{Index, SlotId};
use crate::lists::{ConstEmpty, Link, LinkArray, List};
use crate::priority::Priorities;
use crate::storage::Slots;
use crate::storage::fixed::{FixedNodes, FixedSlots};

use super::{Depth, Group, GroupedLists};

/// A value for each priority level.
pub(crate) type PerLevel<B, T> = <<B as Backing>::Priorities as Priorities>::PerLevel<T>;

#[doc(hidden)]
pub trait Backing {
    type Name: Eq + Hash;
    type Priorities: Priorities;
    type Index: Index;
    type Links: LinkArray<Self::Index>;
    type Members: Members;
    type Lanes: LevelArray<Lane<Self::Index>>;
    type Groups: Slots<Self::Name, Group<Self::Lanes>>;
    type Nodes: Nodes;

    const LEVELS: usize = Self::Priorities::LEVELS as usize;
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

/// A value that exists at compile time.
#[doc(hidden)]
pub trait ConstDefault: Copy {
    const DEFAULT: Self;
}

impl<I: Index> ConstDefault for List<I> {
    const DEFAULT: Self = Self::new();
}

impl<I: Index> ConstDefault for Lane<I> {
    const DEFAULT: Self = Self {
        keys: List::new(),
        served: 0,
        turn: Link::UNLINKED,
    };
}

/// An array with a place for each level.
#[doc(hidden)]
pub trait LevelArray<T> {
    const EMPTY: Self;

    fn get(&self, level: usize) -> Option<&T>;
    fn get_mut(&mut self, level: usize) -> Option<&mut T>;
}

impl<T: ConstDefault, const P: usize> LevelArray<T> for [T; P] {
    const EMPTY: Self = [T::DEFAULT; P];

    #[inline]
    fn get(&self, level: usize) -> Option<&T> {
        self.as_slice().get(level)
    }

    #[inline]
    fn get_mut(&mut self, level: usize) -> Option<&mut T> {
        self.as_mut_slice().get_mut(level)
    }
}

/// The group of each slot.
#[doc(hidden)]
pub trait Members {
    fn get(&self, id: SlotId) -> SlotId;
    fn set(&mut self, id: SlotId, group: SlotId);
}

impl<const N: usize> Members for [u8; N] {
    fn get(&self, id: SlotId) -> SlotId {
        let group = <[u8]>::get(self, id.index()).and_then(|group| group.get());
        group.unwrap_or(SlotId::NONE)
    }

    fn set(&mut self, id: SlotId, group: SlotId) {
        if let Some(to) = self.get_mut(id.index()) {
            *to = u8::new(group);
        }
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
    type Links = [Link<I>; N];
    type Members = [u8; N];
    type Lanes = P::PerLevel<Lane<I>>;
    type Groups = FixedSlots<G, Group<Self::Lanes>, MAX, u8>;
    type Nodes = FixedNodes<MAX, u8>;
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
        [<u8 as Index>::NONE; N],
        FixedSlots::new(),
        FixedNodes::new(),
        <P::PerLevel<List<u32>> as LevelArray<List<u32>>>::EMPTY,
        <P::PerLevel<Depth> as LevelArray<Depth>>::EMPTY,
    );
}

#[cfg(feature = "alloc")]
mod growable {
    use crate::storage::growable::{
        GrowableLinks, GrowableNodes, GrowableSlots, RandomState, Segments,
    };

    use super::*;

    /// As many groups as there are names.
    #[doc(hidden)]
    #[derive(Debug)]
    pub struct GrowableGroups<G, P>(PhantomData<(G, P)>);

    impl<G: Eq + Hash, P: Priorities> Backing for GrowableGroups<G, P> {
        type Name = G;
        type Priorities = P;
        type Index = u32;
        type Links = GrowableLinks;
        type Members = Segments<u32, 1024>;
        type Lanes = P::PerLevel<Lane<u32>>;
        type Groups = GrowableSlots<G, Group<Self::Lanes>, RandomState>;
        type Nodes = GrowableNodes;
    }

    impl Members for Segments<u32, 1024> {
        fn get(&self, id: SlotId) -> SlotId {
            SlotId(self.get(id.index()).copied().unwrap_or(u32::NONE))
        }

        fn set(&mut self, id: SlotId, group: SlotId) {
            if let Some(to) = self.slot(id.index(), u32::NONE) {
                *to = group.0;
            }
        }
    }

    impl<G: Eq + Hash, P: Priorities> Default for GroupedLists<GrowableGroups<G, P>> {
        fn default() -> Self {
            Self::from_parts(
                LinkArray::EMPTY,
                Segments::new(),
                GrowableSlots::with_capacity(RandomState::default(), 0),
                GrowableNodes::new(),
                <P::PerLevel<List<u32>> as LevelArray<List<u32>>>::EMPTY,
                <P::PerLevel<Depth> as LevelArray<Depth>>::EMPTY,
            )
        }
    }
}

#[cfg(feature = "alloc")]
pub(crate) use growable::GrowableGroups;
