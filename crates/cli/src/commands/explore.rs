//! `didact explore`: the same experiment, live in a browser.

use crate::exit::Ending;
use crate::papers;
use didact_experiment::{Diagnostic, Source};
use didact_explorer::{Card, Explorer, gallery};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(crate) fn explore(
    file: Option<&Path>,
    out: PathBuf,
    port: u16,
    seconds: f64,
    open: bool,
) -> Result<Ending, Diagnostic> {
    let mut cards: Vec<Card> = Vec::new();
    if let Some(file) = file {
        let source = Source::read(file)?;
        // A slip is shown on the page, at its line; what is no text of a description at all ends here.
        cards.push(gallery::of_file(source)?);
    }
    cards.extend(all_cards());
    let running = Explorer { cards, out, port, seconds }.start().map_err(|error| {
        Diagnostic::new(format!("cannot listen on port {port}: {error}"))
            .hint("choose another one with --port")
    })?;
    say!("{}", running.url());
    complain!("the explorer answers there, to this machine alone; Ctrl-C ends it");
    if open {
        open_browser(&running.url());
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(Diagnostic::new)?;
    }
    while !stop.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(50));
    }
    // Files are whole or not there, so that work which has not stopped yet may end with the process.
    std::process::exit(0)
}

/// A card for every example and for every figure of a paper.
fn all_cards() -> Vec<Card> {
    let mut cards = gallery::examples();
    for paper in papers::all() {
        for figure in &paper.figures {
            let source = figure.source(paper.key);
            cards.push(Card {
                id: format!("{}/{}", paper.key, figure.name),
                group: paper.key.into(),
                group_title: paper.row.title.clone(),
                name: source.name,
                text: source.text,
            });
        }
    }
    cards
}

/// Asks the desktop to show the page. Where there is none, the address has been printed.
fn open_browser(url: &str) {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else if cfg!(windows) {
        "explorer"
    } else {
        "xdg-open"
    };
    let _ = Command::new(program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_of_a_paper_has_a_card_and_the_starting_ones_exist() {
        let cards = all_cards();
        let figures: usize = papers::all().iter().map(|paper| paper.figures.len()).sum();
        assert_eq!(cards.len(), figures + gallery::examples().len());
        for id in gallery::STARTING {
            assert!(cards.iter().any(|card| card.id == id), "{id}");
        }
    }
}
