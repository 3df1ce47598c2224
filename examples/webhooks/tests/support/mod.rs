//! The program, a client, and receivers; all on loopback.

pub mod etcd;
pub mod postgres;
pub mod proxy;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderMap, LOCATION};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use serde_json::Value;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// Longer than any test waits unless something is broken.
pub const BROKEN_AFTER: Duration = Duration::from_secs(120);

/// The program, with a database of its own.
pub struct Service {
    child: Child,
    pub address: SocketAddr,
}

/// A folder for a database, and for what the program says.
pub struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    /// A place on a certain disk.
    pub fn within(folder: &Path) -> Self {
        let folder = tempfile::tempdir_in(folder).unwrap();
        Self { folder }
    }

    /// Starts the program and waits until it listens. What it says follows what it said before.
    pub fn start(&self, options: &[&str]) -> Service {
        self.start_as(Command::new(env!("CARGO_BIN_EXE_webhooks")), options)
    }

    /// Starts the program with so many file descriptors.
    pub fn start_with_files(&self, files: u32, options: &[&str]) -> Service {
        let mut command = Command::new("sh");
        let script = format!("ulimit -n {files} && exec \"$0\" \"$@\"");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_webhooks")]);
        self.start_as(command, options)
    }

    /// Starts the program on another database than its own.
    pub fn start_on(&self, database: &str, options: &[&str]) -> Service {
        let command = Command::new(env!("CARGO_BIN_EXE_webhooks"));
        self.run(command, OsStr::new(database), options)
    }

    fn start_as(&self, command: Command, options: &[&str]) -> Service {
        self.run(command, self.database().as_os_str(), options)
    }

    fn run(&self, command: Command, database: &OsStr, options: &[&str]) -> Service {
        let mut child = self.spawn(command, database, options);
        let mut said = String::new();
        let stdout = BufReader::new(child.stdout.as_mut().unwrap());
        stdout.take(1000).read_line(&mut said).unwrap();
        let address = said.trim().strip_prefix("listening on http://");
        let address = address.unwrap_or_else(|| panic!("{said:?}, {}", self.said()));
        Service {
            address: address.parse().unwrap(),
            child,
        }
    }

    /// Starts the program on a database, and does not wait until it listens. Its address is not
    /// known.
    pub fn begin_on(&self, database: &str, options: &[&str]) -> Service {
        let command = Command::new(env!("CARGO_BIN_EXE_webhooks"));
        Service {
            child: self.spawn(command, OsStr::new(database), options),
            address: SocketAddr::from(([0; 4], 0)),
        }
    }

    fn spawn(&self, mut command: Command, database: &OsStr, options: &[&str]) -> Child {
        let errors = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.errors())
            .unwrap();
        command
            .args(["--listen", "127.0.0.1:0", "--database"])
            .arg(database)
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .unwrap()
    }

    pub fn database(&self) -> PathBuf {
        self.path("webhooks.sqlite")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Everything the program has said on stderr.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.errors()).unwrap_or_default()
    }

    fn errors(&self) -> PathBuf {
        self.path("stderr")
    }
}

impl Service {
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// As `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a signal, such as `STOP`.
    pub fn signal(&self, name: &str) {
        let command = format!("kill -{name} {}", self.child.id());
        let status = Command::new("sh").args(["-c", &command]).status().unwrap();
        assert!(status.success());
    }

    /// As `kill`, and waits for its end; receivers may be at work meanwhile.
    pub async fn terminate(self) -> ExitStatus {
        self.signal("TERM");
        self.ended().await
    }

    /// Waits for its end.
    pub async fn ended(mut self) -> ExitStatus {
        let wait = move || self.child.wait().unwrap();
        tokio::task::spawn_blocking(wait).await.unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // A test that fails leaves no program behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer of the program: JSON, or text as a JSON string.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub json: Value,
}

/// A client of the program.
#[derive(Clone)]
pub struct User {
    client: Client<HttpConnector, Full<Bytes>>,
}

impl User {
    pub fn new() -> Self {
        // Shorter than the program keeps a connection: otherwise both may end it at one moment.
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(5))
            .build_http();
        Self { client }
    }

