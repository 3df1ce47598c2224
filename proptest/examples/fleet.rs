//! A controller with a bug that shows only if a change comes at the wrong moment. The simulation
//! finds it, and shows it in a few lines. Without the bug it finds nothing.
//!
//! ```text
//! cargo run --release -p requeue-proptest --example fleet
//! ```

use std::collections::BTreeMap;
use std::time::Instant;

use requeue_core::Action;
use requeue_proptest::proptest::prelude::*;
use requeue_proptest::simulation::{CallFailed, Check, Context, Failure, Keys, World};

/// The name of a node.
type Name = &'static str;

/// A fake API server, and the nodes that are to run the version that is wanted of them.
#[derive(Debug, Default)]
pub(crate) struct Fleet {
    nodes: BTreeMap<Name, Node>,
    reads_twice: bool,
}

/// The versions of a node.
#[derive(Debug, Default)]
struct Node {
    wanted: u32,
    installed: u32,
    recorded: u32,
}

impl Fleet {
    /// The bug: for its record, the controller reads a second time which version is wanted. That
    /// may not be the version that it has installed.
    pub(crate) fn with_bug() -> Self {
        let (nodes, reads_twice) = (BTreeMap::new(), true);
        Self { nodes, reads_twice }
    }

    fn node(&mut self, name: Name) -> &mut Node {
        self.nodes.entry(name).or_default()
    }
}

/// The next version of a node is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Upgrade(Name);

impl World for Fleet {
    type Key = Name;
    type Event = Upgrade;
    type Error = CallFailed;

    fn event(&self) -> BoxedStrategy<Upgrade> {
        let names = prop::sample::select(vec!["oslo", "lima", "pune"]);
        names.prop_map(Upgrade).boxed()
    }

    fn happen(&mut self, Upgrade(name): &Upgrade, keys: &Keys<Name>) {
        self.node(name).wanted += 1;
        // A key that is refused at a shutdown is added to the queue of the next process.
        let _ = keys.add(name);
    }

    async fn reconcile(context: Context<Self>, name: Name) -> Result<Action, CallFailed> {
        let read = move |fleet: &mut Self| (fleet.node(name).wanted, fleet.node(name).recorded);
        let (wanted, recorded) = context.call("read", read).await?;
        if recorded == wanted {
            return Ok(Action::Success);
        }
        let install = move |fleet: &mut Self| {
            // A node refuses to go back.
            let node = fleet.node(name);
            node.installed = wanted.max(node.installed);
        };
        context.call(format!("install {wanted}"), install).await?;
        let record = move |fleet: &mut Self| {
            let reads_twice = fleet.reads_twice;
            let node = fleet.node(name);
            node.recorded = if reads_twice { node.wanted } else { wanted };
        };
        context.call("record", record).await?;
        Ok(Action::Success)
    }

    fn list(&self) -> Option<Vec<Name>> {
        Some(self.nodes.keys().copied().collect())
    }

    fn eventually(&self) -> Result<(), String> {
        let other = self.nodes.iter().find(|(_, it)| it.installed != it.wanted);
        other.map_or(Ok(()), |(name, it)| {
            let (has, wanted) = (it.installed, it.wanted);
            Err(format!("{name} has version {has}, wanted is {wanted}"))
        })
    }
}

fn main() -> Result<(), Failure> {
    println!("With the bug:\n");
    match Check::new(Fleet::with_bug).find() {
        Ok(checked) => println!("it was not found: {checked:?}"),
        Err(failure) => println!("{failure}"),
    }
    println!("Without it:\n");
    let start = Instant::now();
    let checked = Check::new(Fleet::default).seeds(20_000).find()?;
    println!("{checked:?} in {:.1?}", start.elapsed());
    Ok(())
}
