//! The window over HTTP: pages, JSON, events, and orders. Owns who may ask and who may change; never
//! what a queue answers.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::pin::Pin;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use axum::extract::rejection::{FormRejection, JsonRejection, QueryRejection};
use axum::extract::{ConnectInfo, Form, OriginalUri, Path, Query, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::sse::{Event, KeepAlive, KeepAliveStream, Sse};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use futures_util::stream::{self, Stream};
use maud::Markup;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Interval, MissedTickBehavior, interval};
use utoipa::{IntoParams, OpenApi, ToSchema};

use crate::inspector::{ControlError, Inspect};
use crate::page;
use crate::registry::Registry;
use crate::text::{Shown, millis};
use crate::view::{
    Command, DeadKeyView, EndView, GroupPage, KeyDetail, KeyPage, KeyQuery, Limits, QueueView,
    Rate, RunView, Sample,
};

/// How many events streams may be open at once.
const STREAMS_MAX: usize = 64;
/// How many samples a picture has: five minutes.
const SAMPLES_MAX: usize = 300;
/// How many actions are remembered.
const ACTIONS_MAX: usize = 50;
/// The largest body of an order.
const BODY_MAX: usize = 64 * 1024;

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Who may ask, and who may change.
#[derive(Default)]
pub(crate) struct Access {
    control: bool,
    hosts: Vec<String>,
    user_header: Option<HeaderName>,
}

/// The page and the JSON. For programs that serve HTTP anyway, [`router`](Registry::router); for
/// all others, [`listen`](Registry::listen).
impl Registry {
    /// Lets visitors change the queues: expedite, cancel, retry, drop, pause, and set limits and the
    /// number of workers. Without this they only look. O(1).
    ///
    /// A change needs the token that the pages and `/api/queues` contain, and a site elsewhere cannot
    /// read. If a request has an `Origin`, its name must be that of the `Host`. **Neither says who
    /// somebody is**: everybody who can open the page can use it. Let it listen on the loopback
    /// address, or put your own login in front of the router.
    #[must_use = "this returns the registry that allows control"]
    pub fn allow_control(mut self) -> Self {
        self.access.control = true;
        self
    }

    /// Answers to this host name, with any port. Without it the window answers to `localhost` and to
    /// addresses, because a site elsewhere can have its own name resolve to this machine. A proxy in
    /// front must pass on the `Host`. It may add TLS. O(1).
    #[must_use = "this returns the registry that answers to the name"]
    pub fn allow_host(mut self, name: impl Into<String>) -> Self {
        self.access.hosts.push(name.into().to_ascii_lowercase());
        self
    }

    /// Logs actions with the user that this header names. Set it only if a proxy in front sets the header,
    /// and removes it from requests. Without it actions are logged with the address of the client. O(1).
    #[must_use = "this returns the registry that reads the header"]
    pub fn user_header(mut self, name: HeaderName) -> Self {
        self.access.user_header = Some(name);
        self
    }

    /// Returns the window as a router, to be nested into another at any path. Needs a Tokio runtime
    /// when it is called, whose blocking threads look at the queues.
    ///
    /// A task counts what the picture shows, once a second, until the router is dropped.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// use axum::Router;
    /// use requeue::tokio::WorkQueue;
    /// use requeue_inspect::{Inspector, Registry};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let queue: WorkQueue<String> = WorkQueue::new();
    /// let registry = Registry::new().with(Inspector::new("pods", &queue));
    /// let app: Router = Router::new().nest("/queues", registry.router());
    /// # let _ = app;
    /// # }
    /// ```
    pub fn router(self) -> Router {
        let app = App::new(self);
        tokio::spawn(App::sample(Arc::downgrade(&app)));
        routes(app)
    }

