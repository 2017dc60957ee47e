//! The explorer: the same experiment, live in a browser.
//!
//! A page edits a description; this crate answers with what `didact-experiment` makes of it. It knows no model, no engine and no
//! formula: text goes in, figures, numbers and verdicts come out.
//!
//! ```text
//! page/ (our own HTML, style and script)  ⇄  request.rs: who may ask  ─►  server.rs: what is asked
//!                                                                            │
//!                            stream.rs: events as they come  ◄── work.rs: newest wins, bounded by the planner ──► didact-experiment
//! ```
//!
//! Only this machine reaches it: it listens on the loopback address, under a path that holds a random token, and answers
//! requests that name exactly this host and come from exactly this page.
//!
//! ```
//! use didact_explorer::{Explorer, gallery};
//!
//! let explorer = Explorer { cards: gallery::examples(), out: std::env::temp_dir(), port: 0, seconds: 60.0 };
//! let running = explorer.start().unwrap();
//! assert!(running.url().starts_with("http://127.0.0.1:"));
//! running.stop();
//! ```

mod answer;
pub mod derivation;
mod files;
pub mod gallery;
mod listener;
mod page;
mod pins;
mod request;
mod server;
mod stream;
mod tabs;
mod work;

pub use gallery::Card;

use server::Server;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// What is to be explored, and where runs go.
#[derive(Debug, Clone)]
pub struct Explorer {
    /// Descriptions to start from; the first of the group `yours`, if there is one, is shown at once.
    pub cards: Vec<Card>,
    /// Where saved descriptions and run folders go; nothing is written anywhere else.
    pub out: PathBuf,
    /// Port to listen on; 0 takes a free one.
    pub port: u16,
    /// Seconds of one core, by the planner, that simulations of a page may take; what takes longer is run on disk.
    pub seconds: f64,
}

/// An explorer that answers, on a thread of its own.
pub struct Running {
    address: SocketAddr,
    token: String,
    stop: Option<oneshot::Sender<()>>,
    thread: JoinHandle<()>,
}

impl Explorer {
    /// Begins to listen on the loopback address.
    pub fn start(self) -> io::Result<Running> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, self.port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let token = request::token()?;
        let server = Arc::new(Server::new(self, address.port(), token.clone())?);
        let (stop, stopped) = oneshot::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let thread = std::thread::Builder::new().name("explorer".into()).spawn(move || {
            runtime.block_on(async move {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                let router = axum::Router::new().fallback(server::answer).with_state(Arc::clone(&server));
                let serve = axum::serve(listener::Bounded::new(listener), router);
                let until = serve.with_graceful_shutdown(async move {
                    // A sender that is gone means the same as a word from it.
                    let _ = stopped.await;
                    server.tabs.cancel_all();
                });
                let _ = until.await;
            });
            // Work that a blocking thread is still at ends by its monitor; nothing waits for it.
            runtime.shutdown_background();
        })?;
        Ok(Running { address, token, stop: Some(stop), thread })
    }
}

impl Running {
    /// The address of the page, with its token.
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.address, self.token)
    }

    /// Waits until the server ends, which it does when it is stopped.
    pub fn wait(self) {
        let Self { thread, stop, .. } = self;
        let _ = thread.join();
        drop(stop);
    }

    /// Ends all work and stops listening.
    pub fn stop(mut self) {
        drop(self.stop.take());
        self.wait();
    }
}
