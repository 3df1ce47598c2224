//! The page, as a browser shows it: a figure that only the page's own script can have put there.
//!
//! Without a browser on this machine there is nothing to test. Then it says so, and that is no test
//! that passed; hence a `main` of its own.
#![allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic, and its support is shared"
)]

#[cfg(unix)]
mod support;

/// Under which of these names a browser is found.
#[cfg(unix)]
const BROWSERS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

#[cfg(not(unix))]
fn main() {
    println!("NOT RUN: the page in a browser: the program is stopped by a signal of Unix");
}

#[cfg(unix)]
#[tokio::main]
async fn main() {
    let name = "the_page_shows_live_figures";
    if !support::is_selected(name) {
        return;
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates = std::env::split_paths(&paths)
        .flat_map(|folder| BROWSERS.map(|browser| folder.join(browser)));
    match candidates.find(|path| path.is_file()) {
        Some(browser) => {
            the_page_shows_live_figures(browser).await;
            println!("test {name} ... ok");
        }
        None => println!("NOT RUN: {name}: there is no Chromium on this machine"),
    }
}

#[cfg(unix)]
async fn the_page_shows_live_figures(browser: std::path::PathBuf) {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use serde_json::json;
    use tokio::sync::Semaphore;

    use support::{Manner, Place, Receiver, User};

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
    let is = |key: &serde_json::Value, subscription: &str, state: &str| {
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
#[cfg(unix)]
fn dump(browser: &std::path::Path, profile: &std::path::Path, url: &str) -> String {
    use std::io::Read;
    use std::process::{Command, Stdio};
    use std::sync::mpsc::channel;
    use std::thread;

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
    let page = pages.recv_timeout(support::BROKEN_AFTER);
    // It has ended, or else it is broken.
    let _ = child.kill();
    let _ = child.wait();
    page.unwrap().unwrap()
}