    /// Serves the window on an address of its own, from a thread of its own, until the listener is
    /// dropped. For programs with and without Tokio. Binds before it returns.
    ///
    /// # Errors
    ///
    /// The address cannot be bound, or the thread cannot be started.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::std::WorkQueue;
    /// use requeue_inspect::{Inspector, Registry};
    ///
    /// let queue: WorkQueue<String> = WorkQueue::new();
    /// let registry = Registry::new().with(Inspector::new("pods", &queue));
    /// let listener = registry.listen("127.0.0.1:0").unwrap();
    /// println!("http://{}/", listener.address());
    /// ```
    pub fn listen(self, address: impl ToSocketAddrs) -> io::Result<Listener> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .thread_name("requeue-inspect")
            .build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let serve = move || {
            runtime.block_on(async {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
                    return;
                };
                let service = self
                    .router()
                    .into_make_service_with_connect_info::<SocketAddr>();
                tokio::spawn(async move { axum::serve(listener, service).await });
                // An error says that the listener was dropped.
                let _ = stopped.await;
            });
            // Streams of events stay open for as long as their readers want.
            runtime.shutdown_background();
        };
        thread::Builder::new()
            .name("requeue-inspect".to_owned())
            .spawn(serve)?;
        Ok(Listener {
            address,
            _stop: stop,
        })
    }
}

/// A window that is served: returned by [`Registry::listen`]. Stops when it is dropped.
#[derive(Debug)]
#[must_use = "the window is closed when this is dropped"]
pub struct Listener {
    address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

impl Listener {
    /// Returns the address, with the port that was chosen. O(1).
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// What the handlers share.
pub(crate) struct App {
    pub(crate) registry: Registry,
    /// What a change has to know. Absent if nothing may be changed.
    pub(crate) token: Option<String>,
    /// The samples of each queue, in the order of the registry.
    samples: Mutex<Vec<VecDeque<Sample>>>,
    actions: Mutex<VecDeque<(Action, Instant)>>,
    streams: Arc<Semaphore>,
    /// A search goes through all keys: one at a time.
    searches: Arc<Semaphore>,
}

/// Something that somebody did.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Action {
    /// The user, or the address.
    pub(crate) who: String,
    /// The queue.
    pub(crate) queue: String,
    /// The order, as JSON.
    pub(crate) what: String,
    /// What came of it.
    pub(crate) outcome: String,
    /// How long ago, in milliseconds.
    pub(crate) ago_ms: u64,
}

impl App {
    fn new(registry: Registry) -> Arc<Self> {
        let queues = registry.queues().count();
        Arc::new(Self {
            token: registry.access.control.then(token).flatten(),
            registry,
            samples: Mutex::new(vec![VecDeque::new(); queues]),
            actions: Mutex::default(),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            searches: Arc::new(Semaphore::new(1)),
        })
    }

    /// Takes a sample of each queue every second, for as long as anybody can ask for them.
    async fn sample(app: Weak<Self>) {
        let mut seconds = interval(Duration::from_secs(1));
        seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut totals: Vec<Option<(u64, u64)>> = Vec::new();
        for seq in 0.. {
            seconds.tick().await;
            let Some(app) = app.upgrade() else {
                return;
            };
            totals.resize(app.registry.queues().count(), None);
            let mut samples = lock(&app.samples);
            for ((queue, ring), total) in app.registry.queues().zip(&mut *samples).zip(&mut totals)
            {
                let view = queue.view();
                let (runs, failures) = total.unwrap_or((view.runs, view.failures));
                *total = Some((view.runs, view.failures));
                ring.push_back(Sample {
                    seq,
                    ready: view.ready,
                    active: view.active,
                    delayed: view.delayed,
                    runs: view.runs - runs,
                    failures: view.failures - failures,
                });
                if ring.len() > SAMPLES_MAX {
                    ring.pop_front();
                }
            }
        }
    }

    pub(crate) fn samples(&self, name: &str) -> Vec<Sample> {
        let at = self
            .registry
            .queues()
            .position(|queue| queue.name() == name);
        let samples = lock(&self.samples);
        let ring = at.and_then(|at| samples.get(at));
        ring.map(|ring| ring.iter().copied().collect())
            .unwrap_or_default()
    }

    /// The last actions, the latest first.
    pub(crate) fn actions(&self) -> Vec<Action> {
        let actions = lock(&self.actions);
        let view = |(action, at): &(Action, Instant)| Action {
            ago_ms: millis(at.elapsed()),
            ..action.clone()
        };
        actions.iter().rev().map(view).collect()
    }

