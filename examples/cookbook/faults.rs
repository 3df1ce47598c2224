//! A reconciler under faults, on virtual time. The check finds that it ignores a failed write.
//!
//! ```text
//! wanted 1, it is 0 (at 0ns)
//!   0ns  world               1
//!   0ns  world     "config"  add: ready
//!   0ns  worker 0  "config"  run 1 begins
//!   0ns  worker 0  "config"  read: done
//!   0ns  worker 0  "config"  write: fails, the request was LOST
//!   0ns  worker 0  "config"  run ends: Success
//! ```

use requeue::Action;
use requeue_proptest::proptest::prelude::*;
use requeue_proptest::simulation::{CallFailed, Check, Context, Keys, World};

#[derive(Default)]
struct Replica {
    wanted: u32,
    real: u32,
}

impl World for Replica {
    type Key = &'static str;
    type Event = u32;
    type Error = CallFailed;

    fn event(&self) -> BoxedStrategy<u32> {
        (1..100u32).boxed()
    }
    fn happen(&mut self, version: &u32, keys: &Keys<&'static str>) {
        self.wanted = *version;
        let _ = keys.add("config");
    }
    async fn reconcile(at: Context<Self>, _: &'static str) -> Result<Action, CallFailed> {
        let wanted = at.call("read", |world| world.wanted).await?;
        let _mistake = at.call("write", move |world| world.real = wanted).await; // Put a `?` here.
        Ok(Action::Success)
    }
    fn eventually(&self) -> Result<(), String> {
        let all_is_well = (self.wanted == self.real).then_some(());
        all_is_well.ok_or(format!("wanted {}, it is {}", self.wanted, self.real))
    }
}

fn main() {
    // In a test, call `Check::new(Replica::default).run()`. It panics with the history.
    if let Err(failure) = Check::new(Replica::default).find() {
        println!("{}\n{}", failure.breach.reason, failure.timeline);
    }
}
