//! The server as an attacker meets it: raw requests over TCP.

use didact_experiment::Source;
use didact_explorer::{Card, Explorer, Running, gallery};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A description whose simulations take hours.
const LONG: &str = r#"
title = "Long"
model = { family = "committee", students = 2, teachers = 2, activation = "erf(z/sqrt2)" }
data = { dimension = 20000000 }
training = { learning-rate = 1.0 }
start = { q = [[0.25, 0], [0, 0.25]], r = [[0.1, 0], [0, 0.1]] }
record = { times = { from = 0, to = 80, points = 9 }, replicas = 64 }
run = [{ name = "theory", engine = "ode" }, { name = "sgd", engine = "reduced" }]
"#;

struct Target {
    running: Option<Running>,
    host: String,
    token: String,
    out: PathBuf,
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop();
        }
        let _ = std::fs::remove_dir_all(&self.out);
    }
}

fn target() -> Target {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::SeqCst);
    let out = std::env::temp_dir().join(format!("didact-attack-{}-{number}", std::process::id()));
    let long = gallery::of_file(Source { name: "long.toml".into(), text: LONG.into() }).unwrap();
    let cards: Vec<Card> = gallery::examples().into_iter().chain([long]).collect();
    let running = Explorer { cards, out: out.clone(), port: 0, seconds: f64::MAX }.start().unwrap();
    let url = running.url();
    let parts: Vec<&str> = url.split('/').collect();
    Target { host: parts[2].into(), token: parts[3].into(), running: Some(running), out }
}

impl Target {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        stream
    }

    /// Sends bytes and reads until the other side closes or the answer is whole.
    fn raw(&self, request: &str) -> String {
        let mut stream = self.connect();
        // The other side may close before it has read everything.
        let _ = stream.write_all(request.as_bytes());
        read_all(&mut stream)
    }

    fn get(&self, path: &str) -> String {
        self.raw(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.host))
    }

    fn post_text(&self, path: &str, body: &str) -> String {
        let Self { host, token, .. } = self;
        format!(
            "POST /{token}/{path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    }

    fn post(&self, path: &str, body: &Value) -> String {
        self.raw(&self.post_text(path, &body.to_string()))
    }
}

fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
}

fn ask(tab: &str, id: u64, card: &str, text: &str) -> Value {
    json!({"tab": tab, "id": id, "card": card, "text": text, "mode": "settle"})
}

fn text_of(card: &str) -> String {
    gallery::examples().into_iter().find(|c| c.id == card).unwrap().text
}

#[test]
fn a_foreign_host_origin_or_token_gets_nothing() {
    let target = target();
    let Target { host, token, .. } = &target;
    assert_eq!(status(&target.get(&format!("/{token}/"))), 200);
    for (request, code) in [
        (format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"), 403),
        (format!("GET /{}/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n", "0".repeat(32)), 403),
        (format!("GET /{token}/ HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"), 403),
        (format!("GET /{token}/ HTTP/1.1\r\nHost: {host}.evil.example\r\nConnection: close\r\n\r\n"), 403),
        (
            format!(
                "GET /{token}/ HTTP/1.1\r\nHost: {host}\r\nOrigin: http://evil.example\r\nConnection: close\r\n\r\n"
            ),
            403,
        ),
        (
            format!(
                "GET http://evil.example/{token}/ HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
            ),
            403,
        ),
        (
            format!(
                "POST /{token}/compute HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
            ),
            403,
        ),
        (
            format!(
                "POST /{token}/compute HTTP/1.1\r\nHost: {host}\r\nOrigin: null\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
            ),
            403,
        ),
        (
            format!(
                "POST /{token}/compute HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
            ),
            415,
        ),
        (
            format!(
                "PUT /{token}/compute HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            ),
            405,
        ),
        (
            format!(
                "OPTIONS /{token}/compute HTTP/1.1\r\nHost: {host}\r\nOrigin: http://evil.example\r\nConnection: close\r\n\r\n"
            ),
            403,
        ),
    ] {
        let answer = target.raw(&request);
        assert_eq!(status(&answer), code, "{request}");
        let lower = answer.to_lowercase();
        assert!(!lower.contains("access-control-allow"), "{request}");
        assert!(!answer.contains(token.as_str()), "the token is not told: {request}");
    }
}

#[test]
fn answers_may_not_be_framed_sniffed_stored_or_referred_to() {
    let target = target();
    let page = target.get(&format!("/{}/", target.token)).to_lowercase();
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "frame-ancestors 'none'",
        "referrer-policy: no-referrer",
        "x-content-type-options: nosniff",
        "cache-control: no-store",
        "cross-origin-resource-policy: same-origin",
    ] {
        assert!(page.contains(header), "{header}");
    }
}

#[test]
fn a_large_body_is_refused_without_being_read() {
    let target = target();
    let Target { host, token, .. } = &target;
    let head = format!(
        "POST /{token}/compute HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Type: application/json\r\nConnection: close\r\n"
    );
    let before = resident();
    assert_eq!(status(&target.raw(&format!("{head}Content-Length: 104857600\r\n\r\n"))), 413);
    // The same without a length: 100 MB in chunks.
    let mut stream = target.connect();
    stream.write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes()).unwrap();
    let chunk = format!("100000\r\n{}\r\n", "x".repeat(1 << 20));
    let mut sent = 0;
    while sent < 100 && stream.write_all(chunk.as_bytes()).is_ok() {
        sent += 1;
    }
    assert!(sent < 100, "all of it was read");
    let answer = read_all(&mut stream);
    assert!(answer.is_empty() || status(&answer) == 413, "{answer}");
    assert!(resident() < before + 50e6, "{} bytes more", resident() - before);
}

