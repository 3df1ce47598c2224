//! Nodes that are to run the version that is wanted of them, and the controller that sees to it.

use std::collections::BTreeMap;

use requeue_core::Action;
use requeue_proptest::proptest::prelude::*;
use requeue_proptest::simulation::{CallFailed, Context, Keys, World};

/// The name of a node.
pub(crate) type Node = &'static str;

/// A fake API server, and the nodes.
#[derive(Debug, Default)]
pub(crate) struct Fleet {
    wanted: BTreeMap<Node, u32>,
    recorded: BTreeMap<Node, u32>,
    installed: BTreeMap<Node, u32>,
    reads_twice: bool,
}

impl Fleet {
    /// The bug: for its record, the controller reads a second time which version is wanted. That
    /// may not be the version that it has installed.
    pub(crate) fn with_bug() -> Self {
        let reads_twice = true;
        Self {
            reads_twice,
            ..Self::default()
        }
    }
}

/// The next version of a node is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Upgrade(Node);

impl World for Fleet {
    type Key = Node;
    type Event = Upgrade;
    type Error = CallFailed;

    fn event(&self) -> BoxedStrategy<Upgrade> {
        let nodes = prop::sample::select(vec!["oslo", "lima", "pune"]);
        nodes.prop_map(Upgrade).boxed()
    }

    fn happen(&mut self, Upgrade(node): &Upgrade, keys: &Keys<Node>) {
        *self.wanted.entry(node).or_insert(0) += 1;
        // What is refused at a shutdown goes to the next process.
        let _ = keys.add(node);
    }

    async fn reconcile(context: Context<Self>, node: Node) -> Result<Action, CallFailed> {
        let read = move |fleet: &mut Self| (fleet.wanted[node], fleet.recorded.get(node).copied());
        let (wanted, recorded) = context.call("read", read).await?;
        if recorded == Some(wanted) {
            return Ok(Action::Success);
        }
        let install = format!("install {wanted}");
        context
            .call(install, move |fleet| {
                // A node refuses to go back.
                let installed = fleet.installed.entry(node).or_insert(0);
                *installed = wanted.max(*installed);
            })
            .await?;
        let record = move |fleet: &mut Self| {
            let again = fleet.wanted[node];
            let version = if fleet.reads_twice { again } else { wanted };
            fleet.recorded.insert(node, version);
        };
        context.call("record", record).await?;
        Ok(Action::Success)
    }

    fn list(&self) -> Option<Vec<Node>> {
        Some(self.wanted.keys().copied().collect())
    }

    fn eventually(&self) -> Result<(), String> {
        for (node, wanted) in &self.wanted {
            let installed = self.installed.get(node).unwrap_or(&0);
            if installed != wanted {
                return Err(format!(
                    "{node} has version {installed}, wanted is {wanted}"
                ));
            }
        }
        Ok(())
    }
}
