//! The page, as a browser shows it: a figure that only the page's own script can have put there.

use std::env;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::thread;

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::is_selected;
use crate::support::{self, BROKEN_AFTER, Manner, Place, Receiver, User};

/// Under which of these names a browser is found.
const BROWSERS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

pub async fn run() {
    let names = [
        "browser::the_page_shows_live_figures",
        "browser::the_page_shows_who_owns_the_shards",
    ];
    let [figures, shards] = names.map(is_selected);
    if !figures && !shards {
        return;
    }
    let paths = env::var_os("PATH").unwrap_or_default();
    let mut candidates =
        env::split_paths(&paths).flat_map(|folder| BROWSERS.map(|browser| folder.join(browser)));
    let Some(browser) = candidates.find(|path| path.is_file()) else {
        return println!("NOT RUN: {names:?}: there is no Chromium on this machine");
    };
    if figures {
        the_page_shows_live_figures(browser.clone()).await;
        println!("test {} ... ok", names[0]);
    }
    if shards {
        the_page_shows_who_owns_the_shards(browser).await;
        println!("test {} ... ok", names[1]);
    }
}

/// The page as it is, and figures as a replica gives them.
async fn the_page_shows_who_owns_the_shards(browser: PathBuf) {
    let look = json!({
        "seq": 1, "depth": 0, "in_flight": 0, "delayed": 0, "parked": 0, "delivered": 0,
        "retries": 0, "given_up": 0, "refused": 0, "wait_p99_ms": 0.0,
    });
    let shard = |n: u64| match n {
        0 => json!(null),
        n => json!({ "member": n % 2, "fence": 100 + n, "since": 1_700_000_000_000_u64 }),
    };
    let member = |name: &str, retiring: bool| {
        let (shards, since) = (32, 0);
        json!({ "name": name, "retiring": retiring, "shards": shards, "since": since })
    };
    let stats = json!({
        "now": look, "history": [look],
        "team": {
            "members": [member("replica-a", false), member("<b>replica-b", true)],
            "shards": (0..64).map(shard).collect::<Vec<_>>(),
            "moves": { "taken": 40, "released": 8, "given_up": 0, "lost": 1, "relisted": 40 },
        },
    });
    let answers = [
        (
            "/",
            "text/html",
            include_str!("../../src/page.html").to_owned(),
        ),
        ("/stats", "application/json", stats.to_string()),
        (
            "/queue",
            "application/json",
            json!({ "total": 0, "keys": [] }).to_string(),
        ),
    ];
    let address = support::serve(answers.into()).await;
    let place = Place::new();
    let (url, profile) = (format!("http://{address}/"), place.path("profile"));
    let page = tokio::task::spawn_blocking(move || dump(&browser, &profile, &url));
    let page = page.await.unwrap();
    assert!(page.contains("<section id=\"team\">"), "{page}");
    let title = "shard 6: replica-a, fence 106, since 2023-11-14 22:13:20 UTC";
    assert!(page.contains(title), "{page}");
    assert!(page.contains("title=\"shard 0: free\""), "{page}");
    assert_eq!(page.matches("title=\"shard ").count(), 64, "{page}");
    // Two owners, and what no one owns has no colour of its own.
    assert_eq!(page.matches("free\"></i>").count(), 1, "{page}");
    assert!(
        page.contains("&lt;b&gt;replica-b: 32 shards, leaving"),
        "{page}"
    );
    assert!(page.contains("taken here: 40"), "{page}");
}

async fn the_page_shows_live_figures(browser: PathBuf) {
    const OBJECTS: usize = 7;

    let (place, user) = (Place::new(), User::new());
    let service = place.start(&["--allow-private", "--pause", "60000", "--timeout", "600000"]);
    let receiver = Receiver::new(Manner::Steady).await;
    let json = json!({ "url": receiver.url() });
    user.put(&service, "/subscriptions/s", &json).await;
    for object in 0..OBJECTS {
        let path = format!("/objects/o{object}");
        user.put(&service, &path, &json!(object)).await;
    }
    user.settled(&service).await;

    // To one host deliveries are on their way, and to one they have failed.
    let permits = Arc::new(Semaphore::new(0));
    let slow = Receiver::new(Manner::Slow(Arc::clone(&permits))).await;
    user.subscribe(&service, "slow", &slow).await;
    let down = Receiver::new(Manner::Down(Arc::new(AtomicBool::new(true)))).await;
    user.subscribe(&service, "down", &down).await;
    let is = |key: &Value, subscription: &str, state: &str| {
        key["subscription"] == subscription && key["state"] == state
    };
    user.until_queued(&service, |keys| {
        keys.iter().any(|key| is(key, "slow", "active"))
            && keys.iter().any(|key| is(key, "down", "delayed"))
            && !keys.iter().any(|key| is(key, "down", "active"))
    })
    .await;

    let (url, profile) = (service.url("/"), place.path("profile"));
    let page = tokio::task::spawn_blocking(move || dump(&browser, &profile, &url));
    let page = page.await.unwrap();
    let figure = |id: &str| {
        let (_, rest) = page.split_once(&format!("id=\"{id}\">"))?;
        rest.split_once('<').map(|(figure, _)| figure.to_owned())
    };
    assert_eq!(figure("delivered"), Some(OBJECTS.to_string()), "{page}");
    assert_eq!(figure("depth").as_deref(), Some("0"), "{page}");
    assert!(page.contains("<section id=\"team\" hidden"), "{page}");
    assert!(figure("wait_p99_ms").unwrap().ends_with(" ms"), "{page}");
    let row = |cells: &str| page.contains(&format!("<tr><td>{cells}"));
    assert!(row("slow</td><td>o0</td><td>active</td><td>for "), "{page}");
    assert!(
        page.contains("<td>backs off after 1 failure</td></tr>"),
        "{page}"
    );
    permits.add_permits(2 * OBJECTS);
    assert_eq!(service.terminate().await.code(), Some(0));
}

/// What the page has become after three seconds of its own time.
fn dump(browser: &Path, profile: &Path, url: &str) -> String {
    let mut command = Command::new(browser);
    command
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
        ])
        .args(["--no-first-run", "--disable-background-networking"])
        .args(["--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(["--virtual-time-budget=3000", "--dump-dom", url]);
    // What it says about the desktop that it misses is of no interest.
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let (sender, pages) = channel();
    thread::spawn(move || {
        let mut page = String::new();
        let read = stdout.read_to_string(&mut page);
        let _ = sender.send(read.map(|_| page));
    });
    let page = pages.recv_timeout(BROKEN_AFTER);
    // It has ended, or else it is broken.
    let _ = child.kill();
    let _ = child.wait();
    page.unwrap().unwrap()
}
