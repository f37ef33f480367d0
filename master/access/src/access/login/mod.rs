//! Logins with passwords of `external_auth`, and tokens.
//!
//! Unauthenticated peers may send passwords, and backends may hang. So each backend has a limit of concurrent logins
//! and a short queue (`limits`), failed attempts delay further ones or those of their address, and all failures take
//! the same time regardless of their cause. Backends run on an executor of their own, which long runner functions
//! cannot fill.

mod limits;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use brine_auth::{
    Attempt, AuthError, Credentials, ExternalAuth, Identity, NewToken, Outcome, Throttle, Token, TokenError, TokenStore,
};
use brine_runtime::executors::{Executor, ExecutorError, MayBlock};
use brine_value::Value;
use brine_wire::{Proof, TokenRequest};
use brine_zmtp::Peer;
use jiff::Timestamp;
use rand::RngExt as _;
use tokio::time::Instant;

use super::{Access, Refusal, truncated, user_of};
use crate::metrics;
use limits::{BackendLimits, LoginPermit};

/// The number of concurrent calls of a custom token store.
pub(super) const MAX_CUSTOM_CALLS: usize = 8;
/// The timeout of waiting for such a call.
const CUSTOM_CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// The minimum duration of a failure, so that it does not reveal the cause. If a backend takes longer to reject a
/// password, all of its failures do, up to the maximum below.
const MIN_FAILURE_TIME: Duration = Duration::from_secs(1);
const MAX_FAILURE_TIME: Duration = Duration::from_secs(10);

/// The reason why a login fails. It is only logged: clients receive the same message in each case.
#[derive(Debug, thiserror::Error)]
enum LoginError {
    #[error("too many failures: retry in {} s", .0.as_secs() + 1)]
    Throttled(Duration),
    #[error("too many concurrent logins with this backend: it is slow, or passwords are being guessed")]
    Busy,
    #[error(transparent)]
    Refused(#[from] AuthError),
    #[error(transparent)]
    Executor(#[from] ExecutorError),
}

/// The reason why tokens cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TokenAccessError {
    /// All calls of the custom store that may run at a time are waiting for it.
    #[error("the store of eauth_tokens is busy")]
    Busy,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] TokenError),
    /// The master stops, or no thread is free.
    #[error(transparent)]
    Executor(#[from] ExecutorError),
}

impl LoginError {
    /// Returns the value of the metric's label.
    fn outcome(&self) -> &'static str {
        match self {
            LoginError::Throttled(_) => "throttled",
            LoginError::Busy => "busy",
            LoginError::Refused(AuthError::Backend(_)) | LoginError::Executor(_) => "failed",
            LoginError::Refused(_) => "refused",
        }
    }
}

/// The authentication backends, and the limits on their use.
pub(super) struct Logins {
    external: Arc<ExternalAuth>,
    throttle: Arc<Throttle>,
    systems: HashMap<String, BackendLimits>,
}

impl Logins {
    pub fn new(external: Arc<ExternalAuth>) -> Self {
        let systems = external.systems().map(|name| (name.to_owned(), BackendLimits::new())).collect();
        Logins { external, throttle: Arc::default(), systems }
    }

    fn limits(&self, eauth: &str) -> Result<&BackendLimits, LoginError> {
        self.systems.get(eauth).ok_or_else(|| AuthError::NotConfigured(eauth.to_owned()).into())
    }

