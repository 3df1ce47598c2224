//! The window on the queue of the running service, in a browser.

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
    let name = "browser::the_window_shows_why_keys_do_not_run";
    if !is_selected(name) {
        return;
    }
    let paths = env::var_os("PATH").unwrap_or_default();
    let mut candidates =
        env::split_paths(&paths).flat_map(|folder| BROWSERS.map(|browser| folder.join(browser)));
    let Some(browser) = candidates.find(|path| path.is_file()) else {
        return println!("NOT RUN: {name}: there is no Chromium on this machine");
    };
    the_window_shows_why_keys_do_not_run(browser).await;
    println!("test {name} ... ok");
}

async fn the_window_shows_why_keys_do_not_run(browser: PathBuf) {
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
    let count = |keys: &[Value], group: &str, phase: &str| {
        let is = |key: &&Value| key["group"] == group && key["phase"] == phase;
        keys.iter().filter(is).count()
    };
    user.until_queued(&service, |keys| {
        count(keys, "slow", "active") == 1 && count(keys, "down", "delayed") == OBJECTS
    })
    .await;

    let (url, profile) = (service.url("/"), place.path("profile"));
    let page = tokio::task::spawn_blocking(move || dump(&browser, &profile, &url));
    let page = page.await.unwrap();
    // Its own script has shown this, and would say so if no events came.
    let live = "<p id=\"connection\"><span id=\"news\" role=\"status\">live</span>";
    assert!(page.contains(live), "{page}");
    assert!(page.contains("slow/o0"), "{page}");
    assert!(page.contains("It backs off after 1 failure"), "{page}");
    assert!(page.contains("answered 500"), "{page}");
    permits.add_permits(2 * OBJECTS);
    assert_eq!(service.terminate().await.code(), Some(0));
}

/// What the page has become once it has loaded.
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
        .args(["--timeout=3000", "--dump-dom", url]);
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