    fn queue(&self, name: &str) -> Result<&dyn Inspect, Problem> {
        self.registry.queue(name).ok_or_else(|| {
            let message = format!("there is no queue named `{}` here", Shown(name));
            Problem(StatusCode::NOT_FOUND, message)
        })
    }

    /// Asks a queue on a thread that may wait for its lock.
    async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        name: &str,
        ask: impl FnOnce(&Self, &dyn Inspect) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let (app, name) = (Arc::clone(self), name.to_owned());
        let asked = tokio::task::spawn_blocking(move || ask(&app, app.queue(&name)?));
        asked.await.unwrap_or_else(|_| {
            let message = "the queue could not be looked at: a key's own code panicked";
            Err(Problem(
                StatusCode::INTERNAL_SERVER_ERROR,
                message.to_owned(),
            ))
        })
    }

    /// The same for what may go through all keys.
    async fn search<T: Send + 'static>(
        self: &Arc<Self>,
        name: &str,
        ask: impl FnOnce(&Self, &dyn Inspect) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        // Goes to the thread, so that the next search waits for it even if nobody waits for this.
        let turn = Arc::clone(&self.searches).acquire_owned().await;
        self.ask(name, move |app, queue| {
            let _turn = turn;
            ask(app, queue)
        })
        .await
    }

    /// Does what somebody asks for, and logs it.
    fn order(
        &self,
        queue: &dyn Inspect,
        who: String,
        command: &Command,
    ) -> Result<String, Problem> {
        let done = queue.control(command);
        let what = serde_json::to_string(command).unwrap_or_default();
        let outcome = match &done {
            Ok(done) => done.clone(),
            Err(why) => why.to_string(),
        };
        #[cfg(feature = "tracing")]
        tracing::info!(target: "requeue_inspect", queue = queue.name(), who, what, outcome, "action");
        let action = Action {
            who,
            queue: queue.name().to_owned(),
            what,
            outcome,
            ago_ms: 0,
        };
        let mut actions = lock(&self.actions);
        actions.push_back((action, Instant::now()));
        if actions.len() > ACTIONS_MAX {
            actions.pop_front();
        }
        drop(actions);
        done.map_err(|why| {
            let status = match why {
                ControlError::NoKey | ControlError::NoGroup | ControlError::NotDead => {
                    StatusCode::NOT_FOUND
                }
                _ => StatusCode::CONFLICT,
            };
            Problem(status, why.to_string())
        })
    }

    /// Checks a change, and returns who asks for it.
    fn authorize(
        &self,
        headers: &HeaderMap,
        peer: Option<SocketAddr>,
        token: &str,
    ) -> Result<String, Problem> {
        let refuse = |why: &str| Problem(StatusCode::FORBIDDEN, why.to_owned());
        let own = self.token.as_deref();
        let own = own
            .ok_or_else(|| refuse("this window only looks: the program does not allow control"))?;
        if let Some(origin) = headers.get(ORIGIN)
            && !is_same(origin, headers.get(HOST))
        {
            return Err(refuse(
                "a page from another origin may not change anything here",
            ));
        }
        // As long for every token of this length.
        let differences = own
            .bytes()
            .zip(token.bytes())
            .fold(0, |all, (a, b)| all | (a ^ b));
        if own.len() != token.len() || differences != 0 {
            return Err(refuse(
                "the token is wrong: load the page again, it may be from an earlier run",
            ));
        }
        let header = self.registry.access.user_header.as_ref();
        let user = header.and_then(|name| headers.get(name)?.to_str().ok());
        let address = peer.map(|peer| peer.ip().to_canonical().to_string());
        Ok(user
            .map(str::to_owned)
            .or(address)
            .unwrap_or_else(|| "somebody".to_owned()))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// 32 random bytes. `None` if the system gives none: then nothing may be changed.
fn token() -> Option<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Why a request has no answer: a sentence.
#[derive(Clone, Debug)]
pub(crate) struct Problem(StatusCode, String);

/// What the JSON says of a [`Problem`].
#[derive(Debug, Serialize, ToSchema)]
struct ErrorBody {
    /// A sentence.
    error: String,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let error = self.1.clone();
        let mut response = (self.0, Json(ErrorBody { error })).into_response();
        response.extensions_mut().insert(self);
        response
    }
}

