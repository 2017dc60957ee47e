//! Server-sent events: a body that grows while work is done, and that ends the work when nobody listens any more.

use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use didact_experiment::frontend::SharedMonitor;
use futures_core::Stream;
use serde_json::Value;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// Events that wait to be sent. A reader that is slower than the work makes the work wait, so that memory stays bounded.
const WAITING: usize = 4;

/// The side of the work: tells the page what there is.
#[derive(Clone)]
pub(crate) struct Events {
    sender: mpsc::Sender<Bytes>,
    monitor: Arc<SharedMonitor>,
}

impl Events {
    /// Sends an event, waiting until there is room. When the page is gone the work is asked to end.
    pub(crate) fn send(&self, name: &str, data: &Value) {
        // JSON on one line: its texts have no raw line ends.
        let text = format!("event: {name}\ndata: {data}\n\n");
        if self.sender.blocking_send(text.into()).is_err() {
            self.monitor.cancel();
        }
    }
}

/// The side of the page.
struct Listening {
    receiver: mpsc::Receiver<Bytes>,
    monitor: Arc<SharedMonitor>,
}

impl Stream for Listening {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.receiver.poll_recv(cx).map(|event| event.map(Ok))
    }
}

impl Drop for Listening {
    /// The page has closed the connection, or has heard all of it.
    fn drop(&mut self) {
        self.monitor.cancel();
    }
}

/// A pair of ends, the second as the answer to a request.
pub(crate) fn open(monitor: Arc<SharedMonitor>) -> (Events, Response) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let events = Events { sender, monitor: Arc::clone(&monitor) };
    let mut response = Response::new(Body::from_stream(Listening { receiver, monitor }));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    (events, response)
}
