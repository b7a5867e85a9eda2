//! The start of the server: its parts, its routes, its socket.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::routing::{get, post};
use axum_server::tls_rustls::RustlsConfig;
use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;

use super::broker::Broker;
use super::history::{self, History};
use super::options::Options;
use super::sessions::Sessions;
use super::streams::{self, Feed};
use super::{access, api, pages, states};
use crate::request::{MAX_REQUEST, Request};

/// Time in which open requests may end when the server ends.
const LAST_SECONDS: Duration = Duration::from_secs(2);

/// The parts that all requests share.
pub struct Server {
    /// The command line.
    pub options: Options,
    /// Name of this host, as the page shows it.
    pub host: String,
    /// Token of clients with a certificate.
    pub client_token: Option<String>,
    /// The way to the broker.
    pub broker: Broker,
    /// Users who have logged in.
    pub sessions: Sessions,
    /// Counters of the last hour.
    pub history: History,
    /// Logged packets.
    pub log: Arc<Feed>,
    /// Dropped packets.
    pub drops: Arc<Feed>,
    /// Places for pages that read logged or dropped packets.
    pub readers_of_streams: Arc<Semaphore>,
    /// Places for requests that read all states.
    pub readers_of_states: Semaphore,
}

impl Server {
    fn new(options: Options) -> Result<Server> {
        let read =
            |path: &Path| fs::read_to_string(path).with_context(|| path.display().to_string());
        let client_token = options.client_token.as_deref().map(read).transpose()?;
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Ok(Server {
            host: host.trim().to_owned(),
            client_token: client_token.map(|token| token.trim().to_owned()),
            broker: Broker::new(&options.broker),
            sessions: Sessions::default(),
            history: History::default(),
            log: Feed::new(Request::Log),
            drops: Feed::new(Request::Drops),
            readers_of_streams: streams::places(),
            readers_of_states: Semaphore::new(2),
            options,
        })
    }

    /// Returns the name of the cookie. With HTTPS, browsers send a cookie of this name to this host
    /// only.
    pub fn cookie_name(&self) -> &'static str {
        if self.options.is_secure() { "__Host-skipstep" } else { "skipstep" }
    }
}

/// Serves the page until the process gets SIGTERM or SIGINT.
///
/// # Errors
/// Fails if the command line is unsafe, if a file cannot be read, or if the address is taken.
pub fn run(options: Options) -> Result<()> {
    options.check()?;
    let server = Arc::new(Server::new(options)?);
    tokio::runtime::Runtime::new()?.block_on(serve(server))
}

async fn serve(server: Arc<Server>) -> Result<()> {
    tokio::spawn(history::take_samples(Arc::clone(&server)));
    let routes = routes(&server);
    let options = &server.options;
    if let Some(path) = &options.unix {
        return serve_unix(path, routes).await.with_context(|| path.display().to_string());
    }
    let handle = axum_server::Handle::new();
    tokio::spawn(end_by_signal(handle.clone()));
    let service = routes.into_make_service();
    println!("skipstep-web: {}", url(options));
    let result = match tls(options)? {
        Some(config) => {
            let config = RustlsConfig::from_config(Arc::new(config));
            tokio::spawn(reload_certificates(config.clone(), options.clone()));
            let server = axum_server::bind_rustls(options.listen, config);
            server.handle(handle).serve(service).await
        }
        None => axum_server::bind(options.listen).handle(handle).serve(service).await,
    };
    result.with_context(|| format!("--listen {}", options.listen))
}

fn url(options: &Options) -> String {
    let scheme = if options.is_secure() { "https" } else { "http" };
    let name = options.names.first().map(|name| format!("{name}:{}", options.listen.port()));
    format!("{scheme}://{}/", name.unwrap_or_else(|| options.listen.to_string()))
}

/// Returns the routes with their checks.
fn routes(server: &Arc<Server>) -> Router {
    Router::new()
        .route("/", get(pages::index))
        .route("/page.js", get(pages::script))
        .route("/page.css", get(pages::style))
        .route("/icon.svg", get(pages::icon))
        .route("/metrics", get(api::metrics))
        .route("/api/session", get(api::current_session))
        .route("/api/login", post(api::login))
        .route("/api/logout", post(api::logout))
        .route("/api/history", get(history::read))
        .route("/api/states", get(states::read))
        .route("/api/log", get(streams::log))
        .route("/api/drops", get(streams::drops))
        .route("/api/{verb}", get(api::read).post(api::change))
        .layer(DefaultBodyLimit::max(MAX_REQUEST as usize))
        .layer(middleware::from_fn_with_state(Arc::clone(server), access::guard))
        .with_state(Arc::clone(server))
}

async fn serve_unix(path: &Path, routes: Router) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    println!("skipstep-web: unix:{}", path.display());
    tokio::select! {
        result = axum::serve(listener, routes) => result?,
        () = terminated() => {}
    }
    Ok(())
}

async fn end_by_signal(handle: axum_server::Handle<std::net::SocketAddr>) {
    terminated().await;
    handle.graceful_shutdown(Some(LAST_SECONDS));
}

/// Waits for SIGTERM or SIGINT.
async fn terminated() {
    let (Ok(mut term), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// Reads the certificates again at each SIGHUP. Old ones stay if the new ones are wrong.
async fn reload_certificates(config: RustlsConfig, options: Options) {
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
    while hangup.recv().await.is_some() {
        match tls(&options) {
            Ok(Some(new)) => config.reload_from_config(Arc::new(new)),
            Ok(None) => {}
            Err(error) => eprintln!("skipstep-web: {error:#}"),
        }
    }
}

/// Returns the settings of TLS, or `None` without a certificate.
fn tls(options: &Options) -> Result<Option<ServerConfig>> {
    let (Some(certificate), Some(key)) = (&options.certificate, &options.key) else {
        return Ok(None);
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    let builder = match &options.client_authority {
        Some(authority) => builder.with_client_cert_verifier(verifier(authority, provider)?),
        None => builder.with_no_client_auth(),
    };
    let chain = certificates(certificate)?;
    let key = PrivateKeyDer::from_pem_file(key).with_context(|| key.display().to_string())?;
    let mut config = builder.with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(config))
}

fn verifier(
    authority: &Path,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(authority)? {
        roots.add(certificate)?;
    }
    Ok(WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect)
        .with_context(|| file.display().to_string())
}