macro_rules! rejections {
    ($($rejection:ty)+) => {$(
        impl From<$rejection> for Problem {
            fn from(why: $rejection) -> Self {
                Self(why.status(), why.body_text())
            }
        }
    )+};
}
rejections! { QueryRejection JsonRejection FormRejection }

/// Where the window is mounted: the path before its own.
#[derive(Clone, Debug)]
pub(crate) struct Base(String);

impl Base {
    fn of(original: &Uri, own: &Uri) -> Self {
        let path = original.path();
        let base = path.strip_suffix(own.path()).unwrap_or(path);
        Self(base.trim_end_matches('/').to_owned())
    }

    /// The path of a file or page of the window.
    pub(crate) fn path(&self, own: &str) -> String {
        match own {
            // A nested router is not found under its path with a slash.
            "" if !self.0.is_empty() => self.0.clone(),
            own => format!("{}/{own}", self.0),
        }
    }

    pub(crate) fn queue(&self, name: &str) -> String {
        self.path(&format!("queues/{}", encode(name)))
    }

    pub(crate) fn key(&self, name: &str, id: &str) -> String {
        format!("{}/key?id={}", self.queue(name), encode(id))
    }
}

/// As a part of a path or a query.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// Checks the host, and dresses the answer: its policies, and a page for a problem.
async fn guard(
    State(app): State<Arc<App>>,
    OriginalUri(original): OriginalUri,
    request: Request,
    next: Next,
) -> Response {
    let base = Base::of(&original, request.uri());
    let is_page = !request.uri().path().starts_with("/api/");
    let answer = match app.check_host(request.headers(), request.uri()) {
        Ok(()) => {
            let mut request = request;
            request.extensions_mut().insert(base.clone());
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    };
    let mut answer = match answer.extensions().get::<Problem>() {
        Some(Problem(status, why)) if is_page => {
            (*status, page::problem(&base, why)).into_response()
        }
        _ => answer,
    };
    let headers = answer.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Without the referrer a browser would not name the origin of a form, either.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    answer
}

impl App {
    /// A site can have its own name resolve to this address, but cannot make a browser send the
    /// address as the name.
    fn check_host(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Problem> {
        let mut hosts = headers.get_all(HOST).iter().map(HeaderValue::to_str);
        let named = uri.authority().map(|authority| authority.as_str());
        let (header, more) = (hosts.next(), hosts.next());
        let authority = match (named, header, more) {
            (Some(named), ..) => Some(named),
            (None, Some(Ok(header)), None) => Some(header),
            _ => None,
        };
        let authority = authority.and_then(|text| text.parse::<Authority>().ok());
        let authority = authority.ok_or_else(|| {
            Problem(
                StatusCode::BAD_REQUEST,
                "one Host header has to name this window".to_owned(),
            )
        })?;
        let host = authority.host().to_ascii_lowercase();
        let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        if is_address || host == "localhost" || self.registry.access.hosts.contains(&host) {
            return Ok(());
        }
        let message = format!(
            "this window does not answer to the name `{}`: the program has to allow it",
            Shown(&host)
        );
        Err(Problem(StatusCode::MISDIRECTED_REQUEST, message))
    }
}

/// Whether an `Origin` is the page that this `Host` serves. A proxy in front may add TLS.
fn is_same(origin: &HeaderValue, host: Option<&HeaderValue>) -> bool {
    let text = origin
        .to_str()
        .ok()
        .zip(host.and_then(|host| host.to_str().ok()));
    text.is_some_and(|(origin, host)| {
        let name = origin.split_once("://").map(|(_, name)| name);
        name.is_some_and(|name| name.eq_ignore_ascii_case(host))
    })
}

fn routes(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/queues/{queue}", get(queue))
        .route("/queues/{queue}/live", get(queue_live))
        .route("/queues/{queue}/key", get(key))
        .route("/queues/{queue}/key/live", get(key_live))
        .route("/queues/{queue}/control", post(control))
        .route(
            "/style.css",
            get(async || asset("text/css", include_str!("page/style.css"))),
        )
        .route(
            "/script.js",
            get(async || asset("text/javascript", include_str!("page/script.js"))),
        )
        .route("/api/queues", get(api_queues))
        .route("/api/queues/{queue}", get(api_queue))
        .route("/api/queues/{queue}/events", get(api_events))
        .route("/api/queues/{queue}/samples", get(api_samples))
        .route("/api/queues/{queue}/keys", get(api_keys))
        .route("/api/queues/{queue}/key", get(api_key))
        .route("/api/queues/{queue}/runs", get(api_runs))
        .route("/api/queues/{queue}/ends", get(api_ends))
        .route("/api/queues/{queue}/dead", get(api_dead))
        .route("/api/queues/{queue}/groups", get(api_groups))
        .route("/api/queues/{queue}/control", post(api_control))
        .route("/api/actions", get(api_actions))
        .route("/api/openapi.json", get(async || Json(Document::openapi())))
        .fallback(async || Problem(StatusCode::NOT_FOUND, "there is no such page".to_owned()))
        .method_not_allowed_fallback(async || {
            Problem(
                StatusCode::METHOD_NOT_ALLOWED,
                "this is read with GET, and changed with POST".to_owned(),
            )
        })
        .layer(axum::extract::DefaultBodyLimit::max(BODY_MAX))
        .layer(from_fn_with_state(Arc::clone(&app), guard))
        .with_state(app)
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    let headers = [(CONTENT_TYPE, kind), (CACHE_CONTROL, "max-age=3600")];
    (headers, text).into_response()
}

type AppState = State<Arc<App>>;
type Answer<T> = Result<T, Problem>;

async fn index(State(app): AppState, Extension(base): Extension<Base>) -> Markup {
    page::index(&app, &base)
}

async fn queue(
    State(app): AppState,
    Extension(base): Extension<Base>,
    Path(name): Path<String>,
    query: Result<Query<KeyQuery>, QueryRejection>,
) -> Answer<Markup> {
    let query = query?.0;
    // Without them only the first keys are looked at.
    let is_search = query
        != KeyQuery {
            offset: query.offset,
            limit: query.limit,
            ..KeyQuery::default()
        };
    let render = move |app: &App, queue: &dyn Inspect| {
        let keys = queue.keys(&query);
        Ok(page::queue(app, &base, queue, &query, &keys))
    };
    match is_search {
        true => app.search(&name, render).await,
        false => app.ask(&name, render).await,
    }
}

async fn queue_live(
    State(app): AppState,
    Extension(base): Extension<Base>,
    Path(name): Path<String>,
) -> Answer<Events> {
    app.events(name, move |app, queue| {
        Ok(page::queue_live(app, &base, queue).into_string())
    })
}

/// Which key is meant.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Id {
    /// The id.
    id: String,
}

async fn key(
    State(app): AppState,
    Extension(base): Extension<Base>,
    Path(name): Path<String>,
    id: Result<Query<Id>, QueryRejection>,
) -> Answer<Markup> {
    let id = id?.0.id;
    app.search(&name, move |app, queue| {
        let detail = detail(queue, &id)?;
        Ok(page::key(app, &base, queue, &detail))
    })
    .await
}

async fn key_live(
    State(app): AppState,
    Extension(base): Extension<Base>,
    Path(name): Path<String>,
    id: Result<Query<Id>, QueryRejection>,
) -> Answer<Events> {
    let id = id?.0.id;
    app.events(name, move |app, queue| {
        let detail = detail(queue, &id)?;
        Ok(page::key_live(app, &base, queue, &detail).into_string())
    })
}

fn detail(queue: &dyn Inspect, id: &str) -> Answer<KeyDetail> {
    queue.key(id).ok_or_else(|| {
        let message = format!(
            "the queue has no key `{}`, and none like it has run of late",
            Shown(id)
        );
        Problem(StatusCode::NOT_FOUND, message)
    })
}

type Events = Sse<KeepAliveStream<Pin<Box<dyn Stream<Item = Result<Event, Infallible>> + Send>>>>;

impl App {
    /// A stream of what a queue answers, once a second. An answer is made when the reader has room
    /// for it, so a slow reader gets fewer and holds no memory.
    fn events<T: Serialize + Send + 'static>(
        self: Arc<Self>,
        name: String,
        ask: impl Fn(&Self, &dyn Inspect) -> Answer<T> + Clone + Send + Sync + 'static,
    ) -> Answer<Events> {
        self.queue(&name)?;
        let place = Arc::clone(&self.streams).try_acquire_owned().map_err(|_| {
            let message = format!(
                "{STREAMS_MAX} readers of events are connected: that is all there is room for"
            );
            Problem(StatusCode::SERVICE_UNAVAILABLE, message)
        })?;
        let mut seconds = interval(Duration::from_secs(1));
        seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let reader = Reader {
            app: self,
            seconds,
            _place: place,
        };
        let next = move |mut reader: Reader| {
            let (name, ask) = (name.clone(), ask.clone());
            async move {
                reader.seconds.tick().await;
                let answer = reader.app.ask(&name, ask).await.ok()?;
                let event = Event::default().json_data(answer).ok()?;
                Some((Ok(event), reader))
            }
        };
        let events: Pin<Box<dyn Stream<Item = _> + Send>> = Box::pin(stream::unfold(reader, next));
        Ok(Sse::new(events).keep_alive(KeepAlive::default()))
    }
}

