//! A heap in which the children of a node share one cache line. Owns where a node is stored; the
//! heap owns their order.

use crate::Instant;
use crate::delay::{ARITY, Node, Nodes};
use crate::id::SlotId;
use crate::segments::Segments;

/// The heap in groups of four children. Each group is one cache line, padded with the largest
/// value, so that the least of four is found without a branch.
///
/// Node 0, the root, is the last of group [`FIRST_GROUP`]. The children of node n are n + 1 groups
/// further. So the groups of a node's grandchildren begin at a multiple of four, and are in one
/// segment.
#[doc(hidden)]
#[derive(Debug)]
pub struct GrowableNodes {
    groups: Segments<Group, 64>,
    /// The node of each slot that has ever waited.
    position: Segments<u32, 1024>,
    /// The slack of each slot, in nanoseconds. Empty until a slot has some.
    slack: Segments<u64, 512>,
    len: usize,
}

const FIRST_GROUP: usize = 2;

/// Four nodes, each packed into 128 bits, which compare as (due, sequence).
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Group([u128; ARITY]);

/// No slot has this number, so no packed node is as large as the padding.
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

/// The group of a node, and its place in the group. The root is the last of the first group.
const fn place_of(index: usize) -> (usize, usize) {
    let flat = index + ARITY - 1;
    (FIRST_GROUP + flat / ARITY, flat % ARITY)
}

/// The group of a node's children.
const fn children_of(index: usize) -> usize {
    FIRST_GROUP + index + 1
}

/// Up to this many nodes (256 KiB) are expected to be in cache.
const CACHED_NODES: usize = 1 << 14;

impl GrowableNodes {
    pub(crate) const fn new() -> Self {
        Self {
            groups: Segments::new(),
            position: Segments::new(),
            slack: Segments::new(),
            len: 0,
        }
    }

    /// Reads one word of each group of grandchildren, which are adjacent. One of the four groups is
    /// needed next, but which one is only known after comparing the children. So all four lines are
    /// fetched meanwhile. Measured: 10^6 deadlines expire in four fifths of the time.
    #[inline]
    fn touch_grandchildren(&self, index: usize) {
        let first = children_of(index * ARITY + 1);
        if let Some(groups) = self.groups.adjacent::<ARITY>(first) {
            let touched = groups.iter().fold(0, |all, group| all ^ group.0[0] as u64);
            core::hint::black_box(touched);
        }
    }

    #[inline(never)]
    fn write_slack(&mut self, id: SlotId, slack: u64) {
        let own = if slack > 0 {
            self.slack.slot(id.index(), 0)
        } else {
            self.slack.get_mut(id.index())
        };
        if let Some(own) = own {
            *own = slack;
        }
    }

    fn cell(&mut self, index: usize) -> Option<&mut u128> {
        let (group, place) = place_of(index);
        self.groups.get_mut(group)?.0.get_mut(place)
    }
}

impl Nodes for GrowableNodes {
    type Slack = u64;

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
    fn due(&self, index: usize) -> Option<Instant> {
        let (group, place) = place_of(index);
        let packed = *self.groups.get(group)?.0.get(place)?;
        // The padding has a deadline that never passes.
        Some(Instant::from_nanos((packed >> 64) as u64))
    }

    #[inline]
    fn child_before(&self, index: usize, node: &Node) -> Option<(usize, Node)> {
        if index * ARITY + 1 >= self.len {
            return None;
        }
        if self.len > CACHED_NODES {
            self.touch_grandchildren(index);
        }
        let [a, b, c, d] = self.groups.get(children_of(index))?.0;
        let (left, left_place) = if b < a { (b, 1) } else { (a, 0) };
        let (right, right_place) = if d < c { (d, 3) } else { (c, 2) };
        let (least, place) = if right < left {
            (right, right_place)
        } else {
            (left, left_place)
        };
        // The padding precedes nothing. A branch, because `then_some` makes
        // `delay, expire, take 1000` in examples/bench a third slower.
        if least >= pack(*node) {
            return None;
        }
        Some((index * ARITY + 1 + place, unpack(least)))
    }

    #[inline]
    fn place(&mut self, index: usize, node: Node) {
        if let Some(cell) = self.cell(index) {
            *cell = pack(node);
        }
        if let Some(position) = self.position.get_mut(node.id.index()) {
            *position = index as u32;
        }
    }

    fn grow(&mut self, id: SlotId) {
        let (group, _) = place_of(self.len);
        let _ = self.groups.slot(group, Group::EMPTY);
        let _ = self.position.slot(id.index(), NOWHERE);
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

    #[inline]
    fn has_slack(&self) -> bool {
        !self.slack.is_empty()
    }

    #[inline]
    fn slack(&self, id: SlotId) -> u64 {
        self.slack.get(id.index()).copied().unwrap_or(0)
    }

    #[inline]
    fn set_slack(&mut self, id: SlotId, slack: u64) {
        if slack > 0 || self.has_slack() {
            self.write_slack(id, slack);
        }
    }
}