    /// Asks; an error says that there was no answer.
    pub async fn ask(
        &self,
        address: SocketAddr,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Result<Answer, String> {
        let mut request = Request::new(Full::new(body.into()));
        *request.method_mut() = method;
        *request.uri_mut() = format!("http://{address}{path}").parse().unwrap();
        let answer = self.client.request(request).await;
        let (head, body) = answer.map_err(|error| error.to_string())?.into_parts();
        let body = body.collect().await.map_err(|error| error.to_string())?;
        let text = String::from_utf8(body.to_bytes().to_vec()).unwrap();
        let json = serde_json::from_str(&text);
        Ok(Answer {
            status: head.status,
            json: json.unwrap_or(Value::String(text)),
        })
    }

    pub async fn get(&self, service: &Service, path: &str) -> Answer {
        let asked = self.ask(service.address, Method::GET, path, "");
        asked.await.unwrap()
    }

    pub async fn put(&self, service: &Service, path: &str, json: &Value) -> Answer {
        let asked = self.ask(service.address, Method::PUT, path, json.to_string());
        asked.await.unwrap()
    }

    /// Subscribes a receiver, which is owed every object.
    pub async fn subscribe(&self, service: &Service, id: &str, receiver: &Receiver) {
        let json = serde_json::json!({ "url": receiver.url() });
        let answer = self
            .put(service, &format!("/subscriptions/{id}"), &json)
            .await;
        assert!(answer.status.is_success(), "{answer:?}");
    }

    /// Changes objects `o0`, `o1` and so on, many at a time.
    pub async fn put_objects(&self, service: &Service, count: u64, json: &Value) {
        const WRITERS: u64 = 32;
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let (user, address, body) = (self.clone(), service.address, json.to_string());
            writers.spawn(async move {
                for object in (writer..count).step_by(WRITERS as usize) {
                    let path = format!("/objects/o{object}");
                    let answer = user.ask(address, Method::PUT, &path, body.clone()).await;
                    assert!(answer.unwrap().status.is_success());
                }
            });
        }
        writers.join_all().await;
    }

    pub async fn delete(&self, service: &Service, path: &str) -> Answer {
        let asked = self.ask(service.address, Method::DELETE, path, "");
        asked.await.unwrap()
    }

    /// How many deliveries are owed.
    pub async fn owed(&self, service: &Service, state: &str) -> u64 {
        let path = format!("/deliveries?state={state}&limit=0");
        let answer = self.get(service, &path).await;
        answer.json["total"].as_u64().unwrap()
    }

    /// Waits until the keys of the queue make this true, at the service's pace.
    pub async fn until_queued(&self, service: &Service, is_true: impl Fn(&[Value]) -> bool) {
        let wait = async {
            loop {
                let queue = self.get(service, &window("keys?limit=200")).await;
                if is_true(queue.json["keys"].as_array().unwrap()) {
                    return;
                }
                self.second(service).await;
            }
        };
        tokio::time::timeout(BROKEN_AFTER, wait).await.unwrap();
    }

    /// Waits until nothing is pending any more, at the service's pace.
    pub async fn settled(&self, service: &Service) {
        let settle = async {
            while self.owed(service, "pending").await > 0 {
                self.second(service).await;
            }
        };
        tokio::time::timeout(BROKEN_AFTER, settle).await.unwrap();
    }

    /// Waits for the second event of the window, which comes a second after the first.
    pub async fn second(&self, service: &Service) {
        let url = service.url(&window("events")).parse().unwrap();
        let mut body = self.client.get(url).await.unwrap().into_body();
        for _ in 0..2 {
            body.frame().await.unwrap().unwrap();
        }
    }
}

/// A path of the window's JSON about the queue.
pub fn window(path: &str) -> String {
    format!("/window/api/queues/webhooks/{path}")
}

/// How a receiver behaves.
#[derive(Clone)]
pub enum Manner {
    /// It takes everything at once.
    Steady,
    /// Of three deliveries of an object it hangs up on one, refuses one, and takes one.
    Flaky,
    /// It takes a delivery when it gets a permit.
    Slow(Arc<Semaphore>),
    /// The same for one of its paths. It takes everything else at once.
    SlowPath(&'static str, Arc<Semaphore>),
    /// It refuses a delivery while this is true.
    Down(Arc<AtomicBool>),
    /// It redirects every delivery.
    Redirecting(String),
}

/// A receiver of deliveries.
pub struct Receiver {
    pub address: SocketAddr,
    seen: Arc<Seen>,
}

struct Seen {
    manner: Manner,
    /// The greatest version of each object, and what came with it.
    newest: Mutex<HashMap<String, (u64, Value)>>,
    /// What each try is called.
    ids: Mutex<Vec<String>>,
    /// The last delivery as it came.
    last: Mutex<(HeaderMap, Bytes)>,
    /// How often each object came.
    tried: Mutex<HashMap<String, u64>>,
    /// How many were taken.
    taken: watch::Sender<u64>,
    calls: watch::Sender<Calls>,
}

/// How often a receiver was called.
#[derive(Clone, Copy, Debug, Default)]
pub struct Calls {
    /// Calls that it has not answered yet.
    pub now: u64,
    /// The most of these that there were at one time.
    pub most: u64,
    pub total: u64,
}

impl Receiver {
    pub async fn new(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen {
            manner,
            newest: Mutex::default(),
            ids: Mutex::default(),
            last: Mutex::default(),
            tried: Mutex::default(),
            taken: watch::Sender::default(),
            calls: watch::Sender::default(),
        });
        tokio::spawn(listen(listener, Arc::clone(&seen)));
        Self { address, seen }
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook?token=hush", self.address)
    }

    pub fn taken(&self) -> u64 {
        *self.seen.taken.borrow()
    }

    pub fn tried(&self) -> u64 {
        self.seen.tried.lock().unwrap().values().sum()
    }

    pub fn calls(&self) -> Calls {
        *self.seen.calls.borrow()
    }

