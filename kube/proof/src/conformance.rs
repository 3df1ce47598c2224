//! The scripts of the cluster in memory, on a real server.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use kube::Client;
use serde_json::{Value, json};

use crate::server::Server;
use crate::world::{Problem, seconds, until};

#[path = "../../testing/tests/conformance/scripts.rs"]
mod scripts;
#[path = "../../testing/tests/conformance/tape.rs"]
mod tape;

use scripts::{SCRIPTS, definition, play, play_forgotten};

/// What a real server answered when the file was written.
const RECORDED: &str = include_str!("../../testing/tests/conformance/real.jsonl");

/// Plays every script, and compares the answers with those that the tests of the cluster in memory
/// have. `controllers` is the program that collects garbage.
///
/// # Errors
///
/// An answer is another one: the folder of the server has all of them, as a file to replace that
/// of the tests.
pub async fn conform(server: &mut Server, controllers: &Path) -> Result<String, Problem> {
    let client = server.client().await?;
    install(&client).await?;
    let collector = server.start_controllers(controllers)?;
    let mut lines = String::new();
    for script in SCRIPTS {
        note(&mut lines, script, play(script, &client).await?)?;
    }
    drop(collector);
    let forget = async || {
        server.compact()?;
        server.kill();
        server.start_apiserver().await
    };
    let answers = play_forgotten(&client, forget).await?;
    note(&mut lines, "forgotten", answers)?;

    let file = server.folder().join("real.jsonl");
    fs::write(&file, &lines)?;
    let count = lines.lines().count();
    let differ = |(new, old): &(&str, &str)| new != old;
    let pairs = lines.lines().zip(RECORDED.lines());
    match pairs.clone().find(differ) {
        _ if lines == RECORDED => Ok(format!("{count} answers as recorded")),
        Some((new, old)) => {
            let differing = pairs.filter(differ).count();
            let file = file.display();
            let why = format!("{differing} of {count} answers differ: {file} has {new}, not {old}");
            Err(why.into())
        }
        None => Err(format!("{count} answers, recorded {}", RECORDED.lines().count()).into()),
    }
}

fn note(lines: &mut String, script: &str, answers: Vec<(String, Value)>) -> Result<(), Problem> {
    for (step, answer) in answers {
        let line = json!({"script": script, "step": step, "answer": answer});
        writeln!(lines, "{line}")?;
    }
    Ok(())
}

async fn install(client: &Client) -> Result<(), Problem> {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let body = definition().to_string().into_bytes();
    let request = http::Request::post(path).header("content-type", "application/json");
    client.request_text(request.body(body)?).await?;
    let listed = until(seconds(60), Duration::from_millis(100), || async {
        let path = "/apis/conformance.requeue.dev/v1/webs";
        let request = http::Request::get(path).body(Vec::new()).ok()?;
        client.request_text(request).await.ok()
    });
    listed.await.ok_or("the kind is not served")?;
    // The document from which a server applies is made again a second later.
    tokio::time::sleep(seconds(3)).await;
    Ok(())
}
