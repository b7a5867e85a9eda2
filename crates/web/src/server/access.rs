//! Which requests are served: the checks of host, origin, session and role.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum_extra::TypedHeader;
use axum_extra::extract::CookieJar;
use axum_extra::headers::Authorization;
use axum_extra::headers::authorization::Bearer;
use serde_json::json;

use super::api;
use super::serve::Server;
use super::sessions::Session;
use crate::request::Role;

/// The header in which a change brings the session's proof.
const PROOF: &str = "x-skipstep-proof";
/// Headers of all responses. The page loads nothing from elsewhere, runs no script but its own
/// file, and cannot be framed.
const HEADERS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
         connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Refuses requests for other hosts and changes that other pages ask for, and adds the headers of
/// responses. The host is checked because a page elsewhere can give its name this host's address.
pub async fn guard(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let mut response = match check(&request, &server.options.names) {
        Ok(()) => next.run(request).await,
        Err(message) => refuse(StatusCode::FORBIDDEN, message),
    };
    let headers = response.headers_mut();
    headers.extend(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
    if server.options.is_secure() {
        let year = HeaderValue::from_static("max-age=31536000");
        headers.insert(header::STRICT_TRANSPORT_SECURITY, year);
    }
    response
}

fn check(request: &Request, names: &[String]) -> Result<(), &'static str> {
    let headers = request.headers();
    let host = text(headers, header::HOST).unwrap_or_default();
    if !is_ours(host, names) {
        return Err("this host has another name: give it to skipstep-web by --name");
    }
    if *request.method() == Method::GET {
        return Ok(());
    }
    let is_same = |origin: &str| origin.split_once("://").is_some_and(|(_, name)| name == host);
    let has_other_origin = text(headers, header::ORIGIN).is_some_and(|origin| !is_same(origin));
    let site = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
    if has_other_origin || site.is_some_and(|site| site != "same-origin") {
        return Err("another page asks for this change");
    }
    Ok(())
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// True if the host is an address, localhost, or one of the names of this host.
fn is_ours(host: &str, names: &[String]) -> bool {
    let Ok(host) = host.parse::<Authority>() else {
        return false;
    };
    let host = host.host();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok()
        || names.iter().any(|name| name.eq_ignore_ascii_case(host))
}

fn refuse(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({ "error": message }))).into_response()
}

/// A user who may read.
pub struct Viewer(pub Session);

/// A user who may change the filter, and who asks for this change on the page itself.
pub struct Changer(pub Session);

impl FromRequestParts<Arc<Server>> for Viewer {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Response> {
        if let Some(session) = session(&parts.headers, server) {
            return Ok(Viewer(session));
        }
        // programs send their token with each request
        let bearer = TypedHeader::<Authorization<Bearer>>::from_request_parts(parts, server).await;
        let token = match bearer {
            Ok(TypedHeader(Authorization(bearer))) => bearer.token().to_owned(),
            Err(_) => return Err(refuse(StatusCode::UNAUTHORIZED, "log in first")),
        };
        if !server.sessions.may_try(Instant::now()) {
            return Err(refuse(StatusCode::TOO_MANY_REQUESTS, api::TOO_MANY_FAILURES));
        }
        match api::identify(server, &token).await? {
            Some((role, name)) => Ok(Viewer(Session::of_program(token, role, name))),
            None => Err(refuse(StatusCode::UNAUTHORIZED, api::UNKNOWN_TOKEN)),
        }
    }
}

impl FromRequestParts<Arc<Server>> for Changer {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Response> {
        let Viewer(session) = Viewer::from_request_parts(parts, server).await?;
        let proof = parts.headers.get(PROOF).and_then(|value| value.to_str().ok());
        // a browser sends no token of a program by itself, so a program needs no proof
        if session.proof.is_some() && session.proof.as_deref() != proof {
            return Err(refuse(StatusCode::FORBIDDEN, "the page is old: load it again"));
        }
        if server.options.read_only {
            return Err(refuse(StatusCode::FORBIDDEN, "skipstep-web runs with --read-only"));
        }
        if session.role < Role::Writer {
            return Err(refuse(StatusCode::FORBIDDEN, "this needs the token of a writer"));
        }
        Ok(Changer(session))
    }
}

/// Returns the session of the cookie in a request.
pub fn session(headers: &HeaderMap, server: &Server) -> Option<Session> {
    let jar = CookieJar::from_headers(headers);
    server.sessions.find(jar.get(server.cookie_name())?.value(), Instant::now())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn verdict(method: &str, headers: &[(&str, &str)]) -> Result<(), &'static str> {
        let mut request = Request::builder().method(method).uri("/api/confirm");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        check(&request.body(Body::empty()).unwrap(), &["gateway.example".into()])
    }

    #[test]
    fn another_name_for_this_host_is_refused() {
        for host in
            ["localhost:8099", "127.0.0.1:8099", "[::1]:8099", "192.0.2.1", "Gateway.example:443"]
        {
            assert_eq!(verdict("GET", &[("host", host)]), Ok(()), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "", "a@localhost@b", "127.0.0.1.x"] {
            assert!(verdict("GET", &[("host", host)]).is_err(), "{host}");
        }
        assert!(verdict("GET", &[]).is_err());
    }

    #[test]
    fn changes_that_other_pages_ask_for_are_refused() {
        let host = ("host", "localhost:8099");
        let post = |name, value| verdict("POST", &[host, (name, value)]);
        assert_eq!(post("origin", "http://localhost:8099"), Ok(()));
        for origin in ["http://localhost:80", "https://evil.example", "null", ""] {
            assert!(post("origin", origin).is_err(), "{origin}");
        }
        assert_eq!(post("sec-fetch-site", "same-origin"), Ok(()));
        for site in ["cross-site", "same-site", "none"] {
            assert!(post("sec-fetch-site", site).is_err(), "{site}");
        }
    }
}