/// Somebody who reads events.
struct Reader {
    app: Arc<App>,
    seconds: Interval,
    _place: OwnedSemaphorePermit,
}

/// The fields of the forms. A field that an order does not need is empty. The id and the group are
/// percent-encoded, because a browser changes line ends and zero bytes in a form.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Fields {
    token: String,
    action: String,
    id: String,
    group: String,
    workers: String,
    max_active: String,
    weight: String,
    per_second: String,
    burst: String,
}

impl Fields {
    fn command(self) -> Answer<Command> {
        let (id, group) = (decode(&self.id)?, decode(&self.group)?);
        Ok(match &*self.action {
            "expedite" => Command::Expedite { id },
            "cancel" => Command::Cancel { id },
            "retry_dead" => Command::RetryDead { id },
            "drop_dead" => Command::DropDead { id },
            "pause" => Command::Pause,
            "unpause" => Command::Unpause,
            "pause_group" => Command::PauseGroup { group },
            "unpause_group" => Command::UnpauseGroup { group },
            "limit_group" => {
                let rate = match (number(&self.per_second)?, number(&self.burst)?) {
                    (None, None) => None,
                    (per_second, burst) => {
                        Some(Rate::new(per_second.unwrap_or(1.0), burst.unwrap_or(1)))
                    }
                };
                let limits = Limits {
                    max_active: number(&self.max_active)?,
                    weight: number(&self.weight)?,
                    rate,
                };
                Command::LimitGroup { group, limits }
            }
            "set_workers" => Command::SetWorkers {
                workers: number(&self.workers)?.ok_or_else(|| not_a_number(""))?,
            },
            other => {
                let message = format!("there is no action `{}`", Shown(other));
                return Err(Problem(StatusCode::BAD_REQUEST, message));
            }
        })
    }
}

