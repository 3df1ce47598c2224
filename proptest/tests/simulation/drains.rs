//! Drains with a deadline.

use std::time::Duration;

use requeue_core::{Instant, Workers};
use requeue_proptest::simulation::{Simulation, Stop};

use crate::accounts::Plan;
use crate::tenants::{Audited, Defect, Event, Tenants};

const MS: Duration = Duration::from_millis(1);

/// A tenant with a run per second, three objects, and a drain that has time for two of them.
#[test]
fn a_drain_ends_at_its_deadline_while_ready_keys_wait_for_a_token() {
    for workers in [1, 3] {
        let mut sim = Simulation::new(Tenants::default())
            .workers(Workers::new(workers).drain_timeout(1_500 * MS))
            .queue(|| Audited::new(Defect::None));
        let plan = Plan {
            rate: Some((1, 1)),
            ..Plan::FIRST
        };
        sim.happen(&Event::Limit(0, plan)).unwrap();
        for number in 0..3 {
            sim.happen(&Event::Changes((0, number))).unwrap();
        }
        let left = sim.shut_down(Stop::Drain).unwrap();
        let left: Vec<_> = left.iter().map(|left| (left.key, left.left)).collect();
        assert_eq!(left, [((0, 2), Duration::ZERO)], "{}", sim.timeline());
        assert_eq!(sim.now(), Instant::EPOCH + 1_500 * MS);
    }
}
