//! The requests of the page, under `/api`.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::{Cookie, SameSite};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::access::{Changer, Viewer, session};
use super::broker::{Answer, Failure};
use super::serve::Server;
use crate::request::{Request, Role};

/// The message after too many failed logins.
pub const TOO_MANY_FAILURES: &str = "too many failed logins: wait a minute";
/// The message for a token that the broker does not know.
pub const UNKNOWN_TOKEN: &str = "nobody has this token: on the filter's host, `skipstep-broker token add writer NAME` makes one";

/// The body of a login.
#[derive(Deserialize)]
pub struct Login {
    token: String,
}

/// Logs a user in.
pub async fn login(
    State(server): State<Arc<Server>>,
    jar: CookieJar,
    Json(login): Json<Login>,
) -> Result<Response, Response> {
    start_session(&server, jar, login.token.trim().to_owned()).await
}

/// Looks the token up, starts a session, and answers with it.
async fn start_session(
    server: &Arc<Server>,
    jar: CookieJar,
    token: String,
) -> Result<Response, Response> {
    let now = Instant::now();
    if !server.sessions.may_try(now) {
        return Err(error(StatusCode::TOO_MANY_REQUESTS, TOO_MANY_FAILURES));
    }
    let Some((role, name)) = identify(server, &token).await? else {
        return Err(error(StatusCode::UNAUTHORIZED, UNKNOWN_TOKEN));
    };
    let secret = server
        .sessions
        .start(token, role, name, now)
        .map_err(|failure| error(StatusCode::INTERNAL_SERVER_ERROR, &format!("{failure:#}")))?;
    let cookie = Cookie::build((server.cookie_name(), secret.clone()))
        .path("/")
        .http_only(true)
        .secure(server.options.is_secure())
        .same_site(SameSite::Strict);
    let found = server.sessions.find(&secret, now);
    let body = found.map(|session| describe(&session, server)).unwrap_or_default();
    Ok((jar.add(cookie), Json(body)).into_response())
}

/// Returns the role and the name of a token's user. Counts a failure if nobody has the token.
///
/// # Errors
/// Returns a response if the broker does not answer.
pub async fn identify(server: &Server, token: &str) -> Result<Option<(Role, String)>, Response> {
    #[derive(Deserialize)]
    struct User {
        role: Role,
        name: String,
    }
    match server.broker.ask(Some(token.to_owned()), Request::Role).await {
        Ok(Answer { body, .. }) => match serde_json::from_slice::<User>(&body) {
            Ok(user) => Ok(Some((user.role, user.name))),
            Err(failure) => Err(error(StatusCode::BAD_GATEWAY, &failure.to_string())),
        },
        Err(Failure::Denied(_)) => {
            server.sessions.count_failure();
            Ok(None)
        }
        Err(failure) => Err(failure.into_response()),
    }
}

/// Answers with the user's session. A client with a certificate gets one without a login.
pub async fn current_session(
    State(server): State<Arc<Server>>,
    headers: HeaderMap,
    jar: CookieJar,
) -> Result<Response, Response> {
    match (session(&headers, &server), &server.client_token) {
        (Some(session), _) => Ok(Json(describe(&session, &server)).into_response()),
        (None, Some(token)) => start_session(&server, jar, token.clone()).await,
        (None, None) => Err(error(StatusCode::UNAUTHORIZED, "log in first")),
    }
}

fn describe(session: &super::sessions::Session, server: &Server) -> Value {
    let can_change = session.role == Role::Writer && !server.options.read_only;
    json!({
        "name": session.name,
        "role": session.role,
        "can_change": can_change,
        "proof": session.proof,
        "host": server.host,
    })
}

/// Ends the user's session.
pub async fn logout(State(server): State<Arc<Server>>, jar: CookieJar) -> Response {
    if let Some(cookie) = jar.get(server.cookie_name()) {
        server.sessions.end(cookie.value());
    }
    let removal = Cookie::build((server.cookie_name(), "")).path("/");
    (jar.remove(removal), StatusCode::NO_CONTENT).into_response()
}

/// Answers a request that only reads. The path has the verb, and the query has the fields.
pub async fn read(
    State(server): State<Arc<Server>>,
    _: Viewer,
    Path(verb): Path<String>,
    Query(fields): Query<Map<String, Value>>,
) -> Result<Response, Response> {
    let request = parse(verb, fields).map_err(IntoResponse::into_response)?;
    let is_ours = request.needs().is_none()
        && !matches!(
            request,
            Request::Role | Request::States | Request::Log | Request::Drops | Request::Metrics
        );
    if !is_ours {
        return Err(error(StatusCode::METHOD_NOT_ALLOWED, "this is no request to read"));
    }
    let kind = match request {
        Request::File => "text/plain; charset=utf-8",
        _ => "application/json",
    };
    let answer = server.broker.ask(None, request).await.map_err(IntoResponse::into_response)?;
    Ok(([(header::CONTENT_TYPE, kind)], answer.body).into_response())
}

/// Executes a change. The path has the verb, and the body has the fields.
pub async fn change(
    State(server): State<Arc<Server>>,
    Changer(session): Changer,
    Path(verb): Path<String>,
    Json(fields): Json<Map<String, Value>>,
) -> Result<Response, Response> {
    let request = parse(verb, fields).map_err(IntoResponse::into_response)?;
    if request.needs().is_none() {
        return Err(error(StatusCode::METHOD_NOT_ALLOWED, "this is no change"));
    }
    let token = session.token.clone();
    match server.broker.ask(Some(token), request).await {
        Ok(Answer { body, messages }) => {
            let result: Value = serde_json::from_slice(&body).unwrap_or_default();
            Ok(Json(json!({ "messages": messages.trim_end(), "result": result })).into_response())
        }
        Err(failure) => {
            if matches!(failure, Failure::Denied(_)) {
                // the token was removed, or lost its rights, after the login
                server.sessions.end_all_of(&session.token);
            }
            Err(failure.into_response())
        }
    }
}

/// Answers with the metrics, in the form of OpenMetrics.
pub async fn metrics(State(server): State<Arc<Server>>, _: Viewer) -> Result<Response, Failure> {
    let answer = server.broker.ask(None, Request::Metrics).await?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], answer.body).into_response())
}

/// Builds a request for the broker from its verb and fields, and checks it.
fn parse(verb: String, mut fields: Map<String, Value>) -> Result<Request, Failure> {
    fields.insert("verb".into(), Value::String(verb));
    let request: Request = serde_json::from_value(Value::Object(fields))
        .map_err(|failure| Failure::Refused(failure.to_string()))?;
    request.check().map_err(Failure::Refused)?;
    Ok(request)
}

/// Returns a response with a message for the user.
pub fn error(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({ "error": message }))).into_response()
}
