//! Faults, in an order that a seed decides.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use requeue_shards_proof::random::Random;
use tokio::time::{Instant, sleep};

use crate::plant::Plant;
use crate::world::{TTL, World};

/// What happens to a replica, or to etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// `kill -9`, and another replica after a while.
    Kill,
    /// SIGTERM, and another replica after a while.
    Leave,
    /// SIGSTOP for less than the TTL.
    Stop,
    /// SIGSTOP for longer than the TTL.
    Pause,
    /// No bytes between it and etcd for less than the TTL.
    Flicker,
    /// No bytes between it and etcd for longer than the TTL.
    Cut,
    /// `kill -9` of the node that leads.
    KillLeader,
    /// SIGSTOP of a node, like a disk that hangs.
    StopNode,
}

impl Fault {
    const REPLICA: [Self; 6] = [
        Self::Kill,
        Self::Leave,
        Self::Stop,
        Self::Pause,
        Self::Flicker,
        Self::Cut,
    ];
    const NODE: [Self; 2] = [Self::KillLeader, Self::StopNode];

    /// The faults that show a bug soonest.
    fn for_plant(plant: Plant) -> &'static [Self] {
        match plant {
            Plant::Nothing => &Self::REPLICA,
            Plant::NoDrain => &[Self::Leave],
            Plant::ExpiryFromReply => &[Self::Cut],
            Plant::NoFence => &[Self::Pause],
            Plant::MarksNotCompared => &[Self::Kill],
        }
    }

    fn lasts(self, random: &mut Random) -> Duration {
        let ttl = u64::try_from(TTL.as_millis()).unwrap_or(u64::MAX);
        let (from, to) = match self {
            Self::Kill | Self::Leave | Self::KillLeader => (500, 2500),
            Self::Stop | Self::Flicker => (50, ttl / 3),
            Self::Pause | Self::Cut => (ttl + 1500, 2 * ttl),
            Self::StopNode => (500, 3000),
        };
        Duration::from_millis(random.between(from, to))
    }
}

/// The target of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Slot(usize),
    Node(usize),
}

/// A fault that has not ended.
struct Active {
    fault: Fault,
    target: Target,
    since: Instant,
    until: Instant,
}

/// How long a replica may take to leave while etcd fails.
const LEAVES_WITHIN: Duration = Duration::from_secs(40);

/// Lets faults happen to a world.
pub(crate) struct Nemesis {
    random: Random,
    active: Vec<Active>,
    /// When etcd has been healthy long enough for all sessions to begin again.
    node_after: Instant,
    pub(crate) happened: BTreeMap<Fault, u64>,
}

