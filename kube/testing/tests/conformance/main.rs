//! The cluster in memory beside a real kube-apiserver: both play the same scripts. The answers of
//! the real one are in a file, which `cargo xtask kube conformance` compares with it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod scripts;
mod tape;

use std::collections::BTreeMap;

use requeue_kube_testing::{Cluster, Link};
use serde_json::Value;

use scripts::{SCRIPTS, definition, play, play_forgotten};

/// Of Kubernetes 1.20.
const REAL: &str = include_str!("real.jsonl");

/// Where the cluster answers in another way, and the words of its README that say so.
const KNOWN: [(&str, &str); 5] = [
    (
        "apply-lists: drops whole lists",
        "An apply that drops the last item of a list",
    ),
    (
        "apply: another kind",
        "An apply whose object is of another kind",
    ),
    (
        "forgotten: the page after it",
        "The next page of a list that is too old",
    ),
    (
        "json-patches: replace what is absent",
        "A JSON patch that replaces what is absent",
    ),
    ("refusals: no such kind", "A kind that is not served"),
];

fn recorded() -> BTreeMap<String, Value> {
    let lines = REAL.lines().map(|line| serde_json::from_str(line).unwrap());
    let answers = lines.map(|line: Value| {
        let step = format!(
            "{}: {}",
            line["script"].as_str().unwrap(),
            line["step"].as_str().unwrap()
        );
        (step, line["answer"].clone())
    });
    answers.collect()
}

async fn played() -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for script in SCRIPTS.into_iter().chain(["forgotten"]) {
        let cluster = Cluster::new();
        cluster.install(&definition()).unwrap();
        let client = cluster.client(&Link::named("conformance"));
        let answers = if script == "forgotten" {
            let forget = async || {
                cluster.compact();
                Ok(())
            };
            play_forgotten(&client, forget).await.unwrap()
        } else {
            play(script, &client).await.unwrap()
        };
        all.extend(
            answers
                .into_iter()
                .map(|(step, answer)| (format!("{script}: {step}"), answer)),
        );
    }
    all
}

/// A line for each place where two answers differ.
fn differences(path: &str, memory: &Value, real: &Value) -> Vec<String> {
    match (memory, real) {
        (Value::Object(one), Value::Object(other)) => {
            let names: std::collections::BTreeSet<&String> =
                one.keys().chain(other.keys()).collect();
            let of =
                |name: &String| differences(&format!("{path}/{name}"), &memory[name], &real[name]);
            names.into_iter().flat_map(of).collect()
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let pairs = one.iter().zip(other).enumerate();
            pairs
                .flat_map(|(index, (one, other))| {
                    differences(&format!("{path}/{index}"), one, other)
                })
                .collect()
        }
        _ if memory == real => Vec::new(),
        _ => vec![format!("  {path}: {memory}, really {real}")],
    }
}

#[tokio::test(start_paused = true)]
async fn it_answers_as_a_real_server() {
    let (real, memory) = (recorded(), played().await);
    assert_eq!(
        memory.keys().collect::<Vec<_>>(),
        real.keys().collect::<Vec<_>>()
    );
    let readme = include_str!("../../README.md");
    let mut wrong = Vec::new();
    for (step, answer) in &memory {
        let differences = differences("", answer, &real[step]);
        let known = KNOWN.iter().find(|(name, _)| name == step);
        match known {
            Some((_, words)) => {
                assert!(readme.contains(words), "{words}");
                assert!(!differences.is_empty(), "{step}: no difference any more");
            }
            None if differences.is_empty() => {}
            None => wrong.push(format!("{step}\n{}", differences.join("\n"))),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        memory.len(),
        wrong.join("\n")
    );
}
