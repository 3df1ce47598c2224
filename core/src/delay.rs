//! Keys that wait for a deadline: an indexed 4-ary min-heap of slots by (due, sequence).
//!
//! A 4-ary heap is half as deep as a binary one. If the children of a node are adjacent, finding
//! the least of them costs one cache line (D. B. Johnson, "Priority queues with update and finding
//! minimum spanning trees", 1975; A. LaMarca and R. Ladner, "The influence of caches on the
//! performance of heaps", 1996). The heap is indexed: each slot knows its node, so an earlier
//! deadline needs a sift, but no search. Lazy deletion was measured and is slower.

use core::fmt::Debug;

use crate::Instant;
use crate::id::SlotId;

/// How many children a node has.
pub(crate) const ARITY: usize = 4;

/// From one sequence number to the next.
const NEXT: u32 = 2;

/// The bit of a sequence number that says that the limiter set the deadline.
const BACKOFF: u32 = 1;

/// The deadlines of a queue.
///
/// **H1** No node is less than its parent.
/// **H2** A slot's position names its node. A slot that does not wait has no position.
/// **H3** No two nodes have the same sequence number.
/// **H4** No slack is longer than its deadline, and a deadline that never comes has none.
#[derive(Debug)]
pub(crate) struct Delays<N> {
    nodes: N,
    /// The sequence number of the next deadline, which orders equal deadlines. It is even, because
    /// the lowest bit of a node's number says that the deadline is a backoff. It restarts after
    /// 2^31 deadlines. Then equal deadlines from before the restart leave last.
    sequence: u32,
    /// This deadline and later ones never pass.
    end: Deadline,
}

/// The result of [`Delays::schedule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DelayChange {
    /// The slot did not wait before.
    New,
    /// The slot waited for a later time.
    Sooner,
    /// The slot already waits for that time or an earlier one.
    Kept,
}

/// How much earlier than its deadline a key may run, in nanoseconds: `()` in a queue without slack.
#[doc(hidden)]
pub trait Slack: Copy + Debug {
    const EXISTS: bool = false;
    const NONE: Self;

    fn from_nanos(nanos: u64) -> Self;

    #[inline]
    fn nanos(self) -> u64 {
        0
    }
}

impl Slack for () {
    const NONE: Self = ();

    #[inline]
    fn from_nanos(_: u64) {}
}

impl Slack for u64 {
    const EXISTS: bool = true;
    const NONE: Self = 0;

    #[inline]
    fn from_nanos(nanos: u64) -> Self {
        nanos
    }

    #[inline]
    fn nanos(self) -> u64 {
        self
    }
}

/// A deadline, and how much earlier it may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window<Z> {
    pub(crate) due: Instant,
    pub(crate) slack: Z,
}

impl<Z: Slack> Window<Z> {
    #[inline]
    pub(crate) const fn exact(due: Instant) -> Self {
        let slack = Z::NONE;
        Self { due, slack }
    }

    /// The window that opens at an instant and ends `slack` nanoseconds later, but before
    /// [`Instant::NEVER`].
    #[inline]
    pub(crate) fn from(opens: Instant, slack: u64) -> Self {
        if !Z::EXISTS || opens.is_never() {
            return Self::exact(opens);
        }
        let last = opens.as_nanos().saturating_add(slack).min(u64::MAX - 1);
        Self::between(opens, Instant::from_nanos(last))
    }

    #[inline]
    fn between(opens: Instant, due: Instant) -> Self {
        if !Z::EXISTS || due.is_never() {
            return Self::exact(due);
        }
        let slack = due.as_nanos().saturating_sub(opens.as_nanos());
        let slack = Z::from_nanos(slack);
        Self { due, slack }
    }

    /// When the window opens.
    #[inline]
    pub(crate) fn opens(self) -> Instant {
        Instant::from_nanos(self.due.as_nanos().saturating_sub(self.slack.nanos()))
    }

    /// The window without what is before an instant.
    #[inline]
    pub(crate) fn not_before(self, at: Instant) -> Self {
        if self.slack.nanos() == 0 {
            return Self::exact(self.due.max(at));
        }
        Self::between(self.opens().max(at), self.due.max(at))
    }