fn decode(text: &str) -> Answer<String> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Cow::into_owned).map_err(|_| {
        let message = format!("`{}` is no text", Shown(text));
        Problem(StatusCode::BAD_REQUEST, message)
    })
}

/// The number in a field, `None` if it is empty.
fn number<T: FromStr>(text: &str) -> Answer<Option<T>> {
    let text = text.trim();
    let parsed = (!text.is_empty()).then(|| text.parse().map_err(|_| not_a_number(text)));
    parsed.transpose()
}

fn not_a_number(text: &str) -> Problem {
    Problem(
        StatusCode::BAD_REQUEST,
        format!("`{}` is not a number that fits here", Shown(text)),
    )
}

type Peer = Option<Extension<ConnectInfo<SocketAddr>>>;

async fn control(
    State(app): AppState,
    Extension(base): Extension<Base>,
    Path(name): Path<String>,
    peer: Peer,
    headers: HeaderMap,
    form: Result<Form<Fields>, FormRejection>,
) -> Answer<Redirect> {
    let fields = form?.0;
    let who = app.authorize(&headers, peer.map(|peer| peer.0.0), &fields.token)?;
    let command = fields.command()?;
    let back = app.search(&name, move |app, queue| {
        app.order(queue, who, &command)?;
        Ok(match &command {
            // To the page of the key, if that is still known.
            Command::Expedite { id } | Command::Cancel { id } if queue.key(id).is_some() => {
                base.key(queue.name(), id)
            }
            _ => base.queue(queue.name()),
        })
    });
    Ok(Redirect::to(&back.await?))
}

