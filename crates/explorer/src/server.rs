//! What can be asked: a few addresses below the token, none of which names a file.

use crate::gallery::{self, Card};
use crate::page::{self, response};
use crate::request::{self, Gate, Refused};
use crate::tabs::Tabs;
use crate::work::{self, Ask, Pinned};
use crate::{Explorer, answer, derivation, stream};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use didact_experiment::frontend::SharedMonitor;
use didact_experiment::{Diagnostic, reference};
use didact_model::Monitor;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Requests for work at a time, waiting ones included; further ones are turned away at once.
const REQUESTS: usize = 128;
/// Requests that compute at a time. All share the threads of the machine.
const COMPUTING: usize = 4;
/// How often a request that waits for its turn looks whether it is still the newest.
const LOOK: Duration = Duration::from_millis(20);
/// Finished runs whose report can be opened.
const REPORTS: usize = 256;

/// Everything that requests share.
pub(crate) struct Server {
    cards: Vec<Card>,
    pub(crate) out: PathBuf,
    pub(crate) seconds: f64,
    gate: Gate,
    pub(crate) tabs: Tabs,
    places: Arc<Semaphore>,
    /// Runs on disk: one at a time.
    runs: Arc<Semaphore>,
    requests: AtomicUsize,
    /// Threads for knobs that turn.
    pub(crate) dragging: rayon::ThreadPool,
    pub(crate) pinned: Mutex<Vec<Pinned>>,
    /// How long the cards took, by their ids.
    pub(crate) paces: Mutex<BTreeMap<String, work::Pace>>,
    reports: Mutex<(usize, Vec<(usize, PathBuf)>)>,
}

/// One request more, as long as it lives.
struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What is asked of a card without any work.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Open {
    card: String,
    #[serde(default)]
    set: BTreeMap<String, Value>,
    #[serde(default)]
    unset: Vec<String>,
}

/// What is to be explained.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Explain {
    what: Vec<String>,
}

/// Answers a request, whatever it is.
pub(crate) async fn answer(State(server): State<Arc<Server>>, request: Request) -> Response {
    let answered = server.respond(request).await;
    let refused = |(status, why): Refused| response(status, "text/plain; charset=utf-8", why);
    page::sealed(answered.unwrap_or_else(refused))
}

const NOT_FOUND: Refused = (StatusCode::NOT_FOUND, "there is nothing here");

impl Server {
    pub(crate) fn new(explorer: Explorer, port: u16, token: String) -> io::Result<Self> {
        let dragging = rayon::ThreadPoolBuilder::new().thread_name(|index| format!("knob {index}"));
        Ok(Self {
            dragging: dragging.build().map_err(io::Error::other)?,
            cards: explorer.cards,
            out: explorer.out,
            seconds: explorer.seconds,
            gate: Gate::new(port, token),
            tabs: Tabs::default(),
            places: Arc::new(Semaphore::new(COMPUTING)),
            runs: Arc::new(Semaphore::new(1)),
            requests: AtomicUsize::new(0),
            pinned: Mutex::new(Vec::new()),
            paces: Mutex::new(BTreeMap::new()),
            reports: Mutex::new((0, Vec::new())),
        })
    }

    async fn respond(self: Arc<Self>, request: Request) -> Result<Response, Refused> {
        let (head, body) = request.into_parts();
        let parts = self.gate.admit(&head.method, head.uri.path(), &head.headers)?;
        match (head.method, parts.as_slice()) {
            (Method::GET, ["gallery"]) => Ok(json_response(&self.gallery())),
            (Method::GET, ["schema"]) => Ok(json_response(&reference::schema())),
            (Method::GET, ["thumbnails", id @ ..]) => {
                let picture = gallery::thumbnail(&id.join("/")).ok_or(NOT_FOUND)?;
                Ok(response(StatusCode::OK, "image/svg+xml", picture))
            }
            (Method::GET, ["derivations", page]) => {
                let html = derivation::html(page).ok_or(NOT_FOUND)?;
                Ok(response(StatusCode::OK, "text/html; charset=utf-8", html))
            }
            (Method::GET, ["report", number, file]) => self.report(number, file),
            (Method::GET, [file]) => page::file(file).ok_or(NOT_FOUND),
            (Method::POST, [what @ ("open" | "explain" | "compute" | "save" | "run")]) => {
                if self.requests.fetch_add(1, Ordering::SeqCst) >= REQUESTS {
                    self.requests.fetch_sub(1, Ordering::SeqCst);
                    return Err((StatusCode::SERVICE_UNAVAILABLE, "too many requests at a time"));
                }
                let _counted = Counted(&self.requests);
                let bytes = request::body(body).await?;
                Arc::clone(&self).work(what, &bytes).await
            }
            (Method::GET | Method::POST, _) => Err(NOT_FOUND),
            _ => Err((StatusCode::METHOD_NOT_ALLOWED, "GET or POST")),
        }
    }

