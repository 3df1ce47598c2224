//! A heap in three arrays.

use crate::Instant;
use crate::delay::{ARITY, Node, Nodes};
use crate::id::{Index, SlotId};

/// The heap as three arrays: 8 + 4 + size(I) bytes a node, where an array of nodes would pad to 16.
#[doc(hidden)]
#[derive(Debug)]
pub struct FixedNodes<const N: usize, I> {
    due: [Instant; N],
    sequence: [u32; N],
    id: [I; N],
    position: [I; N],
    len: usize,
}

impl<const N: usize, I: Index> FixedNodes<N, I> {
    pub(crate) const fn new() -> Self {
        Self {
            due: [Instant::NEVER; N],
            sequence: [0; N],
            id: [I::NONE; N],
            position: [I::NONE; N],
            len: 0,
        }
    }
}

impl<const N: usize, I: Index> Nodes for FixedNodes<N, I> {
    #[inline]
    fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn due(&self, index: usize) -> Option<Instant> {
        self.due.get(..self.len)?.get(index).copied()
    }

    #[inline]
    fn node(&self, index: usize) -> Option<Node> {
        if index >= self.len {
            return None;
        }
        Some(Node {
            due: *self.due.get(index)?,
            sequence: *self.sequence.get(index)?,
            id: self.id.get(index)?.get()?,
        })
    }

    /// Sequence numbers are looked at only where deadlines are equal, and the slots of those that
    /// are not the least never.
    fn least_child(&self, index: usize) -> Option<(usize, Node)> {
        let first = index * ARITY + 1;
        let mut least = first;
        let mut due = self.due(first)?;
        for child in first + 1..self.len.min(first + ARITY) {
            let other = *self.due.get(child)?;
            let sooner = || self.sequence.get(child) < self.sequence.get(least);
            if other < due || (other == due && sooner()) {
                (least, due) = (child, other);
            }
        }
        Some((least, self.node(least)?))
    }

    fn place(&mut self, index: usize, node: Node) {
        if let (Some(due), Some(sequence), Some(id), Some(position)) = (
            self.due.get_mut(index),
            self.sequence.get_mut(index),
            self.id.get_mut(index),
            self.position.get_mut(node.id.index()),
        ) {
            *due = node.due;
            *sequence = node.sequence;
            *id = I::new(node.id);
            *position = I::new(SlotId::from_index(index));
        }
    }

    fn grow(&mut self) {
        debug_assert!(self.len < N, "a slot waits for one deadline at most");
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
}