    /// From the earlier of two beginnings to the earlier of two ends.
    #[inline]
    fn earlier(self, other: Self) -> Self {
        Self::between(self.opens().min(other.opens()), self.due.min(other.due))
    }

    /// From the later of two beginnings to the later of two ends.
    pub(crate) fn later(self, other: Self) -> Self {
        Self::between(self.opens().max(other.opens()), self.due.max(other.due))
    }
}

/// The key by which nodes are ordered.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    due: Instant,
    sequence: u32,
}

impl Deadline {
    const NEVER: Self = Self {
        due: Instant::NEVER,
        sequence: 0,
    };
}

/// A slot that waits.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    pub(crate) due: Instant,
    pub(crate) sequence: u32,
    pub(crate) id: SlotId,
}

impl Node {
    #[inline]
    pub(crate) fn precedes(&self, other: &Self) -> bool {
        self.due < other.due || (self.due == other.due && self.sequence < other.sequence)
    }
}

/// The storage of a heap: nodes 0.. in heap order, and the position and the slack of each slot.
#[doc(hidden)]
pub trait Nodes {
    type Slack: Slack;

    fn len(&self) -> usize;
    #[inline]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The node at an index below `len`.
    fn node(&self, index: usize) -> Option<Node>;
    /// The deadline of that node, without reading the rest of it.
    #[inline]
    fn due(&self, index: usize) -> Option<Instant> {
        Some(self.node(index)?.due)
    }
    /// The least child of a node, with its index, if it precedes `node`.
    fn child_before(&self, index: usize, node: &Node) -> Option<(usize, Node)>;
    /// Writes a node and the position of its slot.
    fn place(&mut self, index: usize, node: Node);
    /// Makes room for one node at the end, which the caller then fills.
    fn grow(&mut self, id: SlotId);
    /// Removes the last node.
    fn shrink(&mut self);
    fn position(&self, id: SlotId) -> Option<usize>;
    fn clear_position(&mut self, id: SlotId);
    /// Whether any slot may have slack.
    #[inline]
    fn has_slack(&self) -> bool {
        Self::Slack::EXISTS
    }
    fn slack(&self, id: SlotId) -> Self::Slack;
    fn set_slack(&mut self, id: SlotId, slack: Self::Slack);
}

impl<N> Delays<N> {
    pub(crate) const fn new(nodes: N) -> Self {
        Self {
            nodes,
            sequence: 0,
            end: Deadline::NEVER,
        }
    }
}

impl<N: Nodes> Delays<N> {
    /// Lets a slot wait for a window. If it waits for another one, the earlier beginning and the
    /// earlier end count. O(log n).
    #[cfg_attr(feature = "alloc", inline(always))]
    pub(crate) fn schedule(&mut self, id: SlotId, window: Window<N::Slack>) -> DelayChange {
        if window.slack.nanos() > 0 || self.nodes.has_slack() {
            return self.schedule_window(id, window);
        }
        self.schedule_at(id, window.due)
    }

    /// The same in a queue that uses slack.
    #[inline(never)]
    fn schedule_window(&mut self, id: SlotId, window: Window<N::Slack>) -> DelayChange {
        let merged = self.window(id).map_or(window, |own| own.earlier(window));
        self.nodes.set_slack(id, merged.slack);
        self.schedule_at(id, window.due)
    }

    #[inline(always)]
    fn schedule_at(&mut self, id: SlotId, due: Instant) -> DelayChange {
        let (index, scheduled) = match self.nodes.position(id) {
            Some(index) if self.due_at(index) <= due => return DelayChange::Kept,
            Some(index) => (index, DelayChange::Sooner),
            None => {
                self.nodes.grow(id);
                (self.nodes.len() - 1, DelayChange::New)
            }
        };
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(NEXT);
        let _ = self.sift_up(index, Node { due, sequence, id });
        scheduled
    }

