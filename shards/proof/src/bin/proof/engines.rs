//! The promises of every engine, on real nodes. And what etcd adds: users, TLS, dead nodes, and
//! nodes that have lost acknowledged writes.

#![allow(clippy::panic)] // A check that fails panics.

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use requeue_shards::etcd_client::{
    Client, ConnectOptions, Error, Permission, PermissionType, PutOptions, ResponseHeader,
};
use requeue_shards::{
    Engine, EngineError, Etcd, EtcdSession, Mark, NewMark, Shard, View, conformance,
};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use crate::cluster::{Access, Cluster};
use crate::proxy::Network;
use crate::tls::Certificates;
use crate::world::connect;

/// How long an unused token of the node with users lasts.
const TOKEN_TTL: Duration = Duration::from_secs(1);

const PATIENCE: Duration = Duration::from_secs(60);

/// Panics if a promise is broken.
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
    // It may begin with the dead node, which it then skips.
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
    unreadable(&endpoints, &connect(&cluster).await?).await;
    lost(&mut cluster).await?;
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
    NewMark::new(Shard(0), key.into())
}

/// A client that was cut off until etcd had compacted the changes still learns of them.
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
        // Otherwise the connection would deliver the missed changes.
        cluster.restart(0).await?;
        // A compaction keeps the last revision.
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

/// A member whose key was deleted by hand has no session, although its lease continues. It learns
/// that when it renews the session, and can join again.
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

/// Writes a key by hand, perhaps with a lease.
async fn put(endpoints: &[String], key: &str, value: &[u8], lease: i64) -> Result<(), Error> {
    let mut client = Client::connect(endpoints, None).await?;
    let options = PutOptions::new().with_lease(lease);
    client.put(key, value, Some(options)).await.map(drop)
}

/// Waits until a view is as expected, while it is kept up to date.
async fn shown(etcd: &Etcd, set: &str, is_so: impl FnMut(&View) -> bool) -> View {
    let view = watch::Sender::<View>::default();
    let mut seen = view.subscribe();
    tokio::select! {
        Err(error) = etcd.follow(set, &view) => panic!("follow has ended: {error}"),
        seen = timeout(PATIENCE, seen.wait_for(is_so)) => match seen {
            Ok(Ok(view)) => view.clone(),
            seen => panic!("not shown: {:?}", seen.is_ok()),
        },
    }
}

/// An unreadable value counts as missing, is shown, and blocks only itself. A value without a lease
/// belongs to no session, and is replaced.
async fn unreadable(endpoints: &[String], etcd: &Etcd) {
    const SET: &str = "unreadable";
    let key = |key: &str| format!("/requeue/unreadable/{key}");
    let put = async |name: &str, value: &[u8], lease| {
        let put = put(endpoints, &key(name), value, lease).await;
        put.unwrap_or_else(|error| panic!("cannot put {name}: {error}"));
    };
    let foreign = async {
        let mut client = Client::connect(endpoints, None).await?;
        client.lease_grant(60, None).await.map(|lease| lease.id())
    };
    let foreign = foreign.await.unwrap_or_else(|error| panic!("{error}"));
    conformance::counts(etcd, SET).await;
    put("member/ghost", b"\xff\xfe", 0).await;
    put("owner/1", b"{}", foreign).await;
    // It is readable, but no session would ever remove it.
    put("owner/2", b"1 5 ghost", 0).await;
    put("owner/3", b"{}", 0).await;
    put("fence/0", b"many", 0).await;

    let join = async |name| {
        let joined = etcd.join(SET, name, PATIENCE).await;
        joined.unwrap_or_else(|error| panic!("{name} cannot join: {error}"))
    };
    let first = join("first").await;
    let view = shown(etcd, SET, |view| view.is_complete).await;
    assert_eq!(view.members.keys().collect::<Vec<_>>(), ["first"]);
    assert!(view.owners.is_empty());
    let names = ["member/ghost", "owner/1", "owner/2", "owner/3"].map(key);
    assert_eq!(view.unreadable.keys().collect::<Vec<_>>(), names.each_ref());

    for (shard, is_free) in [(0, true), (1, false), (2, true), (3, true), (4, true)] {
        let claimed = etcd.claim(&first, Shard(shard)).await;
        assert!(
            claimed
                .as_ref()
                .is_ok_and(|fence| fence.is_some() == is_free),
            "{claimed:?}"
        );
    }
    // Overwriting an owner ends its ownership, and no other.
    put("owner/4", b"?", 0).await;
    let again = etcd.claim(&first, Shard(4)).await;
    assert!(matches!(again, Ok(Some(_))), "{again:?}");
    let ghost = join("ghost").await;
    let view = shown(etcd, SET, |view| view.unreadable.len() == 1).await;
    assert!(view.unreadable.contains_key(&key("owner/1")));
    assert_eq!((view.members.len(), view.owners.len()), (2, 4));

    unreadable_mark(endpoints, etcd, SET).await;
    for session in [first, ghost] {
        assert!(etcd.leave(&session).await.is_ok());
    }
}

