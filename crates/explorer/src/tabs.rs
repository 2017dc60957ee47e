//! Tabs of the browser: each has one piece of work at a time, and the newest request wins.

use didact_experiment::frontend::SharedMonitor;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// Tabs that are remembered; the one that was silent longest is forgotten first, and its work ends.
const TABS: usize = 64;

/// All tabs.
#[derive(Default)]
pub(crate) struct Tabs(Mutex<State>);

#[derive(Default)]
struct State {
    tabs: BTreeMap<String, Tab>,
    clock: u64,
}

struct Tab {
    newest: u64,
    monitor: Arc<SharedMonitor>,
    used: u64,
}

impl Tabs {
    /// The monitor of a new request; older work of the tab is asked to end. `None` for a request that is not the newest.
    pub(crate) fn begin(&self, tab: &str, id: u64) -> Option<Arc<SharedMonitor>> {
        let mut state = self.lock();
        state.clock += 1;
        let now = state.clock;
        if let Some(known) = state.tabs.get(tab) {
            if id <= known.newest {
                return None;
            }
            known.monitor.cancel();
        } else if state.tabs.len() >= TABS {
            let silent = state.tabs.iter().min_by_key(|(_, tab)| tab.used).map(|(name, _)| name.clone());
            if let Some(forgotten) = silent.and_then(|name| state.tabs.remove(&name)) {
                forgotten.monitor.cancel();
            }
        }
        let monitor = Arc::new(SharedMonitor::default());
        state.tabs.insert(tab.into(), Tab { newest: id, monitor: Arc::clone(&monitor), used: now });
        Some(monitor)
    }

    /// Asks all work to end.
    pub(crate) fn cancel_all(&self) {
        self.lock().tabs.values().for_each(|tab| tab.monitor.cancel());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics while it holds the lock; a poisoned one has the same meaning.
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use didact_model::Monitor;

    #[test]
    fn the_newest_request_of_a_tab_wins_and_tabs_are_independent() {
        let tabs = Tabs::default();
        let first = tabs.begin("a", 1).unwrap();
        let other = tabs.begin("b", 1).unwrap();
        let second = tabs.begin("a", 2).unwrap();
        assert!(first.cancelled() && !second.cancelled() && !other.cancelled());
        assert!(tabs.begin("a", 2).is_none() && tabs.begin("a", 1).is_none(), "late ones are not done");
        assert!(!second.cancelled());
        tabs.cancel_all();
        assert!(second.cancelled() && other.cancelled());
    }

    #[test]
    fn the_number_of_tabs_is_bounded_and_the_silent_one_is_forgotten() {
        let tabs = Tabs::default();
        let first = tabs.begin("0", 1).unwrap();
        let kept = tabs.begin("1", 1).unwrap();
        for tab in 2..TABS {
            tabs.begin(&tab.to_string(), 1).unwrap();
        }
        tabs.begin("0", 2).unwrap();
        assert!(!kept.cancelled());
        tabs.begin("new", 1).unwrap();
        assert!(kept.cancelled() && first.cancelled());
        assert_eq!(tabs.lock().tabs.len(), TABS);
    }
}