    /// Changes the beginning of a slot's window, whose end stays. O(1).
    pub(crate) fn open_at(&mut self, id: SlotId, opens: Instant) {
        if let Some(due) = self.due(id) {
            let window = Window::between(opens, due);
            self.nodes.set_slack(id, window.slack);
        }
    }

    /// Stores the slack of a suspension that is planned for the end of the slot's run. O(1).
    pub(crate) fn set_slack(&mut self, id: SlotId, slack: N::Slack) {
        self.nodes.set_slack(id, slack);
    }

    /// Lets a slot wait for a window, even if that is later than its present one. Returns the
    /// present deadline. O(log n).
    pub(crate) fn move_to(&mut self, id: SlotId, window: Window<N::Slack>) -> Option<Instant> {
        let due = window.due;
        self.nodes.set_slack(id, window.slack);
        let position = self.nodes.position(id);
        let before = position.map(|index| self.due_at(index));
        let index = position.unwrap_or_else(|| {
            self.nodes.grow(id);
            self.nodes.len() - 1
        });
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(NEXT);
        self.put(index, Node { due, sequence, id });
        before
    }

    /// Marks the deadline of a slot as a backoff, if the slot waits until `due`. It stays marked
    /// until the slot has another deadline. O(1).
    #[inline(never)]
    pub(crate) fn note_backoff(&mut self, id: SlotId, due: Instant) {
        if let Some(index) = self.nodes.position(id)
            && let Some(node) = self.nodes.node(index)
            && node.due == due
        {
            // Sequence numbers differ by more than this bit, so the node keeps its place.
            let sequence = node.sequence | BACKOFF;
            self.nodes.place(index, Node { sequence, ..node });
        }
    }

    /// Whether a slot waits for the end of a backoff. O(1).
    pub(crate) fn is_backoff(&self, id: SlotId) -> bool {
        let node = self.nodes.position(id).map(|index| self.nodes.node(index));
        node.flatten()
            .is_some_and(|node| node.sequence & BACKOFF != 0)
    }

    /// The earliest deadline, unless it never comes. O(1).
    #[inline]
    pub(crate) fn earliest(&self) -> Option<Instant> {
        if self.is_empty() {
            return None;
        }
        let due = self.nodes.due(0)?;
        (!due.is_never()).then_some(due)
    }

    /// Stops the time: deadlines after `now`, and all that are set later, never pass.
    pub(crate) fn stop(&mut self, now: Instant) {
        if !now.is_never() {
            let (due, sequence) = (now, self.sequence);
            self.end = Deadline { due, sequence };
        }
    }

    /// When the time was stopped.
    pub(crate) fn stopped_at(&self) -> Instant {
        self.end.due
    }

    /// Whether any window of the queue may open before its end. O(1).
    #[inline]
    pub(crate) fn has_slack(&self) -> bool {
        self.nodes.has_slack()
    }