    /// Calls a backend on a blocking thread, which holds `permit` until the end.
    async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        jobs: &Executor,
        permit: LoginPermit,
        ask: impl FnOnce(&Self) -> Result<T, AuthError> + Send + 'static,
    ) -> Result<T, LoginError> {
        let logins = Arc::clone(self);
        let asked = jobs.run(move |_| {
            let _running = permit;
            ask(&logins)
        });
        Ok(asked.await??)
    }

    /// Verifies a password, within the limits of its backend.
    async fn verify(
        self: &Arc<Self>,
        jobs: &Executor,
        address: Option<IpAddr>,
        credentials: Credentials,
    ) -> Result<Identity, LoginError> {
        if !credentials.are_plausible() {
            return Err(AuthError::Implausible.into());
        }
        let Credentials { eauth, username, .. } = &credentials;
        let limits = self.limits(eauth)?;
        // Held until the password is verified, so that concurrent and queued guesses are throttled too.
        let attempt = self.throttle.begin(address, eauth, username, Instant::now().into_std());
        let attempt = attempt.map_err(LoginError::Throttled)?;
        let delay = attempt.delay();
        if !delay.is_zero() {
            // Even a sleep of no time lasts a millisecond.
            tokio::time::sleep(delay).await;
        }
        let permit = limits.permit_from(address).await?;
        let verify = move |logins: &Self| {
            let begun = Instant::now();
            let outcome = logins.external.authenticate(&credentials);
            logins.record(attempt, &credentials.eauth, address, &outcome, begun);
            outcome
        };
        self.ask(jobs, permit, verify).await
    }

    /// Records the outcome of a login. Errors of the backend are ignored: they do not mean that the password is wrong.
    fn record(
        &self,
        attempt: Attempt,
        eauth: &str,
        address: Option<IpAddr>,
        outcome: &Result<Identity, AuthError>,
        begun: Instant,
    ) {
        let recorded = match outcome {
            Ok(_) => Outcome::Succeeded,
            Err(AuthError::Backend(_)) => return,
            Err(_) => Outcome::Failed,
        };
        attempt.end(recorded, Instant::now().into_std());
        let Some(limits) = self.systems.get(eauth) else { return };
        if outcome.is_ok() {
            limits.succeeded(address);
            return;
        }
        let taken = begun.elapsed().min(MAX_FAILURE_TIME).as_millis();
        limits.slowest.fetch_max(u64::try_from(taken).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns the time that a failure of this backend takes.
    fn failure_time(&self, eauth: &str) -> Duration {
        let slowest = self.systems.get(eauth).map_or(0, |limits| limits.slowest.load(Ordering::Relaxed));
        let part = rand::rng().random_range(1.0..1.5);
        MIN_FAILURE_TIME.max(Duration::from_millis(slowest)).mul_f64(part)
    }

    /// Returns the effective entries of a user who is or was authenticated.
    async fn entries(self: &Arc<Self>, jobs: &Executor, identity: &Identity) -> Result<Vec<Value>, LoginError> {
        if !self.external.must_ask(identity) {
            let gone = || AuthError::NotConfigured(identity.eauth().to_owned());
            return Ok(self.external.entries(identity).ok_or_else(gone)?);
        }
        let permit = self.limits(identity.eauth())?.permit(true).await?;
        let identity = identity.clone();
        self.ask(jobs, permit, move |logins| logins.external.current_entries(&identity)).await
    }
}

/// Returns the address to which failures are attributed. Local connections have none: their failures count by user
/// only.
fn remote(peer: &Peer) -> Option<IpAddr> {
    // Requests that the REST API forwards have the address of its client, without a port.
    let address =
        peer.address.parse::<SocketAddr>().map(|address| address.ip()).or_else(|_| peer.address.parse()).ok()?;
    (!address.to_canonical().is_loopback()).then_some(address)
}

impl Access {
    /// Verifies a password. The result does not reveal whether the user's name or the password was wrong.
    pub(super) async fn authenticate_user(&self, peer: &Peer, proof: &Proof) -> Option<Identity> {
        let Proof::Password { eauth, username, password } = proof else { return None };
        let begun = Instant::now();
        let credentials = Credentials { eauth: eauth.clone(), username: username.clone(), password: password.clone() };
        let label = if self.logins.systems.contains_key(eauth) { eauth } else { "(other)" };
        match self.logins.verify(&self.backends, remote(peer), credentials).await {
            Ok(identity) => {
                metrics::LOGINS.with(&[label, "accepted"]).add(1);
                Some(identity)
            }
            Err(error) => {
                metrics::LOGINS.with(&[label, error.outcome()]).add(1);
                let (user, eauth_shown) = (truncated(username), truncated(eauth));
                tracing::warn!(peer = %peer.address, user, eauth = eauth_shown, reason = %error, "a user is not authenticated");
                tokio::time::sleep(self.logins.failure_time(eauth).saturating_sub(begun.elapsed())).await;
                None
            }
        }
    }

    /// Returns the effective entries of a user who is or was authenticated; `None` if the backend or the account is no
    /// longer valid.
    pub(super) async fn entries_of(&self, identity: &Identity) -> Option<Vec<Value>> {
        match self.logins.entries(&self.backends, identity).await {
            Ok(entries) => Some(entries),
            Err(reason) => {
                let (user, eauth) = (identity.username(), identity.eauth());
                tracing::warn!(%user, eauth, %reason, "an authenticated user is refused");
                None
            }
        }
    }

    /// Returns a token; `None` if it is unknown, revoked or expired.
    pub async fn token(&self, secret: &str) -> Option<Token> {
        let secret = secret.to_owned();
        match self.with_tokens(move |tokens| tokens.get(&secret, Timestamp::now())).await {
            Ok(token) => token,
            Err(error) => {
                tracing::error!(%error, "reading a token failed");
                None
            }
        }
    }

    /// Runs an operation on the tokens. A custom store may hang: its calls are limited to [`MAX_CUSTOM_CALLS`] at a
    /// time, so that they cannot use up the threads that the master's store needs.
    async fn with_tokens<R: Send + 'static>(
        &self,
        operation: impl FnOnce(&TokenStore) -> Result<R, TokenError> + Send + 'static,
    ) -> Result<R, TokenAccessError> {
        let result = if let Some(custom_tokens) = &self.custom_tokens {
            let permit = tokio::time::timeout(CUSTOM_CALL_TIMEOUT, Arc::clone(custom_tokens).acquire_owned()).await;
            let Ok(Ok(permit)) = permit else { return Err(TokenAccessError::Busy) };
            let storage = self.storage.clone();
            let work = move |thread: &MayBlock| {
                let result = operation(&storage.get(thread).tokens);
                drop(permit);
                result
            };
            self.backends.run(work).await
        } else {
            self.storage.run(move |storage| operation(&storage.tokens)).await
        };
        Ok(result??)
    }

    /// Removes expired tokens. Returns their number.
    ///
    /// # Errors
    /// The store is busy or failed.
    pub async fn remove_expired_tokens(&self) -> Result<usize, TokenAccessError> {
        self.with_tokens(|tokens| tokens.remove_expired(Timestamp::now())).await
    }

    /// Creates a token for a user with a password.
    pub async fn make_token(&self, peer: &Peer, request: TokenRequest) -> Option<NewToken> {
        let Some(identity) = self.authenticate_user(peer, &request.proof).await else {
            let user = truncated(user_of(Some(&request.proof), ""));
            let refusal = Refusal::Authentication { kind: "eauth", user: user.clone() };
            self.publish_refusal(peer, "mk_token", &refusal, &user, None).await;
            return None;
        };
        peer.authenticate();
        let entries = if self.config.keep_acl_in_token { Some(self.entries_of(&identity).await?) } else { None };
        let identity = identity.with_entries(entries);
        let user = identity.username().clone();
        let chosen = request.expire.filter(|_| self.may_choose_time(&identity));
        if request.expire.is_some() && chosen.is_none() {
            tracing::info!(%user, "the requested lifetime of a token is replaced by the option token_expire: token_expire_user_override does not name the user");
        }
        let valid = chosen
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .unwrap_or(Duration::from_secs(self.config.token_expire));
        match self.with_tokens(move |tokens| tokens.create(identity, valid, Timestamp::now())).await {
            Ok(made) => {
                tracing::info!(peer = %peer.address, %user, expire = %made.token.expire, "token made");
                Some(made)
            }
            Err(error) => {
                tracing::error!(%user, %error, "creating a token failed");
                None
            }
        }
    }

    /// Whether a user may choose the lifetime of a token.
    fn may_choose_time(&self, identity: &Identity) -> bool {
        match &self.config.token_expire_user_override {
            Value::Map(by_system) => {
                let users = by_system.get(identity.eauth()).and_then(Value::as_list).unwrap_or_default();
                users.iter().filter_map(Value::as_str).any(|user| self.external.is_named(identity, user))
            }
            all => all.as_bool() == Some(true),
        }
    }
}

#[cfg(test)]
mod tests;
