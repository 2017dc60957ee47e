//! The page: our own HTML, style and script, and those of the figures. Nothing is fetched from anywhere else.

use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use didact_figure::interactive;

/// File name, type, text.
const FILES: [(&str, &str, &str); 9] = [
    ("", "text/html; charset=utf-8", include_str!("../page/index.html")),
    ("style.css", "text/css; charset=utf-8", include_str!("../page/style.css")),
    ("figure.css", "text/css; charset=utf-8", interactive::STYLE),
    ("figure.js", "text/javascript; charset=utf-8", interactive::SCRIPT),
    ("app.js", "text/javascript; charset=utf-8", include_str!("../page/app.js")),
    ("net.js", "text/javascript; charset=utf-8", include_str!("../page/net.js")),
    ("form.js", "text/javascript; charset=utf-8", include_str!("../page/form.js")),
    ("link.js", "text/javascript; charset=utf-8", include_str!("../page/link.js")),
    ("show.js", "text/javascript; charset=utf-8", include_str!("../page/show.js")),
];

/// Scripts, styles and requests of this server only; drawings have style attributes and embedded pictures.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A report has its script inside. It runs apart from this page, as if it came from another site.
const REPORT_POLICY: &str = "sandbox allow-scripts allow-downloads allow-popups; default-src 'none'; script-src 'unsafe-inline'; \
                             style-src 'unsafe-inline'; img-src data: blob:";

/// A file of the page.
pub(crate) fn file(name: &str) -> Option<Response> {
    let (_, kind, text) = FILES.iter().find(|(known, ..)| *known == name)?;
    Some(response(StatusCode::OK, kind, *text))
}

/// An answer with the headers that all answers have.
pub(crate) fn response(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// A report or a file beside it.
pub(crate) fn of_report(name: &str, bytes: Vec<u8>) -> Response {
    let kind = match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("pdf") => "application/pdf",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    };
    let mut response = response(StatusCode::OK, kind, bytes);
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(REPORT_POLICY));
    response
}

/// Adds what keeps an answer where it belongs.
pub(crate) fn sealed(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    for (name, value) in [
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_asks_nothing_of_the_network() {
        let bytes: usize = FILES.iter().map(|(_, _, text)| text.len()).sum();
        assert!(bytes < 100_000, "{bytes} bytes");
        for (name, _, text) in FILES {
            let elsewhere = text.split("http").skip(1).filter(|rest| {
                rest.starts_with("://") && !rest.starts_with("://www.w3.org/2000/svg")
                    || rest.starts_with("s://")
            });
            assert_eq!(elsewhere.count(), 0, "{name} names an address");
            assert!(!text.contains("@import") && !text.contains("eval("), "{name}");
        }
    }
}
