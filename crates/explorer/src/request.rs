//! Who may ask: the token in the path, the exact host, the exact origin, JSON bodies of a bounded size.
//!
//! A page of another site can make a browser send requests to this port, but it cannot read the token, it cannot send another `Host`
//! than its own name (which a rebound name does not change), and it cannot hide its `Origin`.

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN};
use axum::http::{HeaderMap, Method, StatusCode};
use std::io;

/// Bytes of the body of a request. The largest description of the papers has 20 kB; three of them may be pinned beside it.
pub(crate) const LARGEST_BODY: usize = 1 << 20;

/// A refusal: the status and a sentence.
pub(crate) type Refused = (StatusCode, &'static str);

/// 128 random bits as hexadecimal digits, from the generator of the system.
pub(crate) fn token() -> io::Result<String> {
    let mut bytes = [0u8; 16];
    random(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(unix)]
fn random(bytes: &mut [u8]) -> io::Result<()> {
    use std::io::Read;
    std::fs::File::open("/dev/urandom")?.read_exact(bytes)
}

/// Keys of the standard library's hash maps come from the system's generator, a fresh one for every thread.
#[cfg(not(unix))]
fn random(bytes: &mut [u8]) -> io::Result<()> {
    use std::hash::{BuildHasher, Hasher};
    for (index, chunk) in bytes.chunks_mut(8).enumerate() {
        let drawn = std::thread::spawn(move || {
            let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
            hasher.write_usize(index);
            hasher.finish()
        });
        let drawn = drawn.join().map_err(|_| io::Error::other("no random numbers"))?;
        chunk.copy_from_slice(&drawn.to_le_bytes()[..chunk.len()]);
    }
    Ok(())
}

/// The names under which the page may be asked for.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    hosts: [String; 2],
    token: String,
}

impl Gate {
    pub(crate) fn new(port: u16, token: String) -> Self {
        Self { hosts: [format!("127.0.0.1:{port}"), format!("localhost:{port}")], token }
    }

    /// The parts of the path after the token, if the request may be answered.
    pub(crate) fn admit<'a>(
        &self,
        method: &Method,
        path: &'a str,
        headers: &HeaderMap,
    ) -> Result<Vec<&'a str>, Refused> {
        let forbidden = |why| Err((StatusCode::FORBIDDEN, why));
        let mut hosts = headers.get_all(HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(only), None) => only.to_str().unwrap_or_default(),
            _ => return forbidden("exactly one Host is needed"),
        };
        if !self.hosts.iter().any(|own| own == host) {
            return forbidden("this Host is not the explorer");
        }
        for origin in headers.get_all(ORIGIN) {
            let own = |name: &String| origin.as_bytes() == format!("http://{name}").as_bytes();
            if !self.hosts.iter().any(own) {
                return forbidden("this Origin is not the explorer");
            }
        }
        let mut parts = path.strip_prefix('/').unwrap_or_default().split('/');
        if !equal(parts.next().unwrap_or_default(), &self.token) {
            return forbidden(
                "the address lacks its token: take it from the line that `didact explore` printed",
            );
        }
        if *method == Method::POST {
            if headers.get(ORIGIN).is_none() {
                return forbidden("a request that asks for work needs an Origin");
            }
            let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
            if kind.split(';').next().unwrap_or_default().trim() != "application/json" {
                return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, "send application/json"));
            }
            let length = headers.get(CONTENT_LENGTH).and_then(|l| l.to_str().ok()?.parse::<u64>().ok());
            if length.is_some_and(|length| length > LARGEST_BODY as u64) {
                return Err(TOO_LARGE);
            }
        }
        Ok(parts.collect())
    }
}

const TOO_LARGE: Refused = (StatusCode::PAYLOAD_TOO_LARGE, "a request holds at most 1 MiB");

/// The whole body; no more than the limit is ever read.
pub(crate) async fn body(body: Body) -> Result<Bytes, Refused> {
    axum::body::to_bytes(body, LARGEST_BODY).await.map_err(|_| TOO_LARGE)
}

/// Whether two texts are equal, in a time that does not depend on where they differ.
fn equal(given: &str, own: &str) -> bool {
    let differing = given.bytes().zip(own.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == own.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn only_the_exact_host_origin_and_token_pass() {
        let gate = Gate::new(4100, "abc123".into());
        let get = |path: &str, pairs: &[(&'static str, &'static str)]| {
            gate.admit(&Method::GET, path, &headers(pairs)).map(|p| p.join("/")).map_err(|e| e.0.as_u16())
        };
        assert_eq!(get("/abc123/", &[("host", "127.0.0.1:4100")]), Ok(String::new()));
        assert_eq!(get("/abc123/a/b", &[("host", "localhost:4100")]), Ok("a/b".into()));
        for host in [
            "evil.example:4100",
            "127.0.0.1",
            "127.0.0.1:4101",
            "127.0.0.1.evil.example:4100",
            "127.1:4100",
            "LOCALHOST:4100",
            "localhost:4100.",
            "[::1]:4100",
            "0.0.0.0:4100",
            "user@127.0.0.1:4100",
        ] {
            assert_eq!(get("/abc123/", &[("host", host)]), Err(403), "{host}");
        }
        assert_eq!(get("/abc123/", &[]), Err(403));
        assert_eq!(get("/abc123/", &[("host", "127.0.0.1:4100"), ("host", "evil")]), Err(403));
        for path in ["/", "/abc12/", "/abc1234/", "/ABC123/", "//abc123/", "abc123", "/%61bc123/"] {
            assert_eq!(get(path, &[("host", "127.0.0.1:4100")]), Err(403), "{path}");
        }
        for origin in [
            "http://evil.example",
            "null",
            "https://127.0.0.1:4100",
            "http://127.0.0.1:41000",
            "http://127.0.0.1",
        ] {
            assert_eq!(
                get("/abc123/", &[("host", "127.0.0.1:4100"), ("origin", origin)]),
                Err(403),
                "{origin}"
            );
        }
    }

    #[test]
    fn work_needs_an_origin_json_and_a_small_body() {
        let gate = Gate::new(4100, "abc123".into());
        let post = |pairs: &[(&'static str, &'static str)]| {
            let mut all = vec![("host", "127.0.0.1:4100")];
            all.extend_from_slice(pairs);
            gate.admit(&Method::POST, "/abc123/compute", &headers(&all)).map(|_| ()).map_err(|e| e.0.as_u16())
        };
        let origin = ("origin", "http://127.0.0.1:4100");
        assert_eq!(post(&[origin, ("content-type", "application/json")]), Ok(()));
        assert_eq!(post(&[origin, ("content-type", "application/json; charset=utf-8")]), Ok(()));
        assert_eq!(post(&[("content-type", "application/json")]), Err(403));
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "application/jsonp",
            "",
        ] {
            assert_eq!(post(&[origin, ("content-type", kind)]), Err(415), "{kind}");
        }
        assert_eq!(
            post(&[origin, ("content-type", "application/json"), ("content-length", "104857600")]),
            Err(413)
        );
    }

    #[test]
    fn tokens_are_long_and_never_the_same() {
        let (a, b) = (token().unwrap(), token().unwrap());
        assert!(a.len() == 32 && a != b && a.bytes().all(|c| c.is_ascii_hexdigit()));
    }
}