/// A mark with an unreadable value runs at once, because its key is known.
async fn unreadable_mark(endpoints: &[String], etcd: &Etcd, set: &str) {
    let key = format!("/requeue/{set}/mark/0/k");
    let put = put(endpoints, &key, b"soon", 0).await;
    assert!(put.is_ok(), "{put:?}");
    let (sender, mut marks) = mpsc::channel::<Mark>(8);
    let hear = async {
        let put = etcd.put_marks(set, &[mark("l")]).await;
        assert!(put.is_ok(), "{put:?}");
        let [k, l] = [marks.recv().await, marks.recv().await];
        assert_eq!(l.map(|mark| mark.key), Some("l".into()));
        let k = k.map(|mark| (mark.key, mark.not_before, mark.unreadable));
        assert_eq!(k, Some(("k".into(), None, Some("soon".to_owned()))));
        let mut later = mark("k");
        later.not_before = SystemTime::now().checked_add(PATIENCE);
        let put = etcd.put_marks(set, &[later]).await;
        assert!(put.is_ok(), "{put:?}");
        let k = marks.recv().await;
        let k = k.map(|mark| (mark.not_before, mark.unreadable));
        assert_eq!(k, Some((None, None)));
    };
    tokio::select! {
        ended = etcd.follow_marks(set, Shard(0), &sender) => panic!("has ended: {ended:?}"),
        heard = timeout(PATIENCE, hear) => assert!(heard.is_ok(), "no mark"),
    }
}

/// If a node is emptied or restored from a backup, followers get an error, sessions have ended, and
/// fences still rise.
async fn lost(cluster: &mut Cluster) -> io::Result<()> {
    const SET: &str = "lost";
    let etcd = connect(cluster).await?;
    let join = async || {
        etcd.open(SET, 4).await.map_err(io::Error::other)?;
        etcd.join(SET, "a", PATIENCE)
            .await
            .map_err(io::Error::other)
    };
    let claim = async |session, shard| {
        let claimed = etcd.claim(session, Shard(shard)).await;
        claimed.map_err(io::Error::other)
    };
    let session = join().await?;
    let before = claim(&session, 0).await?;
    learns(&etcd, SET, cluster.empty()).await?;
    has_ended(&etcd, &session).await;
    let session = join().await?;
    let after = claim(&session, 0).await?;
    assert!(after > before, "{after:?} after {before:?}");

    cluster.back_up().await?;
    let kept = etcd.keep(&session).await;
    assert!(kept.is_ok(), "{kept:?}");
    let before = claim(&session, 1).await?;
    learns(&etcd, SET, cluster.restore()).await?;
    // The backup contains its lease and its ownership of a shard.
    has_ended(&etcd, &session).await;
    assert!(etcd.leave(&session).await.is_ok());
    let session = join().await?;
    let rest = claim(&session, 0).await?;
    assert!(rest > after, "{rest:?} after {after:?}");
    let after = claim(&session, 1).await?;
    assert!(after > before, "{after:?} after {before:?}");
    assert!(etcd.leave(&session).await.is_ok());
    Ok(())
}

/// Follows a set and its marks while etcd loses its state. One of the two has to notice that, and
/// both have to end.
async fn learns(
    etcd: &Etcd,
    set: &str,
    loses: impl Future<Output = io::Result<()>>,
) -> io::Result<()> {
    let view = watch::Sender::<View>::default();
    let mut seen = view.subscribe();
    let (sender, mut marks) = mpsc::channel::<Mark>(8);
    let followed = async {
        let marks = etcd.follow_marks(set, Shard(0), &sender);
        let (view, marks) = tokio::join!(etcd.follow(set, &view), marks);
        for ended in [view.map(|never| match never {}), marks] {
            assert!(matches!(ended, Err(EngineError::StateLost(_))), "{ended:?}");
        }
    };
    let loses = async {
        let complete = seen.wait_for(|view| view.is_complete).await.map(drop);
        let put = etcd.put_marks(set, &[mark("k")]).await;
        let heard = marks.recv().await;
        assert!(complete.is_ok() && put.is_ok() && heard.is_some());
        loses.await
    };
    let (told, lost) = tokio::join!(timeout(PATIENCE, followed), loses);
    assert!(told.is_ok(), "it is followed as if nothing had been lost");
    lost
}

async fn has_ended(etcd: &Etcd, session: &EtcdSession) {
    for outcome in [
        etcd.keep(session).await,
        etcd.claim(session, Shard(0)).await.map(drop),
        etcd.retire(session).await,
    ] {
        let has_ended = matches!(outcome, Err(EngineError::SessionEnded));
        assert!(has_ended, "{outcome:?}");
    }
}

/// Compacts everything before now.
async fn compact(endpoints: &[String]) -> Result<(), Error> {
    let mut client = Client::connect(endpoints, None).await?;
    let now = client.get("a", None).await?;
    let now = now.header().map_or(0, ResponseHeader::revision);
    client.compact(now, None).await.map(drop)
}

/// An expired token is replaced, for calls and for watches.
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

/// The client and the node trust the same authority, and each has a certificate of it.
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

/// A user has the rights of its password, and reaches only its own set.
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