    /// Whether the earliest deadline has passed, or its window is open. O(1).
    #[inline]
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.is_due_at(0, now)
    }

    /// Whether the deadline of a slot has passed, or its window is open. O(1).
    #[inline]
    pub(crate) fn has_passed(&self, id: SlotId, now: Instant) -> bool {
        let index = self.nodes.position(id);
        index.is_some_and(|index| self.is_due_at(index, now))
    }

    /// Whether the earliest deadline may have passed, or its window or that of `own` is open. One
    /// comparison and one test, for the usual answer: no.
    #[inline]
    pub(crate) fn may_be_due(&self, own: SlotId, now: Instant) -> bool {
        self.due_at(0) <= now || (self.nodes.has_slack() && self.is_open(own, now))
    }

    #[inline(never)]
    fn is_open(&self, own: SlotId, now: Instant) -> bool {
        self.is_due(now) || self.has_passed(own, now)
    }

    /// Removes a slot whose deadline has passed or whose window is open: the preferred one, or else
    /// the one with the earliest deadline. Returns when it became due: at its deadline, or now if
    /// that is earlier. O(log n).
    #[inline]
    pub(crate) fn take_due(
        &mut self,
        preferred: SlotId,
        now: Instant,
    ) -> Option<(SlotId, Instant)> {
        if self.nodes.has_slack() {
            return self.take_open(preferred, now);
        }
        self.take::<false>(preferred, now)
    }

    /// The same in a queue that uses slack.
    // Out of line, so that a queue which could use slack, and does not, pays for one test.
    #[inline(never)]
    fn take_open(&mut self, preferred: SlotId, now: Instant) -> Option<(SlotId, Instant)> {
        let (id, due) = self.take::<true>(preferred, now)?;
        Some((id, due.min(now)))
    }

    #[inline(always)]
    fn take<const SLACK: bool>(
        &mut self,
        preferred: SlotId,
        now: Instant,
    ) -> Option<(SlotId, Instant)> {
        let mut index = self.nodes.position(preferred).unwrap_or(0);
        loop {
            if let Some(node) = self.due_node::<SLACK>(index, now) {
                self.remove_at(index, node.id);
                return Some((node.id, node.due));
            }
            if index == 0 {
                return None;
            }
            index = 0;
        }
    }

    #[inline]
    fn is_due_at(&self, index: usize, now: Instant) -> bool {
        if self.nodes.has_slack() {
            return self.due_node::<true>(index, now).is_some();
        }
        self.due_node::<false>(index, now).is_some()
    }

    /// The node at an index, if its deadline has passed or, with `SLACK`, its window is open.
    #[inline]
    fn due_node<const SLACK: bool>(&self, index: usize, now: Instant) -> Option<Node> {
        let node = self.nodes.node(index).filter(|_| !self.is_empty())?;
        let mut opens = node.due;
        if SLACK {
            let slack = self.nodes.slack(node.id);
            opens = Window { due: opens, slack }.opens();
        }
        let end = self.end;
        let has_passed = opens <= now
            && (node.due < end.due || (node.due == end.due && node.sequence < end.sequence));
        has_passed.then_some(node)
    }

    /// The slot with the earliest deadline. O(1).
    pub(crate) fn first(&self) -> Option<SlotId> {
        Some(self.root()?.id)
    }

    /// Removes the slot with the earliest deadline. O(log n).
    pub(crate) fn pop(&mut self) -> Option<(SlotId, Instant)> {
        let first = self.root()?;
        self.remove_at(0, first.id);
        Some((first.id, first.due))
    }

    /// Removes a slot. O(log n).
    pub(crate) fn remove(&mut self, id: SlotId) -> Option<Instant> {
        let index = self.nodes.position(id)?;
        let due = self.due_at(index);
        self.remove_at(index, id);
        Some(due)
    }

    /// The deadline of a slot. O(1).
    #[inline]
    pub(crate) fn due(&self, id: SlotId) -> Option<Instant> {
        let index = self.nodes.position(id)?;
        Some(self.due_at(index))
    }

    /// The window of a slot. O(1).
    pub(crate) fn window(&self, id: SlotId) -> Option<Window<N::Slack>> {
        let (due, slack) = (self.due(id)?, self.nodes.slack(id));
        Some(Window { due, slack })
    }

    /// When the window of a slot opens that waits until `due`. O(1).
    #[inline]
    pub(crate) fn opens(&self, id: SlotId, due: Instant) -> Instant {
        if self.nodes.has_slack() {
            return self.opens_early(id, due);
        }
        due
    }

    #[inline(never)]
    fn opens_early(&self, id: SlotId, due: Instant) -> Instant {
        let slack = self.nodes.slack(id);
        Window { due, slack }.opens()
    }

    /// The slack of a slot that waits, or whose planned suspension has some. O(1).
    pub(crate) fn slack(&self, id: SlotId) -> N::Slack {
        self.nodes.slack(id)
    }

    /// Whether a slot waits. O(1).
    #[inline]
    pub(crate) fn has(&self, id: SlotId) -> bool {
        self.nodes.position(id).is_some()
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    #[inline]
    fn root(&self) -> Option<Node> {
        if self.is_empty() {
            return None;
        }
        self.nodes.node(0)
    }

    fn due_at(&self, index: usize) -> Instant {
        self.nodes.due(index).unwrap_or(Instant::NEVER)
    }

    #[inline]
    fn remove_at(&mut self, index: usize, id: SlotId) {
        self.nodes.clear_position(id);
        let last = self.nodes.len() - 1;
        if index == last {
            self.nodes.shrink();
        } else {
            self.fill(index, last);
        }
    }

    /// Fills a gap with the last node, which then moves up or down.
    #[inline(never)]
    fn fill(&mut self, index: usize, last: usize) {
        let moved = self.nodes.node(last);
        self.nodes.shrink();
        if let Some(moved) = moved {
            self.put(index, moved);
        }
    }

    /// Puts a node into the hole at an index, or moves it up or down to its place.
    // Always inlined with its callees, because a heap that only loses its root must not pay for one
    // whose deadlines move.
    #[inline(always)]
    fn put(&mut self, index: usize, node: Node) {
        if index == 0 || self.sift_up(index, node) == index {
            self.sift_down(index, node);
        }
    }

    /// Moves a hole up until `node` fits, and puts it there. At most log4 n moves. Returns where.
    fn sift_up(&mut self, mut index: usize, node: Node) -> usize {
        while index > 0 {
            let above = (index - 1) / ARITY;
            match self.nodes.node(above) {
                Some(parent) if node.precedes(&parent) => self.nodes.place(index, parent),
                _ => break,
            }
            index = above;
        }
        self.nodes.place(index, node);
        index
    }

    /// Moves a hole down until `node` fits, and puts it there. At most log4 n moves.
    #[inline(always)]
    fn sift_down(&mut self, mut index: usize, node: Node) {
        while let Some((below, child)) = self.nodes.child_before(index, &node) {
            self.nodes.place(index, child);
            index = below;
        }
        self.nodes.place(index, node);
    }

    /// Checks H1 to H4, and that every waiting slot is live. O(n²), for tests.
    pub(crate) fn assert_valid(&self, is_live: impl Fn(SlotId) -> bool, slots: usize) {
        for index in 0..self.len() {
            let node = self.nodes.node(index);
            assert!(node.is_some(), "H1: the heap has no holes");
            let Some(node) = node else { return };
            let above = index
                .checked_sub(1)
                .and_then(|i| self.nodes.node(i / ARITY));
            assert!(
                !above.is_some_and(|parent| node.precedes(&parent)),
                "H1: no node is less than its parent"
            );
            let position = self.nodes.position(node.id);
            assert_eq!(position, Some(index), "H2: a slot knows its node");
            assert!(is_live(node.id), "H2: a slot that waits is live");
            let slack = self.nodes.slack(node.id).nanos();
            let most = if node.due.is_never() {
                0
            } else {
                node.due.as_nanos()
            };
            assert!(slack <= most, "H4: a window opens before it ends");
            for other in (0..index).filter_map(|i| self.nodes.node(i)) {
                assert_ne!(node.sequence, other.sequence, "H3: numbers differ");
            }
        }
        let waiting = (0..slots)
            .filter(|&index| self.nodes.position(SlotId::from_index(index)).is_some())
            .count();
        assert_eq!(waiting, self.len(), "H2: others have no position");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fixed::FixedNodes;

    type Heap = Delays<FixedNodes<8, u8>>;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    fn heap(dues: &[u64]) -> Heap {
        let mut heap = Heap::new(FixedNodes::new());
        for (id, due) in dues.iter().enumerate() {
            assert_eq!(
                heap.schedule(SlotId::from_index(id), Window::exact(at(*due))),
                DelayChange::New
            );
        }
        heap.assert_valid(|_| true, 8);
        heap
    }

    /// Takes out every deadline that ever comes.
    fn order<N: Nodes>(heap: &mut Delays<N>) -> std::vec::Vec<u32> {
        let last = at(u64::MAX);
        std::iter::from_fn(|| heap.take_due(SlotId::NONE, last).map(|(id, _)| id.0)).collect()
    }

    #[test]
    fn deadlines_leave_in_order_and_equal_ones_as_they_came() {
        let mut heap = heap(&[30, 10, 30, 20, 10]);
        assert_eq!(order(&mut heap), [1, 4, 3, 0, 2]);
    }

    #[test]
    fn a_deadline_moves_forward_and_never_back() {
        let mut heap = heap(&[30, 20]);
        assert_eq!(
            heap.schedule(SlotId(0), Window::exact(at(40))),
            DelayChange::Kept
        );
        assert_eq!(
            heap.schedule(SlotId(0), Window::exact(at(30))),
            DelayChange::Kept
        );
        assert_eq!(
            heap.schedule(SlotId(0), Window::exact(at(20))),
            DelayChange::Sooner
        );
        assert_eq!(order(&mut heap), [1, 0], "it came after the other 20");
    }

    #[test]
    fn never_is_no_deadline() {
        let mut heap = heap(&[u64::MAX]);
        assert_eq!(heap.earliest(), None);
        assert_eq!(heap.take_due(SlotId::NONE, at(u64::MAX)), None);
        assert_eq!(heap.pop(), Some((SlotId(0), Instant::NEVER)));
    }

    #[test]
    fn of_deadlines_that_have_left_nothing_is_left() {
        let mut heap = heap(&[5, 6]);
        assert_eq!(heap.first(), Some(SlotId(0)));
        assert_eq!(order(&mut heap), [0, 1]);
        assert_eq!(
            (heap.earliest(), heap.first(), heap.pop()),
            (None, None, None)
        );
    }

    #[test]
    fn nothing_is_due_a_nanosecond_early() {
        let mut heap = heap(&[5]);
        assert_eq!(heap.take_due(SlotId::NONE, at(4)), None);
        assert_eq!(heap.take_due(SlotId::NONE, at(5)), Some((SlotId(0), at(5))));
        assert!(heap.is_empty());
    }

    /// Numbers that begin again cost nothing more, and mix up no different deadlines.
    #[test]
    fn sequence_numbers_that_run_out_begin_again() {
        begins_again(heap(&[]));
        #[cfg(feature = "alloc")]
        begins_again(Delays::new(crate::store::growable::GrowableNodes::new()));
    }

    fn begins_again<N: Nodes>(mut heap: Delays<N>) {
        heap.sequence = u32::MAX - 7;
        for (id, due) in [7, 7, 3, 7, 3, 7, 7].into_iter().enumerate() {
            let _ = heap.schedule(SlotId::from_index(id), Window::exact(at(due)));
            heap.assert_valid(|_| true, 8);
        }
        assert_eq!(heap.sequence, 6);
        assert_eq!(order(&mut heap), [4, 2, 5, 6, 0, 1, 3]);
    }

    /// The last node fills the gap, and moves up or down from there.
    #[test]
    fn any_slot_can_be_taken_out() {
        for (step, gone) in (1..61)
            .step_by(7)
            .flat_map(|step| (0..64).map(move |id| (step, id)))
            .step_by(if cfg!(miri) { 61 } else { 1 })
        {
            let due = |id: u64| id * step % 61 / 2;
            let mut heap = Delays::new(FixedNodes::<64, u8>::new());
            for id in 0..64 {
                let _ = heap.schedule(SlotId::from_index(id as usize), Window::exact(at(due(id))));
            }
            let id = SlotId::from_index(gone as usize);
            assert_eq!((heap.due(id), heap.has(id)), (Some(at(due(gone))), true));
            assert_eq!(heap.remove(id), Some(at(due(gone))));
            assert_eq!((heap.due(id), heap.remove(id)), (None, None));
            heap.assert_valid(|_| true, 64);
            let mut expected: std::vec::Vec<_> = (0..64).filter(|id| *id != gone).collect();
            expected.sort_by_key(|id| due(*id));
            let ordered = order(&mut heap).into_iter().map(u64::from);
            assert!(ordered.eq(expected), "{step}, {gone}");
        }
    }

    /// Each slot in turn moves to each place of the order, later and earlier, and back.
    #[test]
    fn a_deadline_moves_anywhere() {
        moves_anywhere(Delays::new(FixedNodes::<64, u8>::new()));
        #[cfg(feature = "alloc")]
        moves_anywhere(Delays::new(crate::store::growable::GrowableNodes::new()));
    }

    fn moves_anywhere<N: Nodes>(mut heap: Delays<N>) {
        const SLOTS: u64 = if cfg!(miri) { 8 } else { 64 };
        let id = |slot: u64| SlotId::from_index(slot as usize);
        let home = |slot: u64| at(slot * 37 % SLOTS * 10);
        for slot in 0..SLOTS {
            assert_eq!(heap.move_to(id(slot), Window::exact(home(slot))), None);
            heap.assert_valid(|_| true, 64);
        }
        for (slot, place) in (0..SLOTS).flat_map(|slot| (0..SLOTS).map(move |to| (slot, to * 10))) {
            assert_eq!(
                heap.move_to(id(slot), Window::exact(at(place + 5))),
                Some(home(slot))
            );
            heap.assert_valid(|_| true, 64);
            let first = (0..SLOTS).map(|id| if id == slot { at(place + 5) } else { home(id) });
            assert_eq!(heap.earliest(), first.min());
            assert_eq!(
                heap.move_to(id(slot), Window::exact(home(slot))),
                Some(at(place + 5))
            );
        }
        heap.assert_valid(|_| true, 64);
        let in_order = std::iter::from_fn(|| heap.pop()).map(|(_, due)| due.as_nanos());
        assert!(in_order.eq((0..SLOTS).map(|place| place * 10)));
    }

    #[test]
    fn a_deadline_that_moves_to_an_equal_one_leaves_after_it() {
        let mut heap = heap(&[10, 20, 30]);
        assert_eq!(heap.move_to(SlotId(0), Window::exact(at(20))), Some(at(10)));
        assert_eq!(heap.move_to(SlotId(2), Window::exact(at(20))), Some(at(30)));
        assert_eq!(heap.move_to(SlotId(1), Window::exact(at(20))), Some(at(20)));
        assert_eq!(order(&mut heap), [0, 2, 1]);
    }

    #[test]
    fn of_equal_deadlines_those_pass_that_were_set_before_the_time_stopped() {
        let mut heap = heap(&[7, 9]);
        heap.stop(at(7));
        assert_eq!(
            heap.schedule(SlotId(2), Window::exact(at(7))),
            DelayChange::New
        );
        assert_eq!(heap.take_due(SlotId(2), at(9)), Some((SlotId(0), at(7))));
        assert_eq!(heap.take_due(SlotId(2), at(9)), None);
        assert_eq!(heap.stopped_at(), at(7));
    }

    /// The order of equal deadlines stays, and the next deadline of the slot is none.
    #[test]
    fn a_deadline_is_a_backoff_until_the_next_one() {
        let mut heap = heap(&[7, 7, 7]);
        heap.note_backoff(SlotId(1), at(8));
        assert!(!heap.is_backoff(SlotId(1)), "that is not its deadline");
        heap.note_backoff(SlotId(1), at(7));
        heap.assert_valid(|_| true, 8);
        assert_eq!(
            heap.schedule(SlotId(1), Window::exact(at(9))),
            DelayChange::Kept
        );
        let backoffs = [0, 1, 2].map(|slot| heap.is_backoff(SlotId(slot)));
        assert_eq!(backoffs, [false, true, false]);
        assert_eq!(order(&mut heap), [0, 1, 2]);

        heap.schedule(SlotId(1), Window::exact(at(7)));
        assert!(!heap.is_backoff(SlotId(1)));
        heap.note_backoff(SlotId(1), at(7));
        assert_eq!(heap.move_to(SlotId(1), Window::exact(at(7))), Some(at(7)));
        assert!(!heap.is_backoff(SlotId(1)));
    }

    #[test]
    fn a_preferred_slot_goes_before_others_if_it_is_due() {
        let mut heap = heap(&[5, 6, 7]);
        assert_eq!(heap.take_due(SlotId(2), at(6)), Some((SlotId(0), at(5))));
        assert_eq!(heap.take_due(SlotId(2), at(7)), Some((SlotId(2), at(7))));
        assert_eq!(order(&mut heap), [1]);
    }
}