    /// Waits until its calls make this true.
    pub async fn until_called(&self, what: &str, is_true: impl Fn(Calls) -> bool) {
        let mut calls = self.seen.calls.subscribe();
        let wait = calls.wait_for(|calls| is_true(*calls));
        let waited = tokio::time::timeout(BROKEN_AFTER, wait).await.map(drop);
        assert!(waited.is_ok(), "never {what}: {:?}", self.calls());
    }

    /// What it knows of an object: version and data.
    pub fn knows(&self, object: &str) -> Option<(u64, Value)> {
        self.seen.newest.lock().unwrap().get(object).cloned()
    }

    pub fn knows_count(&self) -> usize {
        self.seen.newest.lock().unwrap().len()
    }

    pub fn authorization(&self) -> Option<String> {
        let (headers, _) = self.last();
        let value = headers.get(AUTHORIZATION)?;
        Some(value.to_str().unwrap().into())
    }

    /// The id of each try.
    pub fn ids(&self) -> Vec<String> {
        self.seen.ids.lock().unwrap().clone()
    }

    /// Headers and body of the last delivery that it took.
    pub fn last(&self) -> (HeaderMap, Bytes) {
        self.seen.last.lock().unwrap().clone()
    }

    /// Waits until it has taken something that makes this true.
    pub async fn until(&self, what: &str, is_true: impl Fn(&Self) -> bool) {
        let mut taken = self.seen.taken.subscribe();
        // Not with `wait_for`, which locks `taken` meanwhile: `is_true` may read it.
        let wait = async {
            while !is_true(self) {
                taken.changed().await.unwrap();
            }
        };
        let waited = tokio::time::timeout(BROKEN_AFTER, wait).await;
        assert!(waited.is_ok(), "never {what}");
    }
}

async fn listen(listener: TcpListener, seen: Arc<Seen>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(converse(stream, Arc::clone(&seen)));
    }
}

async fn converse(stream: TcpStream, seen: Arc<Seen>) {
    let service = service_fn(|request| {
        let seen = Arc::clone(&seen);
        async move { seen.receive(request).await }
    });
    // A client that was killed leaves in the middle.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

impl Seen {
    /// An error hangs up.
    async fn receive(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, String> {
        let _call = Call::begin(&self.calls);
        let (head, body) = request.into_parts();
        let id = head.headers["webhook-id"].to_str().unwrap().to_owned();
        self.ids.lock().unwrap().push(id);
        let body = body.collect().await.map_err(|error| error.to_string())?;
        let body = body.to_bytes();
        let json: Value = serde_json::from_slice(&body).unwrap();
        let object = json["object"].as_str().unwrap();
        let tried = self.try_once_more(object);
        let mut response = Response::new(Full::default());
        match &self.manner {
            Manner::Flaky if tried % 3 == 1 => return Err("on a whim".into()),
            Manner::Flaky if tried % 3 == 2 => {
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                return Ok(response);
            }
            Manner::Down(is_down) if is_down.load(Ordering::SeqCst) => {
                *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                return Ok(response);
            }
            Manner::Redirecting(url) => {
                *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
                response
                    .headers_mut()
                    .insert(LOCATION, url.parse().unwrap());
                return Ok(response);
            }
            Manner::Slow(permits) => permits.acquire().await.unwrap().forget(),
            Manner::SlowPath(path, permits) if head.uri.path() == *path => {
                permits.acquire().await.unwrap().forget();
            }
            Manner::Steady | Manner::Flaky | Manner::SlowPath(..) | Manner::Down(_) => {}
        }
        self.take(&json);
        *self.last.lock().unwrap() = (head.headers, body);
        self.taken.send_modify(|taken| *taken += 1);
        Ok(response)
    }

    fn try_once_more(&self, object: &str) -> u64 {
        let mut tried = self.tried.lock().unwrap();
        let tried = tried.entry(object.to_owned()).or_default();
        *tried += 1;
        *tried
    }

    fn take(&self, json: &Value) {
        let object = json["object"].as_str().unwrap().to_owned();
        let version = json["version"].as_u64().unwrap();
        let mut newest = self.newest.lock().unwrap();
        let known = newest.entry(object).or_default();
        if version >= known.0 {
            *known = (version, json["data"].clone());
        }
    }
}

/// A call that counts until it is answered, or its caller has gone.
struct Call<'s>(&'s watch::Sender<Calls>);

impl<'s> Call<'s> {
    fn begin(calls: &'s watch::Sender<Calls>) -> Self {
        calls.send_modify(|calls| {
            calls.now += 1;
            calls.most = calls.most.max(calls.now);
            calls.total += 1;
        });
        Self(calls)
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|calls| calls.now -= 1);
    }
}

/// An address whose port is taken and has no server, as long as this is held.
pub struct Dead {
    _socket: TcpSocket,
    pub url: String,
}

impl Dead {
    pub fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let url = format!("http://{}/hook?token=hush", socket.local_addr().unwrap());
        Self {
            _socket: socket,
            url,
        }
    }
}

/// Asserts that a text contains no secret.
#[track_caller]
pub fn assert_no_secret(text: &str, place: &Path) {
    assert!(!text.contains("hush"), "{}: {text}", place.display());
}
