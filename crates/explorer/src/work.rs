//! What is computed for a page: theory at once, simulations as they come, runs on disk; bounded by the planner and by a clock.

use crate::answer;
use crate::files;
use crate::gallery::Card;
use crate::pins;
use crate::server::Server;
use crate::stream::Events;
use didact_experiment::frontend::SharedMonitor;
use didact_experiment::live::{Interrupted, Live};
use didact_experiment::{Diagnostic, Experiment, Failure, Size, Source, explain};
use didact_figure::Figure;
use didact_model::Monitor;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Seconds of one core, by the planner, up to which theory is computed while a knob turns.
const DRAGGED_SECONDS: f64 = 1.0;
/// The same for theory at rest.
const THEORY_SECONDS: f64 = 60.0;
/// Bytes of a single run in memory.
const MEMORY: f64 = 2e9;
/// How long one answer may take while a knob turns.
const DRAGGED: Duration = Duration::from_millis(500);
/// Experiments that took more than this many times as long at rest are not tried.
const SLOWER_AT_REST: u32 = 4;
/// How long scans may take while a knob turns, and at rest: the planner cannot estimate them.
const DRAGGED_SCAN: Duration = Duration::from_millis(60);
const SCAN: Duration = Duration::from_secs(20);
/// How long one request may compute in all.
const LONGEST: Duration = Duration::from_mins(2);
/// Replicas of the first part of a simulation, which doubles from part to part.
const FIRST_REPLICAS: u32 = 8;
/// Time between reports of progress.
const REPORT_EVERY: Duration = Duration::from_millis(200);

/// What a page asks for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    pub(crate) tab: String,
    pub(crate) id: u64,
    /// The card that the description began as.
    pub(crate) card: String,
    pub(crate) text: String,
    /// Keys with new values, by their dotted paths.
    #[serde(default)]
    pub(crate) set: BTreeMap<String, Value>,
    /// Keys to be taken out.
    #[serde(default)]
    pub(crate) unset: Vec<String>,
    #[serde(default)]
    pub(crate) mode: Mode,
    /// Descriptions whose curves are drawn behind.
    #[serde(default)]
    pub(crate) pins: Vec<String>,
    /// Drawings alone, without their numbers and tools: the page puts them into figures that it has.
    #[serde(default)]
    pub(crate) light: bool,
    #[serde(default)]
    pub(crate) size: Option<String>,
}

/// How much is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    /// A knob is turning: theory, hastily.
    Drag,
    /// Theory at full tolerance, then simulations.
    #[default]
    Settle,
}

impl Ask {
    /// The description after the changes, as far as it may be looked at.
    pub(crate) fn source(&self, card: &Card) -> Result<Source, Diagnostic> {
        let mut source = card.source(&self.text);
        for key in &self.unset {
            source = source.without_key(key)?;
        }
        for (key, value) in &self.set {
            source = source.with_key(key, value)?;
        }
        files::check(&source, &source.plain()?, &card.files())?;
        Ok(source)
    }
}

/// One part of the work: it ends when the page asks for it, or when its time is over.
struct Part<'a> {
    shared: &'a SharedMonitor,
    until: Instant,
    done: SharedMonitor,
}

impl<'a> Part<'a> {
    fn new(shared: &'a SharedMonitor, until: Instant) -> Self {
        Self { shared, until, done: SharedMonitor::default() }
    }

    fn is_late(&self) -> bool {
        Instant::now() > self.until
    }
}

impl Monitor for Part<'_> {
    fn advance(&self, fraction: f64) {
        self.done.advance(fraction);
    }
    fn cancelled(&self) -> bool {
        self.shared.cancelled() || self.is_late()
    }
}

/// Does some work and reports its progress meanwhile.
fn reporting<T>(
    events: &Events,
    part: &Part,
    report: impl Fn(f64) -> Value + Sync,
    work: impl FnOnce() -> T,
) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ticker = scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                std::thread::park_timeout(REPORT_EVERY);
                if !over.load(Ordering::SeqCst) {
                    events.send("progress", &report(part.done.fraction()));
                }
            }
        });
        let result = work();
        over.store(true, Ordering::SeqCst);
        ticker.thread().unpark();
        result
    })
}