/// The queues of a program.
#[derive(Serialize, ToSchema)]
struct Queues {
    /// Each of them.
    queues: Vec<QueueView>,
    /// What `X-Requeue-Token` has to be for an order. Absent if nothing may be changed.
    token: Option<String>,
}

/// How many to return.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
struct Limit {
    /// At most 1,000.
    limit: usize,
}

impl Default for Limit {
    fn default() -> Self {
        Self { limit: 100 }
    }
}

impl Limit {
    fn get(self) -> usize {
        self.limit.min(1_000)
    }
}

type LimitQuery = Result<Query<Limit>, QueryRejection>;

/// What an order has done.
#[derive(Serialize, ToSchema)]
struct Done {
    /// A sentence.
    done: String,
}

/// All queues
#[utoipa::path(get, path = "/api/queues", responses((status = 200, body = Queues)))]
async fn api_queues(State(app): AppState) -> Json<Queues> {
    let queues = app.registry.queues().map(Inspect::view).collect();
    let token = app.token.clone();
    Json(Queues { queues, token })
}

/// One queue
#[utoipa::path(get, path = "/api/queues/{queue}", params(("queue" = String, Path)),
    responses((status = 200, body = QueueView), (status = 404, body = ErrorBody)))]
async fn api_queue(State(app): AppState, Path(name): Path<String>) -> Answer<Json<QueueView>> {
    app.ask(&name, |_, queue| Ok(Json(queue.view()))).await
}

/// One queue, once a second, as server-sent events whose data is that of `/api/queues/{queue}`
#[utoipa::path(get, path = "/api/queues/{queue}/events", params(("queue" = String, Path)),
    responses((status = 200, content_type = "text/event-stream", body = QueueView),
    (status = 404, body = ErrorBody), (status = 503, body = ErrorBody)))]
async fn api_events(State(app): AppState, Path(name): Path<String>) -> Answer<Events> {
    app.events(name, |_, queue| Ok(queue.view()))
}

/// The counts of the last five minutes, a second apart
#[utoipa::path(get, path = "/api/queues/{queue}/samples", params(("queue" = String, Path)),
    responses((status = 200, body = Vec<Sample>), (status = 404, body = ErrorBody)))]
async fn api_samples(State(app): AppState, Path(name): Path<String>) -> Answer<Json<Vec<Sample>>> {
    app.queue(&name)?;
    Ok(Json(app.samples(&name)))
}

/// Some of a queue's keys
#[utoipa::path(get, path = "/api/queues/{queue}/keys", params(("queue" = String, Path), KeyQuery),
    responses((status = 200, body = KeyPage), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody)))]
async fn api_keys(
    State(app): AppState,
    Path(name): Path<String>,
    query: Result<Query<KeyQuery>, QueryRejection>,
) -> Answer<Json<KeyPage>> {
    let query = query?.0;
    app.search(&name, move |_, queue| Ok(Json(queue.keys(&query))))
        .await
}

/// One key
#[utoipa::path(get, path = "/api/queues/{queue}/key", params(("queue" = String, Path), Id),
    responses((status = 200, body = KeyDetail), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody)))]