impl Nemesis {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            active: Vec::new(),
            node_after: Instant::now(),
            happened: BTreeMap::new(),
        }
    }

    /// Continues until the time is over, or until `is_over`, which is called each second, says so.
    pub(crate) async fn rage(
        &mut self,
        world: &mut World,
        lasts: Duration,
        mut is_over: impl FnMut(&World) -> bool,
    ) -> io::Result<()> {
        let end = Instant::now() + lasts;
        let mut next = Instant::now() + Duration::from_millis(500);
        let mut asked = Instant::now();
        while Instant::now() < end {
            sleep(Duration::from_millis(20)).await;
            self.undo(world, Instant::now()).await?;
            let hit = |slot| {
                self.active
                    .iter()
                    .any(|active| active.target == Target::Slot(slot))
            };
            world.restart_ended(|slot| !hit(slot))?;
            if Instant::now() >= next {
                next = Instant::now() + Duration::from_millis(self.random.between(300, 1600));
                self.begin(world).await?;
            }
            if asked.elapsed() >= Duration::from_secs(1) {
                asked = Instant::now();
                if is_over(world) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Ends every fault.
    pub(crate) async fn heal(&mut self, world: &mut World) -> io::Result<()> {
        while !self.active.is_empty() {
            let now = Instant::now();
            for active in &mut self.active {
                active.until = now;
            }
            self.undo(world, now).await?;
            sleep(Duration::from_millis(20)).await;
        }
        world.restart_ended(|_| true)
    }

    async fn begin(&mut self, world: &mut World) -> io::Result<()> {
        let plant = world.plan.plant;
        let is_hit = |target| self.active.iter().any(|active| active.target == target);
        let slots = (0..world.slots.len()).map(Target::Slot);
        let free: Vec<Target> = slots.filter(|slot| !is_hit(*slot)).collect();
        let is_node_hit = (0..world.cluster.len()).any(|node| is_hit(Target::Node(node)));
        let wants_node = plant == Plant::Nothing && self.random.between(0, 4) == 0;
        let (fault, target) = if wants_node && !is_node_hit && Instant::now() >= self.node_after {
            let Some(fault) = self.random.pick(&Fault::NODE).copied() else {
                return Ok(());
            };
            let nodes = u64::try_from(world.cluster.len()).unwrap_or(1);
            let any = usize::try_from(self.random.between(0, nodes)).unwrap_or(0);
            let node = match fault {
                Fault::KillLeader => world.cluster.leader().await,
                _ => Some(any),
            };
            let Some(node) = node else { return Ok(()) };
            (fault, Target::Node(node))
        } else {
            // One replica is always healthy.
            let target = self.random.pick(&free).filter(|_| free.len() > 1).copied();
            let fault = self.random.pick(Fault::for_plant(plant)).copied();
            let (Some(target), Some(fault)) = (target, fault) else {
                return Ok(());
            };
            (fault, target)
        };
        self.apply(world, fault, target).await
    }

    async fn apply(&mut self, world: &mut World, fault: Fault, target: Target) -> io::Result<()> {
        match (fault, target) {
            (Fault::Kill, Target::Slot(slot)) => world.kill(slot).await?,
            (Fault::Leave, Target::Slot(slot)) => world.signal(slot, "-TERM").await?,
            (Fault::Pause, Target::Slot(slot)) => {
                world.paused(slot);
                world.signal(slot, "-STOP").await?;
            }
            (_, Target::Slot(slot)) if fault == Fault::Stop => world.signal(slot, "-STOP").await?,
            (_, Target::Slot(slot)) => cut(world, slot, true),
            (Fault::KillLeader, Target::Node(node)) => world.cluster.kill(node).await?,
            (_, Target::Node(node)) => world.cluster.signal(node, "-STOP").await?,
        }
        *self.happened.entry(fault).or_default() += 1;
        let until = Instant::now() + fault.lasts(&mut self.random);
        if let Target::Node(_) = target {
            // Several nodes do without one of them.
            let well = if world.cluster.len() == 1 {
                3 * TTL
            } else {
                TTL
            };
            self.node_after = until + well;
        }
        self.active.push(Active {
            fault,
            target,
            since: Instant::now(),
            until,
        });
        Ok(())
    }

    /// Ends the faults whose time is over.
    async fn undo(&mut self, world: &mut World, now: Instant) -> io::Result<()> {
        while let Some(index) = self.active.iter().position(|active| active.until <= now) {
            let active = self.active.swap_remove(index);
            match (active.fault, active.target) {
                (Fault::Kill, Target::Slot(slot)) => world.begin(slot)?,
                (Fault::Leave, Target::Slot(slot)) => {
                    if !world.has_ended(slot) && active.since.elapsed() > LEAVES_WITHIN {
                        return Err(io::Error::other("a replica does not end after SIGTERM"));
                    }
                    if !world.has_ended(slot) {
                        let until = now + Duration::from_millis(100);
                        self.active.push(Active { until, ..active });
                        continue;
                    }
                    world.begin(slot)?;
                }
                (Fault::Pause, Target::Slot(slot)) => {
                    world.signal(slot, "-CONT").await?;
                    world.continued(slot);
                }
                (Fault::Stop, Target::Slot(slot)) => world.signal(slot, "-CONT").await?,
                (_, Target::Slot(slot)) => cut(world, slot, false),
                (Fault::KillLeader, Target::Node(node)) => world.cluster.begin(node)?,
                (_, Target::Node(node)) => world.cluster.signal(node, "-CONT").await?,
            }
        }
        Ok(())
    }
}

fn cut(world: &World, slot: usize, is_cut: bool) {
    if let Some(slot) = world.slots.get(slot) {
        slot.network.cut(is_cut);
    }
}
