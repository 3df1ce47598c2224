//! Memory that grows with the number of keys.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash};

use hashbrown::HashTable;

/// The default hasher of [`Growable`]: foldhash, seeded at random.
pub use foldhash::fast::RandomState;

use crate::Instant;
use crate::delay::{ARITY, Node, Nodes};
use crate::id::SlotId;
use crate::lists::{Link, Links, List, Lists};

use super::{Located, Slot, Slots, Storage};

/// Room for as many keys as memory holds, up to 2^32 - 2.
///
/// `H` hashes the keys. The default is quick and seeded at random, so that nobody can choose keys
/// that collide; [`Queue::from_parts`](crate::Queue::from_parts) takes any other.
///
/// Growth moves the table: one add can then cost O(n). [`Queue::with_capacity`] and
/// [`Queue::reserve`] do that beforehand.
///
/// [`Queue::with_capacity`]: crate::Queue::with_capacity
/// [`Queue::reserve`]: crate::Queue::reserve
///
/// # Examples
///
/// ```
/// use requeue_core::{Growable, ItemExponentialFailure, Queue, default_item_based};
///
/// let queue: Queue<String, Growable, ItemExponentialFailure> =
///     Queue::with_capacity(default_item_based(), 10_000);
/// assert_eq!(queue.capacity(), None);
/// ```
#[derive(Debug)]
pub struct Growable<H = RandomState>(core::marker::PhantomData<H>);

impl<H> super::sealed::Sealed for Growable<H> {}

impl<H: BuildHasher> Storage for Growable<H> {
    const CAPACITY: Option<usize> = None;
    type Slots<K: Eq + Hash, S> = GrowableSlots<K, S, H>;
    type Lists = GrowableLists;
    type Nodes = GrowableNodes;
}

/// Slots in one vector, indexed by a table of slot numbers.
#[doc(hidden)]
#[derive(Debug)]
pub struct GrowableSlots<K, S, H> {
    table: HashTable<u32>,
    entries: Vec<Option<Entry<K, S>>>,
    /// Vacant slots; the last to be emptied is the first to be filled, since it is still in cache.
    free: Vec<u32>,
    hasher: H,
}

/// The hash is kept beside the slot: the table then grows, and forgets a key, without touching keys.
#[derive(Debug)]
struct Entry<K, S> {
    slot: Slot<K, S>,
    hash: u32,
}

impl<K, S, H> GrowableSlots<K, S, H> {
    pub(crate) fn with_capacity(hasher: H, capacity: usize) -> Self {
        Self {
            table: HashTable::with_capacity(capacity),
            entries: Vec::with_capacity(capacity),
            free: Vec::new(),
            hasher,
        }
    }

    pub(crate) fn reserve(&mut self, additional: usize) {
        let entries = &self.entries;
        self.table
            .reserve(additional, |&id| rehash(entries, SlotId(id)));
        self.entries
            .reserve(additional.saturating_sub(self.free.len()));
    }
}

impl<K: Eq + Hash, S, H: BuildHasher> Slots<K, S> for GrowableSlots<K, S, H> {
    #[inline]
    fn locate(&self, key: &K) -> Located {
        let hash = self.hasher.hash_one(key) as u32;
        let found = self.table.find(spread(hash), |&id| {
            self.slot(SlotId(id)).is_some_and(|slot| slot.key == *key)
        });
        match found {
            Some(&id) => Located::Found(SlotId(id)),
            None => Located::Absent(hash),
        }
    }

    #[inline]
    fn claim(&mut self, hash: u32, key: K, note: S) -> Result<SlotId, K> {
        let entry = Some(Entry {
            slot: Slot::new(key, note),
            hash,
        });
        let id = match self.free.pop() {
            Some(id) => {
                if let Some(vacant) = self.entries.get_mut(id as usize) {
                    *vacant = entry;
                }
                SlotId(id)
            }
            None => {
                self.entries.push(entry);
                SlotId::from_index(self.entries.len() - 1)
            }
        };
        let entries = &self.entries;
        self.table
            .insert_unique(spread(hash), id.0, |&id| rehash(entries, SlotId(id)));
        Ok(id)
    }

    #[inline]
    fn release(&mut self, id: SlotId) {
        let Some(entry) = self.entries.get_mut(id.index()) else {
            return;
        };
        let Some(emptied) = entry.take() else {
            return;
        };
        if let Ok(found) = self
            .table
            .find_entry(spread(emptied.hash), |&other| other == id.0)
        {
            let _ = found.remove();
        }
        self.free.push(id.0);
    }

    #[inline]
    fn slot(&self, id: SlotId) -> Option<&Slot<K, S>> {
        Some(&self.entries.get(id.index())?.as_ref()?.slot)
    }

    #[inline]
    fn slot_mut(&mut self, id: SlotId) -> Option<&mut Slot<K, S>> {
        Some(&mut self.entries.get_mut(id.index())?.as_mut()?.slot)
    }

    fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    fn bound(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    fn has_room(&self) -> bool {
        true
    }
}

/// The table takes its index from the low bits of a hash and a tag from the high ones. A slot keeps
/// 32 bits, which one multiplication makes 64.
#[inline]
const fn spread(hash: u32) -> u64 {
    (hash as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn rehash<K, S>(entries: &[Option<Entry<K, S>>], id: SlotId) -> u64 {
    let hash = match entries.get(id.index()) {
        Some(Some(entry)) => entry.hash,
        _ => 0,
    };
    spread(hash)
}

/// Ready keys in a ring, memories in a list whose links exist only once there is a memory.
#[doc(hidden)]
#[derive(Debug)]
pub struct GrowableLists {
    ready: VecDeque<u32>,
    links: Vec<Link<u32>>,
    memories: List<u32>,
}

impl GrowableLists {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self {
            ready: VecDeque::with_capacity(capacity),
            links: Vec::new(),
            memories: List::new(),
        }
    }

    pub(crate) fn reserve(&mut self, additional: usize) {
        self.ready.reserve(additional);
    }
}

impl Links<u32> for Vec<Link<u32>> {
    fn link(&self, id: SlotId) -> Link<u32> {
        self.get(id.index()).copied().unwrap_or(Link::UNLINKED)
    }

    fn set_link(&mut self, id: SlotId, link: Link<u32>) {
        if self.len() <= id.index() {
            self.resize(id.index() + 1, Link::UNLINKED);
        }
        if let Some(to) = self.get_mut(id.index()) {
            *to = link;
        }
    }
}

impl Lists for GrowableLists {
    #[inline]
    fn push_ready(&mut self, id: SlotId) {
        self.ready.push_back(id.0);
    }

    #[inline]
    fn first_ready(&self) -> Option<SlotId> {
        self.ready.front().map(|&id| SlotId(id))
    }

    #[inline]
    fn pop_ready(&mut self) -> Option<SlotId> {
        self.ready.pop_front().map(SlotId)
    }

    #[inline]
    fn ready_len(&self) -> usize {
        self.ready.len()
    }

    fn remember(&mut self, id: SlotId) {
        self.memories.push_back(&mut self.links, id);
    }

    #[inline]
    fn unremember(&mut self, id: SlotId) {
        if self.memories.len() > 0 {
            self.memories.remove(&mut self.links, id);
        }
    }

    fn oldest_memory(&self) -> Option<SlotId> {
        self.memories.first()
    }

    fn memories_len(&self) -> usize {
        self.memories.len()
    }

    fn younger_memory(&self, id: SlotId) -> Option<SlotId> {
        self.memories.after(&self.links, id)
    }

    fn ready_at(&self, place: usize) -> Option<SlotId> {
        self.ready.get(place).map(|&id| SlotId(id))
    }
}

/// The heap in groups of four children, each group one cache line, padded with the largest value so
/// that the least of four is found without a branch.
///
/// Node 0, the root, is the last of group 0; the children of node n are group n + 1.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct GrowableNodes {
    groups: Vec<Group>,
    /// The node of each slot, as far as slots have ever waited.
    position: Vec<u32>,
    len: usize,
}

/// Four nodes, each packed into 128 bits that compare as (due, sequence).
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Group([u128; ARITY]);

/// Where no slot has a number as large as this, no packed node is as large as the padding.
const NOWHERE: u32 = u32::MAX;
const PADDING: u128 = u128::MAX;

impl Group {
    const EMPTY: Self = Self([PADDING; ARITY]);
}

const fn pack(node: Node) -> u128 {
    (node.due.as_nanos() as u128) << 64 | (node.sequence as u128) << 32 | node.id.0 as u128
}

const fn unpack(packed: u128) -> Node {
    Node {
        due: Instant::from_nanos((packed >> 64) as u64),
        sequence: (packed >> 32) as u32,
        id: SlotId(packed as u32),
    }
}

/// The flat place of a node: the root stands at the end of the first group.
const fn place_of(index: usize) -> (usize, usize) {
    let flat = index + ARITY - 1;
    (flat / ARITY, flat % ARITY)
}

impl GrowableNodes {
    fn cell(&mut self, index: usize) -> Option<&mut u128> {
        let (group, place) = place_of(index);
        self.groups.get_mut(group)?.0.get_mut(place)
    }
}

impl Nodes for GrowableNodes {
    #[inline]
    fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn node(&self, index: usize) -> Option<Node> {
        let (group, place) = place_of(index);
        let packed = *self.groups.get(group)?.0.get(place)?;
        (packed != PADDING).then(|| unpack(packed))
    }

    #[inline]
    fn least_child(&self, index: usize) -> Option<(usize, Node)> {
        let [a, b, c, d] = self.groups.get(index + 1)?.0;
        let (left, left_place) = if b < a { (b, 1) } else { (a, 0) };
        let (right, right_place) = if d < c { (d, 3) } else { (c, 2) };
        let (least, place) = if right < left {
            (right, right_place)
        } else {
            (left, left_place)
        };
        (least != PADDING).then(|| (index * ARITY + 1 + place, unpack(least)))
    }

    #[inline]
    fn place(&mut self, index: usize, node: Node) {
        if let Some(cell) = self.cell(index) {
            *cell = pack(node);
        }
        if let Some(position) = self.position.get_mut(node.id.index()) {
            *position = index as u32;
        } else {
            self.position.resize(node.id.index() + 1, NOWHERE);
            if let Some(position) = self.position.last_mut() {
                *position = index as u32;
            }
        }
    }

    fn grow(&mut self) {
        let (group, _) = place_of(self.len);
        if group == self.groups.len() {
            self.groups.push(Group::EMPTY);
        }
        self.len += 1;
    }

    fn shrink(&mut self) {
        self.len -= 1;
        if let Some(cell) = self.cell(self.len) {
            *cell = PADDING;
        }
    }

    #[inline]
    fn position(&self, id: SlotId) -> Option<usize> {
        let index = *self.position.get(id.index())?;
        (index != NOWHERE).then_some(index as usize)
    }

    fn clear_position(&mut self, id: SlotId) {
        if let Some(position) = self.position.get_mut(id.index()) {
            *position = NOWHERE;
        }
    }
}