async fn api_key(
    State(app): AppState,
    Path(name): Path<String>,
    id: Result<Query<Id>, QueryRejection>,
) -> Answer<Json<KeyDetail>> {
    let id = id?.0.id;
    app.search(&name, move |_, queue| detail(queue, &id).map(Json))
        .await
}

/// The runs in progress, the oldest first
#[utoipa::path(get, path = "/api/queues/{queue}/runs", params(("queue" = String, Path), Limit),
    responses((status = 200, body = Vec<RunView>), (status = 404, body = ErrorBody)))]
async fn api_runs(
    State(app): AppState,
    Path(name): Path<String>,
    limit: LimitQuery,
) -> Answer<Json<Vec<RunView>>> {
    let limit = limit?.0.get();
    app.ask(&name, move |_, queue| Ok(Json(queue.runs(limit))))
        .await
}

/// The runs that ended last, the latest first
#[utoipa::path(get, path = "/api/queues/{queue}/ends", params(("queue" = String, Path), Limit),
    responses((status = 200, body = Vec<EndView>), (status = 404, body = ErrorBody)))]
async fn api_ends(
    State(app): AppState,
    Path(name): Path<String>,
    limit: LimitQuery,
) -> Answer<Json<Vec<EndView>>> {
    let limit = limit?.0.get();
    app.ask(&name, move |_, queue| Ok(Json(queue.ends(limit))))
        .await
}

/// The dead keys, the oldest first
#[utoipa::path(get, path = "/api/queues/{queue}/dead", params(("queue" = String, Path), Limit),
    responses((status = 200, body = Vec<DeadKeyView>), (status = 404, body = ErrorBody)))]
async fn api_dead(
    State(app): AppState,
    Path(name): Path<String>,
    limit: LimitQuery,
) -> Answer<Json<Vec<DeadKeyView>>> {
    let limit = limit?.0.get();
    app.ask(&name, move |_, queue| Ok(Json(queue.dead_keys(limit))))
        .await
}

/// The groups with the longest backlogs
#[utoipa::path(get, path = "/api/queues/{queue}/groups", params(("queue" = String, Path), Limit),
    responses((status = 200, body = GroupPage), (status = 404, body = ErrorBody)))]
async fn api_groups(
    State(app): AppState,
    Path(name): Path<String>,
    limit: LimitQuery,
) -> Answer<Json<GroupPage>> {
    let limit = limit?.0.get();
    app.ask(&name, move |_, queue| Ok(Json(queue.groups(limit))))
        .await
}

/// What was done to the queues, the latest first
#[utoipa::path(get, path = "/api/actions", responses((status = 200, body = Vec<Action>)))]
async fn api_actions(State(app): AppState) -> Json<Vec<Action>> {
    Json(app.actions())
}

/// Does something to a queue
#[utoipa::path(post, path = "/api/queues/{queue}/control", request_body = Command,
    params(("queue" = String, Path), ("x-requeue-token" = String, Header, description = "The `token` of `/api/queues`")),
    responses((status = 200, body = Done), (status = 400, body = ErrorBody), (status = 403, body = ErrorBody),
    (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
async fn api_control(
    State(app): AppState,
    Path(name): Path<String>,
    peer: Peer,
    headers: HeaderMap,
    command: Result<Json<Command>, JsonRejection>,
) -> Answer<Json<Done>> {
    let token = headers
        .get("x-requeue-token")
        .and_then(|token| token.to_str().ok());
    let who = app.authorize(
        &headers,
        peer.map(|peer| peer.0.0),
        token.unwrap_or_default(),
    )?;
    let command = command?.0;
    let order = app.search(&name, move |app, queue| app.order(queue, who, &command));
    order.await.map(|done| Json(Done { done }))
}

/// The description of the JSON, as OpenAPI 3.1.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "requeue-inspect",
        description = "What work queues do, and why a key does not run."
    ),
    paths(
        api_queues,
        api_queue,
        api_events,
        api_samples,
        api_keys,
        api_key,
        api_runs,
        api_ends,
        api_dead,
        api_groups,
        api_actions,
        api_control
    )
)]
struct Document;