#[test]
fn no_path_leads_out() {
    let target = target();
    let token = &target.token;
    for path in [
        "../../etc/passwd",
        "%2e%2e/%2e%2e/etc/passwd",
        "..%2f..%2fetc%2fpasswd",
        "report/0/report.html",
        "report/1/..%2f..%2fx",
        "report/1/../../../etc/passwd",
        "derivations/../../README",
        "derivations/..%2f..%2fREADME",
        "thumbnails/../../Cargo.toml",
        "thumbnails//etc/passwd",
        "app.js/..",
        "/etc/passwd",
        "style.css%00",
        "report/99999999999999999999/x",
    ] {
        let answer = target.get(&format!("/{token}/{path}"));
        assert_eq!(status(&answer), 404, "{path}: {answer}");
    }
}

#[test]
fn titles_and_texts_write_and_read_nothing_outside_their_folder() {
    let target = target();
    let base = text_of("examples/first-figure");
    for title in [
        "../../../../tmp/evil",
        "/etc/evil",
        "..\\\\..\\\\evil",
        "a/b",
        "\\u0000x",
        ".",
        "con",
        "<script>alert(1)</script>",
    ] {
        let text = base.replace("title = \"My first figure\"", &format!("title = \"{title}\""));
        let answer = target.post("save", &ask("a", 1, "examples/first-figure", &text));
        let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
        let file =
            serde_json::from_str::<Value>(body).unwrap()["file"].as_str().unwrap_or_default().to_string();
        let file = Path::new(&file).canonicalize().unwrap_or_else(|e| panic!("{title}: {e} {answer}"));
        assert_eq!(file.parent().unwrap(), target.out.canonicalize().unwrap(), "{title}");
        assert_eq!(std::fs::read_to_string(file).unwrap(), text);
    }
    for spectrum in [
        "spectrum = { kind = \"file\", path = \"/etc/passwd\" }",
        "spectrum = { kind = \"file\", path = \"../../../../etc/passwd\" }",
        "inputs = { rows = { path = \"/etc/passwd\" } }",
    ] {
        let text = base.replace("dimension = 1000", spectrum);
        for path in ["compute", "run", "save"] {
            let answer = target.post(path, &ask("b", now(), "examples/first-figure", &text));
            assert!(answer.contains("the explorer opens no file that a page names"), "{path}: {answer}");
            assert!(!answer.contains("root:"), "{answer}");
        }
    }
}

#[test]
fn a_report_is_opened_by_its_number_and_runs_apart_from_the_page() {
    let target = target();
    let mut body = ask("a", 1, "examples/scan", &text_of("examples/scan"));
    body["size"] = json!("normal");
    let answer = target.post("run", &body);
    assert!(answer.contains("event: finished"), "{answer}");
    let report = target.get(&format!("/{}/report/1/report.html", target.token));
    assert!(
        report.contains("Escape time against width") && report.contains("sandbox allow-scripts"),
        "{report}"
    );
    assert_eq!(status(&target.get(&format!("/{}/report/1/escape-against-width.pdf", target.token))), 200);
    assert_eq!(status(&target.get(&format!("/{}/report/2/report.html", target.token))), 404);
}

