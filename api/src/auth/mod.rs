//! Authenticates requests by sessions of `/login` and by tokens of the master, and determines the events that a user
//! may see.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::http::header::{COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, Method};
use brine_auth::{ExternalAuth, Identity};
use brine_config::MasterConfig;
use brine_crypt::token::random_bytes;
use brine_digest::{Digest, hex};
use brine_value::{Map, Value};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::error::{ApiError, MasterError};
use crate::master::Master;
use crate::metrics;
use crate::visibility::Visibility;

/// The header with a session or a token.
pub(crate) const TOKEN_HEADER: &str = "x-auth-token";
/// The cookie with a session.
pub(crate) const COOKIE_NAME: &str = "session_id";
/// The maximum number of sessions, and of cached valid tokens.
const MAX_SESSIONS: usize = 100_000;
/// The time for which a token that the master has confirmed is cached as valid.
const CONFIRMATION_LIFETIME: Duration = Duration::from_secs(10);
/// The length of a session id and of a token, in characters.
const SESSION_LENGTH: usize = 40;
const TOKEN_LENGTH: usize = 64;

/// A login session, which lasts from `/login` to `/logout`.
#[derive(Debug)]
pub(crate) struct Session {
    /// The master's token behind the session.
    pub token: Arc<str>,
    /// The expiry time, in seconds since the epoch.
    expire: f64,
    /// Cancelled by the logout.
    ended: CancellationToken,
}

/// The credentials of an authenticated request.
#[derive(Debug, Clone)]
pub(crate) struct Authenticated {
    /// The master's token that authorises calls.
    pub token: Arc<str>,
    /// The user.
    pub user: Arc<User>,
    /// Cancelled when the user logs out.
    pub ended: CancellationToken,
    /// The digest of the session id; `None` for a request with a token.
    session: Option<String>,
}

/// The user of a valid token.
#[derive(Debug, Clone)]
pub(crate) struct User {
    /// The identity of the token.
    pub identity: Identity,
    /// The time at which the token expires, in seconds since the epoch.
    pub expire: f64,
    /// The events that the user may see, compiled once and shared by all streams.
    events: OnceLock<Arc<Visibility>>,
}

impl User {
    /// Reads the user from the fields of a token; `None` if one is missing.
    pub fn of_token(token: &Map) -> Option<Self> {
        let expire = token.get("expire").and_then(Value::as_f64)?;
        Some(User { identity: Identity::of_token(token)?, expire, events: OnceLock::new() })
    }

    /// Returns the remaining time of the token.
    pub fn remaining(&self) -> Duration {
        Duration::try_from_secs_f64(self.expire - now()).unwrap_or_default()
    }
}

/// Returns the time in seconds since the epoch.
pub(crate) fn now() -> f64 {
    jiff::Timestamp::now().as_microsecond() as f64 / 1e6
}

#[derive(Default)]
struct State {
    sessions: HashMap<String, Arc<Session>>,
    /// Tokens by digest, each with the time of the confirmation.
    confirmed: HashMap<String, (Arc<User>, Instant)>,
}

impl State {
    /// Caches a token as valid.
    fn confirm(&mut self, key: String, user: &Arc<User>) {
        make_room(&mut self.confirmed, |(user, at)| (at.elapsed() < CONFIRMATION_LIFETIME).then_some(user.expire));
        self.confirmed.insert(key, (Arc::clone(user), Instant::now()));
    }
}

/// Authenticates requests.
pub(crate) struct Auth {
    master: Arc<Master>,
    external: ExternalAuth,
    /// The user that the master runs as, if the configuration names it.
    own_user: Option<String>,
    nodegroups: Map,
    /// Whether users without an entry `events` see all events.
    open_events: bool,
    state: Mutex<State>,
}

/// Returns the lookup key of a secret: its digest, so that the timing of a lookup reveals nothing about the secret.
fn key(secret: &str) -> String {
    hex(Digest::Sha256.of(secret))
}

/// Returns the credential of a request, and whether it was in the cookie. As in Salt, the header has precedence.
fn credential(headers: &HeaderMap) -> Option<(String, bool)> {
    let header = headers.get(TOKEN_HEADER).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(token) = header.filter(|token| !token.is_empty()) {
        return Some((token.to_owned(), false));
    }
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(name, _)| *name == COOKIE_NAME)?;
    let value = value.trim_matches('"');
    (!value.is_empty()).then(|| (value.to_owned(), true))
}

