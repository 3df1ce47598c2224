//! Shows the owner of each shard: `shards status --etcd URL[,URL…] [--user NAME:PASSWORD] SET`.

use std::env;
use std::process::ExitCode;

use requeue_shards::etcd_client::ConnectOptions;
use requeue_shards::{EngineError, Etcd, Shards, Status};

const USAGE: &str = "\
Usage: shards status --etcd URL[,URL…] [--user NAME:PASSWORD] SET

Shows the members of a set, and the owner of each shard with its fence and start.

  --etcd URL[,URL…]      the nodes of etcd, such as http://127.0.0.1:2379
  --user NAME:PASSWORD   the user, if etcd needs one. ETCD_USER does the same, hidden from ps

Exit code: 0 all shards are owned, 1 some are free, 2 wrong arguments, 3 there is no such set,
or etcd cannot be reached or refuses";

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    if words.iter().any(|word| word == "-h" || word == "--help") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let call = match Call::read(&words, env::var("ETCD_USER").ok()) {
        Ok(call) => call,
        Err(mistake) => {
            eprintln!("shards: {mistake}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let status = match runtime {
        Ok(runtime) => runtime.block_on(status(&call)),
        Err(error) => {
            eprintln!("shards: {error}");
            return ExitCode::from(3);
        }
    };
    match status {
        Ok(status) => {
            print!("{status}");
            ExitCode::from(u8::from(status.free().next().is_some()))
        }
        Err(error) => {
            eprintln!("shards: {error}");
            ExitCode::from(3)
        }
    }
}

async fn status(call: &Call) -> Result<Status, String> {
    let set = &call.set;
    let said = |error: EngineError| error.to_string();
    let mut options = ConnectOptions::new();
    if let Some((name, password)) = &call.user {
        options = options.with_user(name, password);
    }
    let etcd = Etcd::with_options(call.endpoints.clone(), options);
    let etcd = etcd.await.map_err(said)?;
    let count = etcd.count(set).await.map_err(said)?;
    let count = count.ok_or_else(|| format!("there is no set {set:?}"))?;
    let shards = Shards::builder(etcd, set).count(count).build();
    shards.status().await.map_err(said)
}

#[derive(Debug, PartialEq, Eq)]
struct Call {
    endpoints: Vec<String>,
    user: Option<(String, String)>,
    set: String,
}

impl Call {
    /// # Errors
    ///
    /// What is wrong with the words.
    fn read(words: &[String], user: Option<String>) -> Result<Self, String> {
        let (mut endpoints, mut user, mut set) = (Vec::new(), user, None);
        let mut words = words.iter();
        match words.next().map(String::as_str) {
            Some("status") => {}
            Some(other) => return Err(format!("unknown command `{other}`")),
            None => return Err("a command is missing".to_owned()),
        }
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--etcd" => endpoints.extend(value()?.split(',').map(str::to_owned)),
                "--user" => user = Some(value()?.clone()),
                word if word.starts_with('-') => return Err(format!("unexpected `{word}`")),
                word if set.is_none() => set = Some(word.to_owned()),
                word => return Err(format!("unexpected `{word}`: only one set can be shown")),
            }
        }
        let pair = |user: String| match user.split_once(':') {
            Some((name, password)) => Ok((name.to_owned(), password.to_owned())),
            None => Err("--user needs NAME:PASSWORD".to_owned()),
        };
        if endpoints.is_empty() {
            return Err("--etcd is missing".to_owned());
        }
        Ok(Self {
            endpoints,
            user: user.map(pair).transpose()?,
            set: set.ok_or("the set's name is missing")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(line: &str) -> Result<Call, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Call::read(&words, None)
    }

    #[test]
    fn a_call_names_the_nodes_the_set_and_perhaps_the_user() {
        let read = call("status --etcd http://a,http://b --user me:a:b webhooks").unwrap();
        assert_eq!(read.endpoints, ["http://a", "http://b"]);
        assert_eq!(read.user, Some(("me".to_owned(), "a:b".to_owned())));
        assert_eq!(read.set, "webhooks");
        let from_variable = Call::read(
            &["status", "--etcd", "a", "b"].map(str::to_owned),
            Some("me:secret".to_owned()),
        );
        let user = from_variable.unwrap().user;
        assert_eq!(user, Some(("me".to_owned(), "secret".to_owned())));
    }

    #[test]
    fn mistakes_are_named() {
        for (line, why) in [
            ("", "a command is missing"),
            ("list", "unknown command `list`"),
            ("status webhooks", "--etcd is missing"),
            ("status --etcd", "--etcd needs a value"),
            ("status --etcd a", "the set's name is missing"),
            (
                "status --etcd a b c",
                "unexpected `c`: only one set can be shown",
            ),
            ("status --etcd a --user me b", "--user needs NAME:PASSWORD"),
            ("status --etcd a --all b", "unexpected `--all`"),
        ] {
            assert_eq!(call(line), Err(why.to_owned()), "{line}");
        }
    }
}