#[test]
fn what_is_not_understood_is_refused_in_words() {
    let target = target();
    for body in [
        "",
        "{",
        "[]",
        "null",
        "{\"tab\": 1}",
        "{\"tab\":\"a\",\"id\":1,\"card\":\"examples/scan\",\"text\":\"\",\"path\":\"/x\"}",
    ] {
        let answer = target.raw(&target.post_text("compute", body));
        assert_eq!(status(&answer), 400, "{body}: {answer}");
    }
    assert_eq!(status(&target.post("compute", &ask("a", 1, "nowhere", "title = 1"))), 404);
    // A wrong description is an answer, not a refusal.
    let answer = target.post("compute", &ask("a", 2, "examples/scan", "title = \"t\"\nmodle = 1\n"));
    assert!(
        status(&answer) == 200 && answer.contains("did you mean `model`?") && answer.contains("\"line\":2"),
        "{answer}"
    );
}

fn now() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(100);
    LAST.fetch_add(1, Ordering::SeqCst)
}

/// Four tabs take all places for work of hours. When they close, or ask for something else, the places are free: otherwise the
/// requests that follow would not be answered before their connection gives up.
#[test]
fn closed_and_newer_requests_end_older_work() {
    let target = target();
    let mut busy: Vec<TcpStream> = (0..4)
        .map(|tab| {
            let mut stream = target.connect();
            let body = ask(&format!("tab{tab}"), 1, "yours", LONG).to_string();
            stream.write_all(target.post_text("compute", &body).as_bytes()).unwrap();
            // The first event has come: the work is under way.
            let mut some = [0; 64];
            assert!(stream.read(&mut some).unwrap() > 0);
            stream
        })
        .collect();
    // The newest of a tab wins over its older work, although no place was free.
    let scan = text_of("examples/scan");
    let newer = target.post("compute", &ask("tab0", 2, "examples/scan", &scan));
    assert!(newer.contains("event: done"), "{newer}");
    let older = read_all(&mut busy[0]);
    assert!(
        !older.contains("event: done") && !older.contains("\"complete\":true"),
        "it was ended, not finished"
    );
    // An older one that comes late is not done.
    assert_eq!(status(&target.post("compute", &ask("tab0", 1, "examples/scan", &scan))), 409);
    drop(busy);
    for tab in 5..9 {
        let answer = target.post("compute", &ask(&format!("tab{tab}"), 1, "examples/scan", &scan));
        assert!(answer.contains("event: done"), "{answer}");
    }
}

/// As many requests as four threads can send, for three seconds (or DIDACT_FLOOD_SECONDS): most are turned away or replaced, memory
/// stays where it was, and the next request is answered.
#[test]
#[expect(clippy::print_stderr, reason = "the rate is what one wants to know")]
fn a_flood_leaves_it_responsive_and_bounded() {
    let target = target();
    let seconds = std::env::var("DIDACT_FLOOD_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(3);
    let text = text_of("examples/first-figure");
    assert!(target.post("compute", &ask("warm", 1, "examples/first-figure", &text)).contains("event: done"));
    let before = resident();
    let until = Instant::now() + Duration::from_secs(seconds);
    let (sent, answered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while Instant::now() < until {
                    let tab = format!("flood{}", sent.fetch_add(1, Ordering::SeqCst) % 200);
                    let mut stream = target.connect();
                    let body = ask(&tab, now(), "examples/first-figure", &text).to_string();
                    if stream.write_all(target.post_text("compute", &body).as_bytes()).is_ok() {
                        // Some read the beginning, all go away.
                        let mut some = [0; 16];
                        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
                        answered.fetch_add(usize::from(stream.read(&mut some).is_ok()), Ordering::SeqCst);
                    }
                }
            });
        }
    });
    let more = resident() - before;
    let began = Instant::now();
    let answer = target.post("compute", &ask("after", 1, "examples/first-figure", &text));
    assert!(answer.contains("event: done"), "{answer}");
    let rate = sent.load(Ordering::SeqCst) as f64 / seconds as f64;
    eprintln!(
        "{rate:.0} requests a second, {:.1} MB more, {:?} for the next answer",
        1e-6 * more,
        began.elapsed()
    );
    assert!(more < 200e6, "{more} bytes more");
}

/// Bytes of memory that this process holds.
fn resident() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|l| l.starts_with("VmRSS:"));
    line.and_then(|l| l.split_whitespace().nth(1))
        .and_then(|n| n.parse::<f64>().ok())
        .map_or(0.0, |kilobytes| 1024.0 * kilobytes)
}