/// Whether a string is hexadecimal, as session ids and tokens are.
pub(crate) fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The origins whose pages may use the cookie.
#[derive(Clone, Copy)]
pub(crate) struct Origins<'a> {
    /// The origins in `cors_origin`.
    pub allowed: &'a [String],
    /// The schemes of this server's own pages.
    pub schemes: &'a [&'a str],
}

impl<'a> Origins<'a> {
    /// Returns the origins for a request. Without TLS, pages have the scheme `https` only if a proxy speaks it: on this
    /// host, or elsewhere with the header `X-Forwarded-Proto`.
    pub fn of(allowed: &'a [String], is_tls: bool, peer: IpAddr, headers: &HeaderMap) -> Self {
        let is_forwarded = || headers.get("x-forwarded-proto").is_some_and(|scheme| scheme == "https");
        let schemes: &[&str] = match is_tls {
            true => &["https"],
            false if peer.is_loopback() || is_forwarded() => &["http", "https"],
            false => &["http"],
        };
        Origins { allowed, schemes }
    }
}

/// Rejects cross-site requests that use the cookie.
fn check_origin(headers: &HeaderMap, origins: Origins<'_>) -> Result<(), ApiError> {
    let text = |name| headers.get(name).and_then(|value: &axum::http::HeaderValue| value.to_str().ok());
    let is_foreign = match text(ORIGIN.as_str()) {
        Some(origin) => {
            let (scheme, host) = origin.split_once("://").unwrap_or_default();
            let is_own = origins.schemes.contains(&scheme) && Some(host) == text(HOST.as_str());
            !is_own && !origins.allowed.iter().any(|one| one == "*" || one == origin)
        }
        None => matches!(text("sec-fetch-site"), Some("cross-site" | "same-site")),
    };
    if is_foreign {
        tracing::warn!(
            origin = text(ORIGIN.as_str()),
            "a request of another site with the user's cookie is refused: allow the site with cors_origin"
        );
        return Err(ApiError::new(
            axum::http::StatusCode::FORBIDDEN,
            "the cookie is accepted from pages of this server alone: send the token as X-Auth-Token",
        ));
    }
    Ok(())
}

impl Auth {
    pub fn new(master: Arc<Master>, config: &MasterConfig) -> Self {
        Auth {
            master,
            external: ExternalAuth::new(&config.opts),
            own_user: config.user.clone(),
            nodegroups: config.nodegroups.clone(),
            open_events: config.open_events,
            state: Mutex::default(),
        }
    }

    /// Starts a session for a token with these fields. Returns the session id and the user.
    pub fn begin(&self, fields: &Map) -> Option<(String, Arc<User>)> {
        let user = Arc::new(User::of_token(fields)?);
        let token: Arc<str> = fields.get("token").and_then(Value::as_str)?.into();
        let id = hex(random_bytes::<{ SESSION_LENGTH / 2 }>());
        let session = Session { token: token.clone(), expire: user.expire, ended: CancellationToken::new() };
        let mut state = self.state.lock();
        make_room(&mut state.sessions, |session| (session.expire > now()).then_some(session.expire));
        state.sessions.insert(key(&id), Arc::new(session));
        state.confirm(key(&token), &user);
        drop(state);
        metrics::LOGINS.add(1);
        Some((id, user))
    }

    /// Authenticates a request by its header or cookie. `origins` are those of pages that may use the cookie.
    pub async fn authenticate(
        &self,
        headers: &HeaderMap,
        method: &Method,
        is_upgrade: bool,
        origins: Origins<'_>,
        peer: IpAddr,
    ) -> Result<Authenticated, ApiError> {
        let Some((secret, is_cookie)) = credential(headers) else {
            return Err(refuse(peer, "it has neither X-Auth-Token nor the cookie of a session"));
        };
        if is_cookie && (!method.is_safe() || is_upgrade) {
            check_origin(headers, origins)?;
        }
        self.by_secret(&secret, peer).await
    }