/// Answers a page that has changed its description.
///
/// Work that may take long has threads of its own: those of all tabs would otherwise wait for the longest task of any. A knob that turns
/// has threads that nothing else uses.
pub(crate) fn compute(server: &Server, card: &Card, ask: &Ask, monitor: &SharedMonitor, events: &Events) {
    if ask.mode == Mode::Drag {
        return server.dragging.install(|| answer_page(server, card, ask, monitor, events));
    }
    match own_threads() {
        Ok(pool) => pool.install(|| answer_page(server, card, ask, monitor, events)),
        Err(diagnostic) => events.send("error", &answer::error(&diagnostic)),
    }
}

/// As many threads as the machine has, for one piece of work.
fn own_threads() -> Result<rayon::ThreadPool, Diagnostic> {
    let pool = rayon::ThreadPoolBuilder::new().thread_name(|index| format!("explorer {index}"));
    pool.build().map_err(|error| Diagnostic::new(format!("no threads to compute with: {error}")))
}

fn answer_page(server: &Server, card: &Card, ask: &Ask, monitor: &SharedMonitor, events: &Events) {
    let begun = Instant::now();
    let dragging = ask.mode == Mode::Drag;
    let source = ask.source(card);
    let experiment = source.as_ref().map_err(Clone::clone).and_then(|source| {
        if dragging {
            Experiment::hasty(source.clone())
        } else {
            Experiment::new(source.clone(), Size::Normal, None)
        }
    });
    let (source, experiment) = match (source, experiment) {
        (Ok(source), Ok(experiment)) => (source, experiment),
        (source, Err(diagnostic)) => {
            let mut error = answer::error(&diagnostic);
            // A text that cannot be planned can still be shown, with its key changed.
            error["text"] = source.ok().map(|s| s.text).into();
            events.send("error", &error);
            return;
        }
        (Err(_), Ok(_)) => unreachable!("there is no experiment without a source"),
    };
    let planned = begun.elapsed();
    let resolved = answer::resolved(&experiment);
    if !dragging {
        // The page shows what was read before anything is computed.
        events.send("description", &answer::description(&source, &experiment, &resolved));
    }
    let mut live = Live::new(experiment);
    let plan = live.plan();
    // A knob that turns waits for what it has not got in time: the text moves, and the rest when the knob does not.
    let late = || {
        let note = "This takes too long to follow your hand; it is computed when you let go.";
        let text =
            json!({"text": source.text, "plan": answer::plan(&plan), "notes": [note], "phase": "theory"});
        events.send("result", &text);
    };
    if dragging && !server.follows(&card.id) {
        return late();
    }
    let stopped = |whole: &Part| {
        if !dragging {
            interrupted(whole, events);
        } else if !monitor.cancelled() {
            server.keep_pace(&card.id, dragging, DRAGGED + DRAGGED);
            late();
        }
    };
    let whole = Part::new(monitor, begun + if dragging { DRAGGED } else { LONGEST });
    let mut notes: Vec<String> = Vec::new();
    let theory_limit = if dragging { DRAGGED_SECONDS } else { THEORY_SECONDS };
    let beside = explain::beside(&resolved);
    let mut state = json!({"plan": answer::plan(&plan), "phase": "theory"});
    if dragging {
        // The page knows which key moves; all else of the description is as it was.
        state["text"] = source.text.clone().into();
    }
    if plan.memory > MEMORY {
        notes.push("A run of this needs more memory than the explorer gives. Run it on disk.".into());
    } else if plan.theory_seconds > theory_limit {
        let when = if dragging { "while a knob turns" } else { "here" };
        notes.push(format!(
            "Theory would take about {:.0} s of one core, which is too long {when}.",
            plan.theory_seconds
        ));
    } else if live.predict(&whole).is_err() {
        return stopped(&whole);
    }
    let scan_until = Instant::now() + if dragging { DRAGGED_SCAN } else { SCAN };
    match live.scan(&whole, || Instant::now() < scan_until) {
        Ok(true) => {}
        Ok(false) if dragging => notes.push("The scan is computed when you let go.".into()),
        Ok(false) => notes.push("The scan takes longer than 20 s. Run it on disk.".into()),
        Err(Interrupted) => return stopped(&whole),
    }
    let computed = begun.elapsed();
    let pinned: Vec<_> =
        ask.pins.iter().take(pins::MOST).map(|text| server.pinned(card, text, monitor)).collect();
    let shown = |live: &Live| {
        let mut outcome = live.outcome();
        for (number, figures) in pinned.iter().enumerate() {
            pins::draw(&mut outcome.figures, figures, number);
        }
        answer::outcome(live, &outcome, &beside, ask.light)
    };
    let most = live.most_replicas();
    state["outcome"] = shown(&live);
    state["notes"] = notes.clone().into();
    state["replicas"] = json!([0, most]);
    state["seconds"] = json!({
        "plan": planned.as_secs_f64(),
        "compute": computed.as_secs_f64() - planned.as_secs_f64(),
        "draw": begun.elapsed().as_secs_f64() - computed.as_secs_f64(),
    });
    if monitor.cancelled() {
        return;
    }
    server.keep_pace(&card.id, dragging, begun.elapsed());
    events.send("result", &state);
    if dragging {
        return;
    }
    if most > 0 && plan.memory <= MEMORY {
        if plan.simulation_seconds > server.seconds {
            notes.push(format!(
                "The simulations would take about {} of one core. Run it on disk to have them.",
                duration(plan.simulation_seconds)
            ));
        } else if simulate(&mut live, &whole, most, &shown, events).is_err() {
            return stopped(&whole);
        }
    }
    events.send(
        "done",
        &json!({"complete": live.is_complete(), "notes": notes, "seconds": begun.elapsed().as_secs_f64()}),
    );
}