    async fn work(self: Arc<Self>, what: &str, bytes: &[u8]) -> Result<Response, Refused> {
        match what {
            "open" => {
                let open: Open = read(bytes)?;
                let ask = Ask {
                    text: self.card(&open.card)?.text.clone(),
                    card: open.card,
                    set: open.set,
                    unset: open.unset,
                    ..empty_ask()
                };
                let card = self.card(&ask.card)?;
                if ask.set.is_empty() && ask.unset.is_empty() && card.source(&card.text).plain().is_err() {
                    // A file that cannot be read is shown as it is; computing it says what is wrong, and where.
                    return Ok(json_response(&json!({"text": card.text, "values": {}, "base": null})));
                }
                let opened = ask.source(card).and_then(|source| {
                    let (values, base) = (source.plain()?, card.source(&card.text).plain()?);
                    Ok(json!({"text": source.text, "values": values, "base": base}))
                });
                Ok(json_or_error(opened))
            }
            "explain" => {
                let asked: Explain = read(bytes)?;
                Ok(json_or_error(answer::explanations(&asked.what[..asked.what.len().min(16)])))
            }
            "save" => {
                let ask: Ask = read(bytes)?;
                let place = self.place(&self.places, None).await?;
                let server = Arc::clone(&self);
                let saved = tokio::task::spawn_blocking(move || {
                    let _place = place;
                    Ok::<_, Refused>(work::save(&server, server.card(&ask.card)?, &ask))
                });
                Ok(json_or_error(saved.await.map_err(|_| FAILED)??))
            }
            "compute" | "run" => {
                let ask: Ask = read(bytes)?;
                self.card(&ask.card)?;
                let superseded = (StatusCode::CONFLICT, "a newer request has taken its place");
                let monitor = self.tabs.begin(&ask.tab, ask.id).ok_or(superseded)?;
                let is_run = what == "run";
                let places = if is_run { &self.runs } else { &self.places };
                let place = self.place(places, Some(&monitor)).await?;
                let (events, response) = stream::open(Arc::clone(&monitor));
                let server = Arc::clone(&self);
                tokio::task::spawn_blocking(move || {
                    let _place = place;
                    let Ok(card) = server.card(&ask.card) else { return };
                    if is_run {
                        work::run(&server, card, &ask, &monitor, &events);
                    } else {
                        work::compute(&server, card, &ask, &monitor, &events);
                    }
                });
                Ok(response)
            }
            _ => Err(NOT_FOUND),
        }
    }

    /// Waits for a place among those who compute; a request that is not the newest any more gives up.
    async fn place(
        &self,
        places: &Arc<Semaphore>,
        monitor: Option<&Arc<SharedMonitor>>,
    ) -> Result<OwnedSemaphorePermit, Refused> {
        loop {
            if let Ok(Ok(place)) = timeout(LOOK, Arc::clone(places).acquire_owned()).await {
                return Ok(place);
            }
            if monitor.is_some_and(|monitor| monitor.cancelled()) {
                return Err((StatusCode::CONFLICT, "a newer request has taken its place"));
            }
        }
    }

    fn card(&self, id: &str) -> Result<&Card, Refused> {
        self.cards.iter().find(|card| card.id == id).ok_or((StatusCode::NOT_FOUND, "there is no such card"))
    }

    fn gallery(&self) -> Value {
        let cards: Vec<Value> = self.cards.iter().map(Card::shown).collect();
        json!({"cards": cards, "starting": gallery::STARTING, "out": self.out.display().to_string()})
    }

    /// Remembers the folder of a finished run under a number.
    pub(crate) fn keep_report(&self, folder: PathBuf) -> usize {
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        reports.0 += 1;
        let number = reports.0;
        if reports.1.len() >= REPORTS {
            reports.1.remove(0);
        }
        reports.1.push((number, folder));
        number
    }

    /// A file of a finished run, known by the number of the run. Only names that are in the folder are looked at.
    fn report(&self, number: &str, file: &str) -> Result<Response, Refused> {
        let number: usize = number.parse().map_err(|_| NOT_FOUND)?;
        let folder = {
            let reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
            reports.1.iter().find(|(known, _)| *known == number).map(|(_, folder)| folder.clone())
        };
        let entries = std::fs::read_dir(folder.ok_or(NOT_FOUND)?).map_err(|_| NOT_FOUND)?;
        let entry = entries.flatten().find(|entry| {
            entry.file_name().to_str() == Some(file) && entry.file_type().is_ok_and(|kind| kind.is_file())
        });
        let bytes = std::fs::read(entry.ok_or(NOT_FOUND)?.path()).map_err(|_| NOT_FOUND)?;
        Ok(page::of_report(file, bytes))
    }
}

const FAILED: Refused = (StatusCode::INTERNAL_SERVER_ERROR, "the program failed at this; please report it");

fn empty_ask() -> Ask {
    Ask {
        tab: String::new(),
        id: 0,
        card: String::new(),
        text: String::new(),
        set: BTreeMap::new(),
        unset: Vec::new(),
        mode: work::Mode::Settle,
        pins: Vec::new(),
        light: false,
        size: None,
    }
}

fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Refused> {
    serde_json::from_slice(bytes).map_err(|_| (StatusCode::BAD_REQUEST, "this is not what the page sends"))
}

fn json_response(value: &Value) -> Response {
    response(StatusCode::OK, "application/json", value.to_string())
}

fn json_or_error(answer: Result<Value, Diagnostic>) -> Response {
    match answer {
        Ok(value) => json_response(&value),
        Err(diagnostic) => json_response(&json!({"error": answer::error(&diagnostic)})),
    }
}