    /// Authenticates by a session id or a token.
    pub async fn by_secret(&self, secret: &str, peer: IpAddr) -> Result<Authenticated, ApiError> {
        if !is_hex(secret) {
            return Err(refuse(peer, "the session or token is not hexadecimal"));
        }
        let session_key = key(secret);
        let session = self.state.lock().sessions.get(&session_key).cloned();
        let (token, ended, session) = match session {
            Some(session) if session.expire > now() => {
                (Arc::clone(&session.token), session.ended.clone(), Some(session_key))
            }
            Some(_) => return Err(refuse(peer, "the session has expired")),
            None if secret.len() == TOKEN_LENGTH => (Arc::from(secret), CancellationToken::new(), None),
            None => return Err(refuse(peer, "the session is unknown: it has ended, or salt-api has been restarted")),
        };
        match self.user(&token).await? {
            Some(user) => Ok(Authenticated { token, user, ended, session }),
            None => Err(refuse(peer, "the token is unknown to the master, revoked or expired")),
        }
    }

    /// Returns the user of a token, if it is valid. The master's confirmation is cached for [`CONFIRMATION_LIFETIME`].
    pub async fn user(&self, token: &str) -> Result<Option<Arc<User>>, MasterError> {
        let key = key(token);
        let confirmation = self.state.lock().confirmed.get(&key).cloned();
        if let Some((user, _)) =
            confirmation.filter(|(user, at)| at.elapsed() < CONFIRMATION_LIFETIME && !user.remaining().is_zero())
        {
            return Ok(Some(user));
        }
        let fields = self.master.token(token).await?;
        let user = fields.as_ref().and_then(User::of_token).filter(|user| !user.remaining().is_zero()).map(Arc::new);
        let mut state = self.state.lock();
        match &user {
            Some(user) => state.confirm(key, user),
            None => _ = state.confirmed.remove(&key),
        }
        Ok(user)
    }

    /// Ends the session of a request, and the streams that were opened with it.
    pub fn end(&self, authenticated: &Authenticated) {
        let mut state = self.state.lock();
        state.confirmed.remove(&key(&authenticated.token));
        if let Some(session) = &authenticated.session {
            state.sessions.remove(session);
        }
        drop(state);
        authenticated.ended.cancel();
    }

    /// Returns the permissions of a user in the form of Salt's `perms`: sorted strings, then mappings.
    pub fn permissions(&self, user: &User) -> Vec<Value> {
        let all = self.external.entries(&user.identity).unwrap_or_default();
        let (mut texts, mut others): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
        for entry in all {
            let list = if entry.as_str().is_some() { &mut texts } else { &mut others };
            if !list.contains(&entry) {
                list.push(entry);
            }
        }
        texts.sort_by_key(ToString::to_string);
        texts.extend(others);
        texts
    }

    /// Returns the events that a user may see.
    pub fn events_of(&self, user: &User) -> Arc<Visibility> {
        let compile = || {
            let entries = self.external.entries(&user.identity).unwrap_or_default();
            let name = user.identity.username();
            let name = (!brine_auth::may_be_masters(name, self.own_user.as_deref())).then(|| name.to_string());
            Arc::new(Visibility::new(name, &entries, &self.nodegroups, self.open_events))
        };
        Arc::clone(user.events.get_or_init(compile))
    }
}

fn refuse(peer: IpAddr, reason: &str) -> ApiError {
    metrics::UNAUTHENTICATED.add(1);
    tracing::info!(%peer, reason, "a request is not authenticated");
    ApiError::no_session()
}

/// Frees space in a full table: removes expired entries, then the entries that expire first. `valid_until` returns
/// `None` for an expired entry.
fn make_room<T>(table: &mut HashMap<String, T>, valid_until: impl Fn(&T) -> Option<f64>) {
    if table.len() < MAX_SESSIONS {
        return;
    }
    table.retain(|_, one| valid_until(one).is_some());
    if table.len() < MAX_SESSIONS {
        return;
    }
    let mut all: Vec<(f64, String)> =
        table.iter().map(|(key, one)| (valid_until(one).unwrap_or(0.0), key.clone())).collect();
    all.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    tracing::warn!(removed = MAX_SESSIONS / 10, "the oldest sessions are ended: there are too many");
    for (_, key) in all.into_iter().take(MAX_SESSIONS / 10) {
        table.remove(&key);
    }
}

#[cfg(test)]
mod tests;
