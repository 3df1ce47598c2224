//! What every engine promises, on real nodes, and what etcd adds to it: users, TLS, and nodes
//! that are dead.

#![allow(clippy::panic)] // A check that fails panics.

use std::io;
use std::path::Path;
use std::time::Duration;

use requeue_shards::etcd_client::{
    Client, ConnectOptions, Error, Permission, PermissionType, ResponseHeader,
};
use requeue_shards::{Engine, EngineError, Etcd, Mark, NewMark, Shard, conformance};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::cluster::{Access, Cluster};
use crate::proxy::Network;
use crate::tls::Certificates;
use crate::world::connect;

/// How long a token of the node with users lasts that is not used.
const TOKEN_TTL: Duration = Duration::from_secs(1);

const PATIENCE: Duration = Duration::from_secs(60);

/// Panics if something is not as promised.
pub(crate) async fn check(program: &Path, folder: &Path) -> io::Result<()> {
    let folders = ["three", "one", "secure"].map(|name| folder.join(name));
    let [three, one, secure] = &folders;
    let (three, one, secure) = tokio::join!(
        on_two_of_three(program, three),
        on_one(program, one),
        with_tls(program, secure),
    );
    no_endpoint().await;
    three.and(one).and(secure)
}

async fn on_two_of_three(program: &Path, folder: &Path) -> io::Result<()> {
    let mut cluster = Cluster::start(program, folder, 3).await?;
    let leader = cluster.leader().await;
    cluster.kill(leader.unwrap_or(0)).await?;
    // It may begin with the node that is dead, and passes it over.
    conformance::all(&connect(&cluster).await?, "conformance").await;
    Ok(())
}

async fn on_one(program: &Path, folder: &Path) -> io::Result<()> {
    let seconds = TOKEN_TTL.as_secs();
    let access = Access::open([format!("--auth-token-ttl={seconds}")]);
    let mut cluster = Cluster::start_with(program, folder, 1, access).await?;
    conformance::all(&connect(&cluster).await?, "conformance").await;
    compacted(&mut cluster).await?;
    let endpoints = cluster.endpoints();
    removed(&endpoints, &connect(&cluster).await?).await;
    users(&endpoints).await.map_err(io::Error::other)?;
    let options = ConnectOptions::new().with_user("alice", "right");
    let etcd = Etcd::with_options(endpoints.clone(), options).await;
    let etcd = etcd.map_err(io::Error::other)?;
    expired(&etcd).await;
    cluster.kill(0).await?;
    nothing_replies(&endpoints, &etcd).await;
    Ok(())
}

fn mark(key: &str) -> NewMark {
    NewMark {
        shard: Shard(0),
        key: key.into(),
        not_before: None,
    }
}

/// Who was cut off for so long that etcd has thrown away what changed hears of it all the same.
async fn compacted(cluster: &mut Cluster) -> io::Result<()> {
    const SET: &str = "compacted";
    async fn put(cluster: &Cluster, key: &str) -> io::Result<()> {
        let etcd = connect(cluster).await?;
        let put = etcd.put_marks(SET, &[mark(key)]).await;
        put.map_err(io::Error::other)
    }
    let network = Network::new(&cluster.addresses()).await?;
    let far = Etcd::connect(network.endpoints.clone()).await;
    let far = far.map_err(io::Error::other)?;
    let (sender, mut marks) = mpsc::channel::<Mark>(8);
    let hear = async {
        put(cluster, "a").await?;
        assert_eq!(marks.recv().await.map(|mark| mark.key), Some("a".into()));
        network.cut(true);
        // Or the connection would bring what it missed.
        cluster.restart(0).await?;
        // The last revision stays.
        put(cluster, "b").await?;
        put(cluster, "c").await?;
        compact(&cluster.endpoints())
            .await
            .map_err(io::Error::other)?;
        network.cut(false);
        while marks.recv().await.map(|mark| mark.key) != Some("b".into()) {}
        Ok(())
    };
    tokio::select! {
        ended = far.follow_marks(SET, Shard(0), &sender) => panic!("has ended: {ended:?}"),
        heard = timeout(PATIENCE, hear) => heard?,
    }
}

/// A member whose key was removed by hand has no session, though its lease goes on: it learns that
/// when it is kept, and can join again.
async fn removed(endpoints: &[String], etcd: &Etcd) {
    const SET: &str = "removed";
    let ttl = Duration::from_secs(5);
    let join = async || {
        let joined = etcd.join(SET, "a", ttl).await;
        joined.unwrap_or_else(|error| panic!("cannot join: {error}"))
    };
    let session = join().await;
    assert!(etcd.keep(&session).await.is_ok());
    let removed = async {
        let mut client = Client::connect(endpoints, None).await?;
        client.delete("/requeue/removed/member/a", None).await
    };
    assert!(removed.await.is_ok_and(|removed| removed.deleted() == 1));
    let kept = etcd.keep(&session).await;
    assert!(matches!(kept, Err(EngineError::SessionEnded)), "{kept:?}");
    let next = join().await;
    let kept = etcd.keep(&session).await;
    assert!(matches!(kept, Err(EngineError::SessionEnded)), "{kept:?}");
    assert!(etcd.leave(&session).await.is_ok());
    assert!(etcd.keep(&next).await.is_ok());
    assert!(etcd.leave(&next).await.is_ok());
}