/// Simulates in parts that double, so that points come soon and become more precise.
fn simulate(
    live: &mut Live,
    whole: &Part,
    most: u32,
    shown: &dyn Fn(&Live) -> Value,
    events: &Events,
) -> Result<(), Interrupted> {
    let mut target = FIRST_REPLICAS.min(most);
    let mut have = 0;
    loop {
        let part = Part::new(whole.shared, whole.until);
        let (before, next) = (f64::from(have), f64::from(target - have));
        let report = |fraction: f64| json!({"fraction": (before + next * fraction) / f64::from(most)});
        reporting(events, &part, report, || live.simulate(target, &part))?;
        have = target;
        events.send(
            "result",
            &json!({"phase": "simulation", "outcome": shown(live), "replicas": [have, most], "complete": live.is_complete()}),
        );
        if have >= most {
            return Ok(());
        }
        target = (2 * target).min(most);
    }
}

fn interrupted(part: &Part, events: &Events) {
    if !part.shared.cancelled() {
        let note =
            "This takes too long here. While a knob turns it is left out; for all of it, run it on disk.";
        events.send("done", &json!({"complete": false, "notes": [note]}));
    }
}

impl Server {
    /// Whether a card is tried while a knob turns: it was quick enough the last time since it rested, or it was not tried since then and
    /// was not much slower at rest, where integrators have their own tolerance.
    fn follows(&self, card: &str) -> bool {
        let paces = self.paces.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match paces.get(card) {
            Some(Pace { turning: Some(turning), .. }) => *turning <= DRAGGED,
            Some(Pace { resting, .. }) => *resting <= SLOWER_AT_REST * DRAGGED,
            None => true,
        }
    }

    /// Remembers how long theory, scans, measures and drawings of a card took.
    fn keep_pace(&self, card: &str, turning: bool, took: Duration) {
        let mut paces = self.paces.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let pace = paces.entry(card.into()).or_default();
        if turning {
            pace.turning = Some(took);
        } else {
            *pace = Pace { resting: took, turning: None };
        }
    }

    /// The figures of a pinned description, theory alone. What cannot be computed has none.
    fn pinned(&self, card: &Card, text: &str, monitor: &SharedMonitor) -> Arc<Vec<(String, Figure)>> {
        let key = format!("{}\n{text}", card.id);
        let known =
            |cache: &Vec<Pinned>| cache.iter().find(|(own, _)| *own == key).map(|(_, f)| Arc::clone(f));
        if let Some(figures) = known(&self.pinned.lock().unwrap_or_else(std::sync::PoisonError::into_inner)) {
            return figures;
        }
        let figures = Arc::new(computed_pin(card, text, monitor).unwrap_or_default());
        if !monitor.cancelled() {
            let mut cache = self.pinned.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if cache.len() >= PINNED {
                cache.remove(0);
            }
            cache.push((key, Arc::clone(&figures)));
        }
        figures
    }
}

