//! Whatever happens, in the end every object is as wanted, and no two leaders have worked at once.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::api::{Cluster, Link};
use crate::leader::Watchdog;
use crate::process::Process;
use crate::seeds::{Outcome, Timeline, each_seed};
use crate::{map, seconds};

/// What happens to the cluster and to the controllers. Objects and replicas are numbers.
#[derive(Clone, Debug)]
enum Step {
    Want(u8, u8),
    Delete(u8),
    DeletePart(u8),
    SpoilPart(u8),
    /// The API server closes every watch of a kind, and may have forgotten what happened before.
    Cut {
        parts: bool,
        compacts: bool,
    },
    /// A replica cannot reach the API server for so many seconds.
    CutOff(u8, u8),
    /// Latency in tenths of a second, requests of 100 that fail, events of 100 that are repeated.
    Faults(u8, u8, u8, u8),
    /// A replica is killed, and another process begins.
    Kill(u8),
    /// Tenths of a second.
    Wait(u8),
}

const OBJECTS: u8 = 4;
const REPLICAS: u8 = 2;

fn step() -> impl Strategy<Value = Step> {
    let object = 0..OBJECTS;
    let replica = 0..REPLICAS;
    prop_oneof![
        6 => (object.clone(), 0..10_u8).prop_map(|(object, want)| Step::Want(object, want)),
        2 => object.clone().prop_map(Step::Delete),
        2 => object.clone().prop_map(Step::DeletePart),
        2 => object.prop_map(Step::SpoilPart),
        3 => any::<(bool, bool)>().prop_map(|(parts, compacts)| Step::Cut { parts, compacts }),
        1 => (replica.clone(), 1..40_u8).prop_map(|(replica, time)| Step::CutOff(replica, time)),
        2 => (replica.clone(), 0..30_u8, 0..40_u8, 0..50_u8)
            .prop_map(|(replica, latency, failures, repeats)| {
                Step::Faults(replica, latency, failures, repeats)
            }),
        1 => replica.prop_map(Step::Kill),
        8 => (0..100_u8).prop_map(Step::Wait),
    ]
}

/// A controller that is started again whenever it ends, as a pod is.
struct Replica {
    link: Link,
    process: JoinHandle<()>,
}

struct World {
    cluster: Cluster,
    watchdog: Watchdog,
    timeline: Timeline,
    replicas: Vec<Replica>,
    /// Whether there is an election. Without one there is one replica.
    elects: bool,
    born: u64,
}

impl World {
    fn new(elects: bool) -> Self {
        let mut world = Self {
            cluster: Cluster::new(),
            watchdog: Watchdog::default(),
            timeline: Timeline::begin(),
            replicas: Vec::new(),
            elects,
            born: 0,
        };
        for _ in 0..if elects { REPLICAS } else { 1 } {
            let replica = world.replica();
            world.replicas.push(replica);
        }
        world
    }

    fn replica(&mut self) -> Replica {
        self.born += 1;
        let link = Link::seeded(self.born);
        let process = Process {
            client: self.cluster.client(&link),
            watchdog: self.watchdog.clone(),
            timeline: self.timeline.clone(),
            elects: self.elects,
        };
        let process = tokio::spawn(process.run_for_ever(self.born));
        Replica { link, process }
    }

    async fn take(&mut self, step: &Step) {
        self.timeline.note(format!("{step:?}"));
        let name = |number: &u8| format!("object-{number}");
        let replicas = self.replicas.len();
        let index = |number: &u8| usize::from(*number) % replicas;
        match step {
            Step::Want(object, want) => {
                self.cluster
                    .put("configmaps", map(&name(object), &want.to_string()));
            }
            Step::Delete(object) => self.cluster.delete("configmaps", &name(object)),
            Step::DeletePart(object) => self.cluster.delete("secrets", &name(object)),
            Step::SpoilPart(object) => {
                if let Some(mut part) = self.cluster.get("secrets", &name(object)) {
                    part["metadata"]["annotations"]["want"] = json!("spoilt");
                    self.cluster.put("secrets", part);
                }
            }
            Step::Cut { parts, compacts } => {
                if *compacts {
                    self.cluster.compact();
                }
                self.cluster
                    .cut_watches(if *parts { "secrets" } else { "configmaps" });
            }
            Step::CutOff(replica, time) => {
                let link = self.replicas[index(replica)].link.clone();
                link.set_down(true);
                let time = seconds(u64::from(*time));
                tokio::spawn(async move {
                    sleep(time).await;
                    link.set_down(false);
                });
            }
            Step::Faults(replica, latency, failures, repeats) => {
                let latency = Duration::from_millis(u64::from(*latency) * 100);
                let link = &self.replicas[index(replica)].link;
                link.set_faults(latency, u64::from(*failures), u64::from(*repeats));
            }
            Step::Kill(replica) => {
                let new = self.replica();
                let index = index(replica);
                let old = std::mem::replace(&mut self.replicas[index], new);
                old.process.abort();
            }
            Step::Wait(tenths) => sleep(Duration::from_millis(u64::from(*tenths) * 100)).await,
        }
    }

    /// Everything works again, and there is time enough for a lease, a watch and a backoff to end.
    /// What is as wanted stays so.
    async fn heal(&self) {
        sleep(seconds(40)).await;
        self.timeline.note("every fault is over");
        for replica in &self.replicas {
            replica.link.set_down(false);
            replica.link.set_faults(Duration::ZERO, 0, 0);
        }
        for _ in 0..40 {
            sleep(seconds(10)).await;
            if self.check().is_ok() {
                break;
            }
        }
        sleep(seconds(30)).await;
    }

    fn check(&self) -> Result<(), String> {
        for number in 0..OBJECTS {
            let name = format!("object-{number}");
            let map = self.cluster.get("configmaps", &name);
            let part = self.cluster.get("secrets", &name);
            let want = map.map(|map| map["data"]["want"].clone());
            let is = part.map(|part| part["metadata"]["annotations"]["want"].clone());
            if want != is {
                return Err(format!("{name} wants {want:?}, it is {is:?}"));
            }
        }
        match self.watchdog.both() {
            both if both.is_empty() => Ok(()),
            both => Err(both.join("; ")),
        }
    }
}

fn simulate(steps: &[Step], elects: bool) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut world = World::new(elects);
        for step in steps {
            world.take(step).await;
        }
        world.heal().await;
        (world.timeline.text(), world.check())
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..40)
}

#[test]
fn every_object_is_as_wanted_in_the_end() {
    each_seed(200, &steps(), |steps| simulate(steps, false));
}

#[test]
fn no_two_leaders_work_at_once() {
    each_seed(100, &steps(), |steps| simulate(steps, true));
}

/// A failure can be repeated: the same seed gives the same history.
#[test]
fn a_seed_gives_one_history() {
    let texts = std::cell::RefCell::new(Vec::new());
    let tell = |steps: &Vec<Step>| {
        let outcome = simulate(steps, true);
        texts.borrow_mut().push(outcome.0.clone());
        outcome
    };
    each_seed(5, &steps(), tell);
    let first = texts.take();
    each_seed(5, &steps(), tell);
    for (one, other) in first.iter().zip(texts.take()) {
        let differs = one
            .lines()
            .zip(other.lines())
            .find(|(one, other)| one != other);
        assert_eq!(differs, None);
    }
}
