//! Writes that timed out, and come after the retry has looked.

use proptest::prelude::*;
use requeue_core::Action;
use requeue_proptest::simulation::{CallFailed, Check, Context, Fault, Keys, Property, World};

/// Objects with names that a server makes up: a retry may create a second one.
#[derive(Default)]
struct Recreated {
    wanted: u32,
    objects: Vec<u32>,
}

impl World for Recreated {
    type Key = &'static str;
    type Event = u32;
    type Error = CallFailed;

    fn event(&self) -> BoxedStrategy<u32> {
        (1..100u32).boxed()
    }

    fn happen(&mut self, version: &u32, keys: &Keys<&'static str>) {
        self.wanted = *version;
        let _ = keys.add("object");
    }

    /// Deletes what is old, and creates what is not there.
    async fn reconcile(context: Context<Self>, _: &'static str) -> Result<Action, CallFailed> {
        let list = |world: &mut Self| (world.wanted, world.objects.clone());
        let (wanted, objects) = context.call("list", list).await?;
        if objects == [wanted] {
            return Ok(Action::Success);
        }
        context
            .call("delete", |world| world.objects.clear())
            .await?;
        let create = move |world: &mut Self| world.objects.push(wanted);
        context.call("create", create).await?;
        Ok(Action::Success)
    }

    fn always(&self) -> Result<(), String> {
        let count = self.objects.len();
        (count <= 1).then_some(()).ok_or(format!("{count} objects"))
    }
}

fn all_but_late() -> Vec<Fault> {
    let others = Fault::ALL.iter().copied();
    others.filter(|fault| *fault != Fault::EffectLate).collect()
}

#[test]
fn a_create_that_comes_late_is_one_too_many() {
    let check = || Check::new(Recreated::default).seeds(1_000);
    let passed = check().faults(&all_but_late(), 6).find();
    assert_eq!(passed.map(|passed| passed.histories), Ok(1_000));

    let failure = super::failure(&check());
    assert_eq!(failure.breach.property, Property::Always);
    assert!(failure.timeline.contains("create: done LATE"), "{failure}");
}