/// The figures of a description, theory and scans alone; `None` where they cannot be computed here.
fn computed_pin(card: &Card, text: &str, monitor: &SharedMonitor) -> Option<Vec<(String, Figure)>> {
    let source = card.source(text);
    files::check(&source, &source.plain().ok()?, &card.files()).ok()?;
    let mut live = Live::new(Experiment::new(source, Size::Normal, None).ok()?);
    let plan = live.plan();
    if plan.theory_seconds > THEORY_SECONDS || plan.memory > MEMORY {
        return None;
    }
    let part = Part::new(monitor, Instant::now() + LONGEST);
    live.predict(&part).ok()?;
    let scan_until = Instant::now() + SCAN;
    live.scan(&part, || Instant::now() < scan_until).ok()?;
    Some(live.outcome().figures.into_iter().filter_map(|(name, figure)| Some((name, figure.ok()?))).collect())
}

/// Pinned states that are kept for all tabs together.
const PINNED: usize = 16;

/// How long a card took when it was last computed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace {
    resting: Duration,
    /// While a knob turned, since it last rested.
    turning: Option<Duration>,
}

/// A card and a text, and what its figures are.
pub(crate) type Pinned = (String, Arc<Vec<(String, Figure)>>);

/// Runs the experiment on disk.
pub(crate) fn run(server: &Server, card: &Card, ask: &Ask, monitor: &SharedMonitor, events: &Events) {
    let size = Size::named(ask.size.as_deref().unwrap_or("normal"));
    let experiment = size.and_then(|size| Experiment::new(ask.source(card)?, size, None));
    let experiment = match experiment {
        Ok(experiment) => experiment,
        Err(diagnostic) => return events.send("error", &answer::error(&diagnostic)),
    };
    // A run on disk takes as long as it takes; only the page ends it.
    let part = Part::new(monitor, Instant::now() + Duration::from_hours(2400));
    let report = |fraction: f64| json!({"fraction": fraction});
    let pool = match own_threads() {
        Ok(pool) => pool,
        Err(diagnostic) => return events.send("error", &answer::error(&diagnostic)),
    };
    let finished =
        reporting(events, &part, report, || pool.install(|| experiment.execute(&server.out, &part)));
    match finished {
        Ok(finished) => {
            let number = server.keep_report(finished.folder.clone());
            events.send(
                "finished",
                &json!({
                    "folder": finished.folder.display().to_string(),
                    "report": format!("report/{number}/report.html"),
                    "reused": finished.reused,
                    "failures": finished.failures.len(),
                }),
            );
        }
        Err(Failure::Error(diagnostic)) => events.send("error", &answer::error(&diagnostic)),
        Err(Failure::Interrupted(_)) => events.send("stopped", &json!({})),
    }
}

/// Writes the description below the folder of runs, under the name of its run folder.
pub(crate) fn save(server: &Server, card: &Card, ask: &Ask) -> Result<Value, Diagnostic> {
    let source = ask.source(card)?;
    if !card.files().is_empty() {
        return Err(Diagnostic::new(
            "this description reads files that lie beside it, so it must stay there",
        )
        .hint(format!("copy the text and save it beside {}", card.name)));
    }
    let experiment = Experiment::new(source.clone(), Size::Normal, None)?;
    // The name has letters, digits and dashes alone, whatever the title is, and differs where descriptions do.
    let file = server.out.join(format!("{}.toml", experiment.folder_name()));
    let written = std::fs::create_dir_all(&server.out).and_then(|()| std::fs::write(&file, &source.text));
    written.map_err(|error| {
        Diagnostic::new(format!("cannot write {}: {error}", file.display()))
            .hint("choose another folder with --out")
    })?;
    Ok(json!({"file": file.display().to_string()}))
}

/// Seconds in words.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