/// Throws away what happened before now.
async fn compact(endpoints: &[String]) -> Result<(), Error> {
    let mut client = Client::connect(endpoints, None).await?;
    let now = client.get("a", None).await?;
    let now = now.header().map_or(0, ResponseHeader::revision);
    client.compact(now, None).await.map(drop)
}

/// A token that has expired is replaced, for calls and for what is followed.
async fn expired(alice: &Etcd) {
    let (sender, mut marks) = mpsc::channel::<Mark>(8);
    let hear = async {
        for key in ["a", "b"] {
            sleep(3 * TOKEN_TTL).await;
            let put = alice.put_marks("hers", &[mark(key)]).await;
            assert!(put.is_ok(), "{put:?}");
            assert_eq!(marks.recv().await.map(|mark| mark.key), Some(key.into()));
        }
    };
    tokio::select! {
        ended = alice.follow_marks("hers", Shard(0), &sender) => panic!("has ended: {ended:?}"),
        heard = timeout(PATIENCE, hear) => assert!(heard.is_ok(), "no mark"),
    }
}

/// A client has a certificate of the authority that the node trusts, and trusts it too.
async fn with_tls(program: &Path, folder: &Path) -> io::Result<()> {
    let files = folder.with_extension("certificates");
    let certificates = Certificates::write(&files)?;
    let access = certificates.access(&files);
    let cluster = Cluster::start_with(program, folder, 1, access).await?;
    conformance::all(&connect(&cluster).await?, "conformance").await;

    let strangers = [
        certificates.strangers_options(),
        Certificates::write(&folder.with_extension("others"))?.strangers_options(),
        ConnectOptions::new(),
    ];
    for options in strangers {
        let stranger = Etcd::with_options(cluster.endpoints(), options).await;
        let opened = match stranger {
            Ok(stranger) => stranger.open("conformance", 4).await,
            Err(error) => Err(error),
        };
        assert!(
            matches!(opened, Err(EngineError::Unreachable(_))),
            "{opened:?}"
        );
    }
    Ok(())
}

/// A user is what its password says, and reaches its own set alone.
async fn users(endpoints: &[String]) -> Result<(), Error> {
    let mut root = Client::connect(endpoints, None).await?;
    root.user_add("root", "root", None).await?;
    root.user_grant_role("root", "root").await?;
    root.role_add("alice").await?;
    let own = Permission::new(PermissionType::Readwrite, "/requeue/hers/");
    root.role_grant_permission("alice", own.with_prefix())
        .await?;
    root.user_add("alice", "right", None).await?;
    root.user_grant_role("alice", "alice").await?;
    root.auth_enable().await?;

    let denied = |outcome: Result<(), EngineError>| {
        assert!(
            matches!(outcome, Err(EngineError::Denied(_))),
            "{outcome:?}"
        );
    };
    let wrong = ConnectOptions::new().with_user("alice", "wrong");
    denied(Etcd::with_options(endpoints, wrong).await.map(drop));
    let stranger = Etcd::connect(endpoints.to_vec()).await;
    if let Ok(stranger) = stranger {
        denied(stranger.open("hers", 4).await);
    }
    let right = ConnectOptions::new().with_user("alice", "right");
    let alice = Etcd::with_options(endpoints, right).await;
    let alice = alice.unwrap_or_else(|error| panic!("{error}"));
    conformance::counts(&alice, "hers").await;
    denied(alice.open("his", 4).await);
    let view = tokio::sync::watch::Sender::default();
    denied(alice.follow("his", &view).await.map(|never| match never {}));
    let (marks, _received) = tokio::sync::mpsc::channel(1);
    denied(alice.follow_marks("his", Shard(0), &marks).await);
    Ok(())
}

/// Without a node every call ends in time, with an error that names the node.
async fn nothing_replies(endpoints: &[String], etcd: &Etcd) {
    for outcome in [
        Etcd::connect(endpoints.to_vec()).await.map(drop),
        etcd.open("hers", 4).await,
        etcd.join("hers", "a", Duration::from_secs(2))
            .await
            .map(drop),
    ] {
        let Err(EngineError::Unreachable(why)) = outcome else {
            panic!("no node is there: {outcome:?}");
        };
        let why = why.to_string();
        assert!(
            endpoints.iter().any(|endpoint| why.contains(endpoint)),
            "{why}"
        );
    }
}

async fn no_endpoint() {
    for endpoints in [vec![], vec!["not an address".to_owned()]] {
        let outcome = Etcd::connect(endpoints).await.map(drop);
        assert!(
            matches!(outcome, Err(EngineError::Refused(_))),
            "{outcome:?}"
        );
    }
}
