//! The window in a real browser: five planted stalls, each named from the page alone by a script of
//! clicks; live figures; steering; what axe finds.
//!
//! Whether there is a browser shows when this runs; without one there is nothing to test, and that is no
//! test that passed. `AXE` names a copy of axe-core's `axe.min.js`, `SCREENSHOTS` a folder for
//! pictures of the pages in four forms.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

use std::collections::VecDeque;
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine;
use requeue::metrics::Times;
use requeue::priority::Groups;
use requeue::std::{DeadKeys, GroupLimits, ManualClock, WorkQueue, Workers};
use requeue_inspect::{Inspector, Listener, Registry};
use serde_json::{Value, json};

const BROWSERS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];
/// A person names the cause within a minute. So does the script, or it is broken.
const MINUTE: Duration = Duration::from_secs(60);

type Test = (&'static str, fn(&mut Browser));

fn main() {
    let selected = |test: &str| {
        let mut words = env::args()
            .skip(1)
            .filter(|word| !word.starts_with('-'))
            .peekable();
        words.peek().is_none() || words.any(|word| test.contains(&word))
    };
    if env::args().any(|word| word == "--list") {
        return;
    }
    let paths = env::var_os("PATH").unwrap_or_default();
    let mut candidates =
        env::split_paths(&paths).flat_map(|folder| BROWSERS.map(|name| folder.join(name)));
    let Some(program) = candidates.find(|path| path.is_file()) else {
        return println!("NOT RUN: there is no Chromium on this machine");
    };
    let tests: [Test; 10] = [
        ("no_worker_is_free", no_worker_is_free),
        ("a_run_hangs", a_run_hangs),
        ("a_group_is_at_its_limit", a_group_is_at_its_limit),
        ("a_key_backs_off", a_key_backs_off),
        ("the_queue_is_paused", the_queue_is_paused),
        ("figures_are_live", figures_are_live),
        ("tables_need_no_script", tables_need_no_script),
        (
            "a_million_keys_are_a_short_page",
            a_million_keys_are_a_short_page,
        ),
        ("hostile_ids_do_no_harm", hostile_ids_do_no_harm),
        ("every_form_is_readable", every_form_is_readable),
    ];
    let mut browser = Browser::start(&program);
    for (name, test) in tests.into_iter().filter(|(name, _)| selected(name)) {
        let begin = Instant::now();
        test(&mut browser);
        assert!(begin.elapsed() < MINUTE, "{name} took longer than a minute");
        println!("test {name} ... ok");
    }
}

/// A queue whose runs last until they are told to end, on a clock that stands.
struct Shop {
    queue: WorkQueue<String, Groups<String>>,
    clock: ManualClock,
    window: Listener,
    /// Tells the runs of keys that hang to end.
    end: Vec<Sender<()>>,
    begun: Receiver<String>,
    workers: Option<thread::JoinHandle<()>>,
}

impl Shop {
    fn open(workers: usize, limits: GroupLimits) -> Self {
        let clock = ManualClock::new();
        let queue = WorkQueue::builder()
            .clock(clock.clone())
            .backoff(Duration::from_secs(30), Duration::from_secs(60))
            .no_retry_rate()
            .report_to(Times)
            .build_with_groups(|key: &String| key.split('/').next().unwrap().to_owned());
        queue.limit_groups(limits);
        let dead: DeadKeys<String, String> = DeadKeys::new(10, |_, _| {});
        dead.insert("old/dead".to_owned(), "no such order".to_owned());
        let inspector = Inspector::new("orders", &queue)
            .with_groups()
            .with_dead_keys(&dead);
        let (begin, begun) = channel();
        let (end, ended) = channel::<()>();
        let settings = inspector.watch(Workers::new(workers));
        let own = queue.clone();
        let ended = std::sync::Mutex::new(ended);
        let workers = thread::spawn(move || {
            own.run(settings, |key: &String| {
                begin.send(key.clone()).unwrap();
                if key.contains("hangs") {
                    // One waits for the channel, and the others for the lock.
                    let _ = ended.lock().unwrap().recv();
                }
                match key.contains("bad") {
                    true => Err("the shop does not answer"),
                    false => Ok(()),
                }
            })
            .unwrap();
        });
        let registry = Registry::new().with(inspector).allow_control();
        let window = registry.listen("127.0.0.1:0").unwrap();
        Self {
            queue,
            clock,
            window,
            end: vec![end],
            begun,
            workers: Some(workers),
        }
    }

    /// Adds keys, and waits until these have begun to run.
    fn add(&self, keys: &[&str], run: usize) {
        for key in keys {
            self.queue.add((*key).to_owned()).unwrap();
        }
        for _ in 0..run {
            self.begun.recv_timeout(MINUTE).unwrap();
        }
    }

    fn url(&self) -> String {
        format!("http://{}/", self.window.address())
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.end.clear();
        self.queue.shut_down();
        let workers = self.workers.take().unwrap().join();
        assert!(workers.is_ok() || thread::panicking());
    }
}

fn no_worker_is_free(browser: &mut Browser) {
    let shop = Shop::open(2, GroupLimits::new());
    shop.add(&["a/hangs-1", "b/hangs-2"], 2);
    shop.add(&["a/waits", "b/waits"], 0);
    browser.open(&shop.url());
    browser.click("orders");
    let cause = "No worker is free: all 2 are busy, and there is a backlog of 2 ready keys.";
    assert_eq!(browser.text("#findings li"), cause);
    browser.search("waits");
    browser.click("a/waits");
    assert_eq!(
        browser.text("#why p"),
        format!("It waits for a worker. {cause}")
    );
    // One worker more is all that it takes.
    browser.click("orders");
    browser.fill("#control [name=workers]", "3");
    browser.click("Set");
    shop.begun.recv_timeout(MINUTE).unwrap();
    assert!(
        browser
            .text("#actions")
            .contains("set the number of workers to 3")
    );
}

fn a_run_hangs(browser: &mut Browser) {
    let shop = Shop::open(2, GroupLimits::new());
    shop.add(&["a/1", "a/2", "a/3"], 3);
    shop.add(&["a/hangs"], 1);
    shop.clock.advance(Duration::from_secs(90));
    browser.open(&shop.url());
    let cause = "The run of `a/hangs` seems to hang: it has been going on for 1 min 30 s. Half of all runs take 100 µs or less.";
    assert_eq!(browser.text("tbody td:last-child"), cause);
    browser.click("orders");
    assert_eq!(browser.text("#findings li"), cause);
    browser.click("a/hangs");
    let why = "It runs, for 1 min 30 s now. Half of all runs take 100 µs or less.";
    assert_eq!(browser.text("#why p"), why);
}

fn a_group_is_at_its_limit(browser: &mut Browser) {
    let shop = Shop::open(4, GroupLimits::new().max_active(1));
    shop.add(&["acme/hangs", "acme/2", "acme/3"], 1);
    browser.open(&shop.url());
    browser.click("orders");
    let cause = "The group `acme` is at its limit of 1 active: 2 keys of it cannot run.";
    assert_eq!(browser.text("#findings li"), cause);
    assert!(browser.text("#groups tbody").contains("at its limit"));
    browser.click("acme");
    browser.click("acme/2");
    let why = "Its group `acme` is at its limit: 1 of at most 1 of its keys run.";
    assert_eq!(browser.text("#why p"), why);
    browser.click("orders");
    browser.click("Limits");
    browser.fill("#groups [name=max_active]", "2");
    browser.click("Set the limits of the group acme");
    for _ in 0..2 {
        shop.begun.recv_timeout(MINUTE).unwrap();
    }
}

fn a_key_backs_off(browser: &mut Browser) {
    let shop = Shop::open(1, GroupLimits::new());
    shop.add(&["a/bad"], 1);
    shop.queue.wait_idle();
    browser.open(&shop.url());
    browser.click("orders");
    assert_eq!(
        browser.text("#findings li"),
        "Nothing runs: 1 key delayed or backing off, the next of them for 30.0 s more."
    );
    browser.fill("[name=sort]", "failures");
    browser.click("Search");
    browser.click("a/bad");
    let why = "It backs off after 1 failure, for 30.0 s more. It last failed with: the shop does not answer";
    assert_eq!(browser.text("#why p"), why);
    assert!(
        browser
            .text("#ends tbody")
            .contains("the shop does not answer")
    );
    browser.click("End its delay");
    assert_eq!(shop.begun.recv_timeout(MINUTE).unwrap(), "a/bad");
}

fn the_queue_is_paused(browser: &mut Browser) {
    let shop = Shop::open(2, GroupLimits::new());
    shop.queue.pause();
    shop.add(&["a/1", "a/2"], 0);
    browser.open(&shop.url());
    browser.click("orders");
    assert_eq!(
        browser.text("#findings li"),
        "The queue is paused: 2 ready keys will not run until it is unpaused."
    );
    browser.search("a/1");
    browser.click("a/1");
    assert_eq!(
        browser.text("#why p"),
        "The queue is paused: no key runs until it is unpaused."
    );
    browser.click("orders");
    browser.click("Unpause the queue");
    for _ in 0..2 {
        shop.begun.recv_timeout(MINUTE).unwrap();
    }
}

fn figures_are_live(browser: &mut Browser) {
    let shop = Shop::open(1, GroupLimits::new());
    browser.open(&format!("{}queues/orders", shop.url()));
    browser.until("document.querySelector('#news').textContent === 'live'");
    shop.add(&["a/hangs", "a/2", "<b>bold</b>/3"], 1);
    browser.until("document.querySelector('#figures dd').textContent === '2'");
    browser.until("document.querySelector('#runs').textContent.includes('a/hangs')");
    browser.until("document.querySelector('#groups').textContent.includes('<b>bold<')");
    // A section that somebody uses stays as it is; the others go on.
    browser.click("Limits");
    browser.eval("document.querySelector('#groups [name=max_active]').focus()");
    browser.fill("#groups [name=max_active]", "7");
    shop.add(&["a/4"], 0);
    browser.until("document.querySelector('#figures dd').textContent === '3'");
    assert_eq!(
        browser.eval("document.querySelector('#groups [name=max_active]').value"),
        "7"
    );
    browser.click("Stop updates");
    assert_eq!(browser.text("#news"), "stopped");
    browser.click("Follow again");
    browser.until("document.querySelector('#news').textContent === 'live'");
}

fn tables_need_no_script(browser: &mut Browser) {
    let shop = Shop::open(1, GroupLimits::new());
    shop.add(&["a/hangs", "a/2"], 1);
    browser.call(
        "Emulation.setScriptExecutionDisabled",
        json!({ "value": true }),
    );
    browser.open(&format!("{}queues/orders", shop.url()));
    // Asked from outside of the page.
    let shown = browser.text("main");
    for text in [
        "No worker is free",
        "a/hangs",
        "It waits for a worker.",
        "Runs in progress",
        "old/dead",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    assert_eq!(
        browser.eval("document.querySelector('#connection').hidden"),
        true
    );
    browser.call(
        "Emulation.setScriptExecutionDisabled",
        json!({ "value": false }),
    );
}

/// Prints the time until Chromium's first paint, on which nothing depends.
fn a_million_keys_are_a_short_page(browser: &mut Browser) {
    let queue = WorkQueue::new();
    let _ = queue.add_many(0..1_000_000);
    let window = Registry::new()
        .with(Inspector::new("numbers", &queue))
        .listen("127.0.0.1:0")
        .unwrap();
    browser.open(&format!("http://{}/queues/numbers", window.address()));
    assert_eq!(browser.text("#figures dd"), "1000000");
    assert_eq!(
        browser.eval("document.querySelectorAll('#keys tbody tr').length"),
        50
    );
    let paint = "performance.getEntriesByName('first-contentful-paint')";
    browser.until(&format!("{paint}.length === 1"));
    let painted = browser.eval(&format!("{paint}[0].startTime"));
    println!("first paint of a million keys after {painted} ms");
}

/// Ids that a browser would run, show wrongly, or change in a form, as ids and as names of groups.
fn hostile_ids_do_no_harm(browser: &mut Browser) {
    let shop = Shop::open(1, GroupLimits::new());
    shop.queue.pause();
    let hostile = [
        "<script>hacked = 1</script><img src=x onerror=\"hacked = 1\">".to_owned(),
        "\" autofocus onfocus=\"hacked = 1".to_owned(),
        "nul \0 escape \u{1b}[2J turn \u{202e} line \n feed \r return".to_owned(),
        " ?id=x&y#z%41+ ".to_owned(),
        "ä<&\"'".repeat(1_500),
    ];
    for id in &hostile {
        shop.queue.add(id.clone()).unwrap();
    }
    let queue = format!("{}queues/orders", shop.url());
    for left in (1..=hostile.len()).rev() {
        browser.open(&queue);
        let links = "document.querySelectorAll('#keys tbody a')";
        assert_eq!(browser.eval(&format!("{links}.length")), left);
        browser.eval(&format!("void setTimeout(() => {links}[0].click())"));
        browser.wait("Page.loadEventFired");
        let why = "The queue is paused: no key runs until it is unpaused.";
        assert_eq!(browser.text("#why p"), why);
        browser.click("Cancel its work");
        // Back at the queue, which shows what was done.
        assert_eq!(browser.text("h1"), "orders");
        let done = browser.text("#actions td:last-child");
        assert_eq!(done, "cancelled the key");
        let strange = "typeof hacked + document.querySelectorAll('main :is(script, img)').length";
        assert_eq!(browser.eval(strange), "undefined0");
    }
    assert!(shop.queue.is_empty());

    for id in &hostile {
        shop.queue.add(id.clone()).unwrap();
    }
    for paused in 0..hostile.len() {
        browser.open(&queue);
        let pause =
            "[...document.querySelectorAll('#groups button')].find((e) => e.innerText === 'Pause')";
        browser.eval(&format!("void setTimeout(() => {pause}.click())"));
        browser.wait("Page.loadEventFired");
        let groups = shop.queue.groups();
        assert_eq!(groups.filter(|(_, group)| group.paused).count(), paused + 1);
    }
}

/// Light and dark, wide and narrow: nothing is wider than the window, and axe finds nothing serious.
fn every_form_is_readable(browser: &mut Browser) {
    let shop = Shop::open(2, GroupLimits::new().max_active(1));
    shop.add(&["zeta/bad", "zeta/1", "zeta/2"], 3);
    shop.add(&["acme/hangs", "acme/2", &"acme/long-".repeat(500)], 1);
    shop.queue
        .add_after("acme/later".to_owned(), Duration::from_secs(4_000))
        .unwrap();
    let axe = env::var_os("AXE").map(|path| std::fs::read_to_string(path).unwrap());
    if axe.is_none() {
        println!("NOT RUN: axe, because AXE does not name it");
    }
    let pictures = env::var_os("SCREENSHOTS").map(PathBuf::from);
    let pages = [
        ("index", ""),
        ("queue", "queues/orders"),
        ("key", "queues/orders/key?id=zeta%2Fbad"),
        ("problem", "queues/none"),
    ];
    for (scheme, width) in [
        ("light", 1280),
        ("dark", 1280),
        ("light", 360),
        ("dark", 360),
    ] {
        let feature = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        browser.call("Emulation.setEmulatedMedia", json!({ "features": feature }));
        let metrics =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        browser.call("Emulation.setDeviceMetricsOverride", metrics);
        for (name, path) in pages {
            browser.open(&format!("{}{path}", shop.url()));
            let wide = browser
                .eval("document.documentElement.scrollWidth")
                .as_u64()
                .unwrap();
            assert!(wide <= width, "{name} is {wide} wide, of {width}");
            if let Some(axe) = &axe {
                browser.eval(&format!("(() => {{ {axe}; return 1; }})()"));
                let run = "axe.run().then((r) => r.violations.map((v) => \
                           v.impact + ' ' + v.id + ' ' + v.nodes.map((n) => n.html).join(' ')))";
                assert_eq!(browser.eval(run), json!([]), "{name}, {scheme}, {width}");
            }
            if let Some(folder) = &pictures {
                let options = json!({ "format": "png", "captureBeyondViewport": true });
                let picture = browser.call("Page.captureScreenshot", options);
                let data = base64::engine::general_purpose::STANDARD
                    .decode(picture["data"].as_str().unwrap());
                std::fs::write(
                    folder.join(format!("{name}-{scheme}-{width}.png")),
                    data.unwrap(),
                )
                .unwrap();
            }
        }
    }
    browser.call("Emulation.clearDeviceMetricsOverride", json!({}));
}

/// A browser that is spoken to over a pipe, by the DevTools protocol.
struct Browser {
    child: Child,
    orders: ChildStdin,
    answers: Receiver<Value>,
    /// Events that came before they were waited for.
    events: VecDeque<Value>,
    session: Option<String>,
    last_id: u64,
    _profile: tempfile::TempDir,
}

impl Browser {
    fn start(program: &Path) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        // It reads orders from 3, and writes answers to 4.
        command
            .args(["-c", "exec \"$@\" 3<&0 4>&1 0</dev/null 1>&2", "sh"])
            .arg(program);
        command.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
        ]);
        command.args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ]);
        command
            .arg("--remote-debugging-pipe")
            .arg(format!("--user-data-dir={}", profile.path().display()));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (orders, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let answers = read(answers);
        let events = VecDeque::new();
        let mut browser = Self {
            child,
            orders,
            answers,
            events,
            session: None,
            last_id: 0,
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = Some(session["sessionId"].as_str().unwrap().to_owned());
        browser.call("Page.enable", json!({}));
        browser
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let mut order = json!({ "id": self.last_id, "method": method, "params": params });
        if let Some(session) = &self.session {
            order["sessionId"] = json!(session);
        }
        self.orders
            .write_all(format!("{order}\0").as_bytes())
            .unwrap();
        loop {
            let mut answer = self.answers.recv_timeout(MINUTE).expect(method);
            if answer["id"] == self.last_id {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].take();
            }
            self.events.push_back(answer);
        }
    }

    /// Waits for an event of this name.
    fn wait(&mut self, method: &str) {
        while let Some(event) = self.events.pop_front() {
            if event["method"] == method {
                return;
            }
        }
        while self.answers.recv_timeout(MINUTE).expect(method)["method"] != method {}
    }

    fn open(&mut self, url: &str) {
        self.events.clear();
        let opened = self.call("Page.navigate", json!({ "url": url }));
        assert!(opened["errorText"].is_null(), "{opened}");
        self.wait("Page.loadEventFired");
    }

    /// The value of an expression, or of its promise.
    fn eval(&mut self, expression: &str) -> Value {
        let options =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut answer = self.call("Runtime.evaluate", options);
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].take()
    }

    fn text(&mut self, selector: &str) -> String {
        let text = self.eval(&format!(
            "document.querySelector({})?.innerText",
            json!(selector)
        ));
        let page = || selector.to_owned();
        text.as_str()
            .map_or_else(page, |text| text.trim().to_owned())
    }

    /// Waits until an expression is true.
    fn until(&mut self, expression: &str) {
        let promise = format!(
            "new Promise((done) => {{ const look = () => {{ if ({expression}) done(true); }}; \
             new MutationObserver(look).observe(document, {{ subtree: true, childList: true, characterData: true }}); look(); }})"
        );
        self.eval(&promise);
    }

    /// Clicks what a person finds under this name. Waits for the next page, if it is a link or sends
    /// a form.
    fn click(&mut self, name: &str) {
        self.events.clear();
        let find = format!(
            "(() => {{ const name = {}; const found = [...document.querySelectorAll('a, button, summary')]\
             .find((e) => (e.getAttribute('aria-label') ?? e.innerText).trim() === name);\
             if (!found) return 'nothing is called ' + name + ' in ' + document.body.innerText;\
             const leaves = found.href?.split('#')[0] !== location.href.split('#')[0] && found.href || found.form;\
             setTimeout(() => found.click()); return leaves ? 'leaves' : 'stays'; }})()",
            json!(name)
        );
        let found = self.eval(&find);
        match found.as_str() {
            Some("leaves") => self.wait("Page.loadEventFired"),
            Some("stays") => {
                self.eval("new Promise((done) => setTimeout(done))");
            }
            _ => panic!("{found}"),
        }
    }

    fn fill(&mut self, selector: &str, value: &str) {
        let fill = format!(
            "document.querySelector({}).value = {}",
            json!(selector),
            json!(value)
        );
        assert_eq!(self.eval(&fill), *value);
    }

    fn search(&mut self, text: &str) {
        self.fill("[name=search]", text);
        self.click("Search");
    }
}

/// The messages that a browser writes, each with a zero byte at its end.
fn read(answers: ChildStdout) -> Receiver<Value> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for message in BufReader::new(answers).split(0) {
            let message = serde_json::from_slice(&message.unwrap()).unwrap();
            if sender.send(message).is_err() {
                break;
            }
        }
    });
    receiver
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
