//! A heap in three arrays. Owns where a node is stored; the heap owns their order.

use crate::Instant;
use crate::delay::{ARITY, Node, Nodes, Slack};
use crate::id::{Index, SlotId};

/// The heap as three arrays, with the position of each slot. A node takes 12 + size(I) bytes. In
/// one array it would be padded to 16. `Z` is the slack of a slot, if the queue uses slack.
#[doc(hidden)]
#[derive(Debug)]
pub struct FixedNodes<const N: usize, I, Z = ()> {
    deadline: [Deadline; N],
    id: [I; N],
    position: [I; N],
    slack: [Z; N],
    len: usize,
}

/// The key by which nodes are ordered, in words, which need no padding.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    due_low: u32,
    due_high: u32,
    sequence: u32,
}

impl Deadline {
    const UNUSED: Self = Self {
        due_low: u32::MAX,
        due_high: u32::MAX,
        sequence: 0,
    };

    #[inline]
    fn new(node: Node) -> Self {
        let due = node.due.as_nanos();
        Self {
            due_low: due as u32,
            due_high: (due >> 32) as u32,
            sequence: node.sequence,
        }
    }

    #[inline]
    fn due(self) -> Instant {
        Instant::from_nanos(u64::from(self.due_high) << 32 | u64::from(self.due_low))
    }

    /// Most children do not precede the least one so far, and one comparison shows that.
    #[inline]
    fn precedes(self, other: Self) -> bool {
        let (due, other_due) = (self.due(), other.due());
        due <= other_due && (due < other_due || self.sequence < other.sequence)
    }
}

impl<const N: usize, I: Index, Z: Slack> FixedNodes<N, I, Z> {
    pub(crate) const fn new() -> Self {
        Self {
            deadline: [Deadline::UNUSED; N],
            id: [I::NONE; N],
            position: [I::NONE; N],
            slack: [Z::NONE; N],
            len: 0,
        }
    }
}

impl<const N: usize, I: Index, Z: Slack> Nodes for FixedNodes<N, I, Z> {
    type Slack = Z;

    #[inline]
    fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn due(&self, index: usize) -> Option<Instant> {
        Some(self.deadline.get(index)?.due())
    }

    #[inline]
    fn node(&self, index: usize) -> Option<Node> {
        let deadline = self.deadline.get(index)?;
        Some(Node {
            due: deadline.due(),
            sequence: deadline.sequence,
            id: self.id.get(index)?.slot(),
        })
    }

    fn child_before(&self, index: usize, node: &Node) -> Option<(usize, Node)> {
        let first = index * ARITY + 1;
        let children = self.deadline.get(first..self.len.min(first + ARITY))?;
        let (mut least, (mut deadline, others)) = (first, (*children.first()?, children.get(1..)?));
        for (child, other) in (first + 1..).zip(others) {
            if other.precedes(deadline) {
                (least, deadline) = (child, *other);
            }
        }
        // Usually the node belongs further down, and one comparison shows that.
        if Deadline::new(*node).precedes(deadline) {
            return None;
        }
        let node = Node {
            due: deadline.due(),
            sequence: deadline.sequence,
            id: self.id.get(least)?.slot(),
        };
        Some((least, node))
    }

    fn place(&mut self, index: usize, node: Node) {
        if let (Some(deadline), Some(id), Some(position)) = (
            self.deadline.get_mut(index),
            self.id.get_mut(index),
            self.position.get_mut(node.id.index()),
        ) {
            *deadline = Deadline::new(node);
            *id = I::new(node.id);
            *position = I::new(SlotId::from_index(index));
        }
    }

    fn grow(&mut self, _: SlotId) {
        debug_assert!(self.len < N, "a slot waits for at most one deadline");
        self.len += 1;
    }

    fn shrink(&mut self) {
        self.len -= 1;
    }

    #[inline]
    fn position(&self, id: SlotId) -> Option<usize> {
        Some(self.position.get(id.index())?.get()?.index())
    }

    fn clear_position(&mut self, id: SlotId) {
        if let Some(position) = self.position.get_mut(id.index()) {
            *position = I::NONE;
        }
    }

    #[inline]
    fn slack(&self, id: SlotId) -> Z {
        let slack = self.slack.get(id.index());
        slack.copied().unwrap_or(Z::NONE)
    }

    #[inline]
    fn set_slack(&mut self, id: SlotId, slack: Z) {
        if let Some(own) = self.slack.get_mut(id.index()) {
            *own = slack;
        }
    }
}
