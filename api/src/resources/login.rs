//! Sessions and tokens: `/login`, `/logout`, `/token`.

use std::net::IpAddr;

use axum::http::{HeaderValue, header};
use brine_auth::fold;
use brine_function::Args;
use brine_value::{Map, Value, list, map};
use brine_wire::{Proof, TokenRequest};

use crate::answer::Answer;
use crate::auth::{COOKIE_NAME, TOKEN_HEADER};
use crate::context::RequestContext;
use crate::error::ApiError;
use crate::metrics;

const WRONG: &str = "Could not authenticate using provided credentials";
const NEEDED: &str = "Require \"username\", \"password\", and \"eauth\" params";

/// Handles `GET /login`.
pub(crate) async fn ask(context: RequestContext) -> Answer {
    let mut response = context.reply(&map! {"status" => Value::Nil, "return" => "Please log in"}.into())?;
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Session"));
    Ok(response)
}

/// Handles `POST /login`: starts a session.
pub(crate) async fn login(mut context: RequestContext) -> Answer {
    let credentials =
        context.login_payload().await?.lowstate().unwrap_or_default().into_iter().next().unwrap_or_default();
    let wrong = || ApiError::unauthorized(WRONG);
    let Some(proof) = password(&credentials) else { return Err(wrong()) };
    let expire = expire(&credentials)?;
    if !context.may_log_in(&proof.0) {
        return Err(wrong());
    }
    let Some(token) = context.make_token(proof.1, expire).await? else { return Err(wrong()) };
    // The user may have another name than the one that was typed.
    if !token.get("name").and_then(Value::as_str).is_some_and(|name| context.may_log_in(name)) {
        if let Some(token) = token.get("token").and_then(Value::as_str) {
            context.revoke(token).await;
        }
        return Err(wrong());
    }
    let Some((session, user)) = context.api.auth.begin(&token) else { return Err(ApiError::internal()) };
    let permissions = context.api.auth.permissions(&user);
    if permissions.is_empty() {
        let user = user.identity.username();
        tracing::warn!(%user, "a user without permissions has logged in: external_auth has no entries for the user");
    }
    let permissions = if permissions.is_empty() { Value::map() } else { permissions.into() };
    let field = |name: &str| token.get(name).cloned().unwrap_or_default();
    let body = map! {
        "token" => &session,
        "expire" => field("expire"),
        "start" => field("start"),
        "user" => field("name"),
        "eauth" => field("eauth"),
        "perms" => permissions,
    };
    let mut response = context.reply(&map! {"return" => list![body]}.into())?;
    let headers = response.headers_mut();
    let seconds = user.remaining().as_secs();
    if let (Ok(token), Ok(cookie)) = (session.parse(), cookie(&session, seconds, context.api.is_tls).parse()) {
        headers.insert(TOKEN_HEADER, token);
        headers.insert(header::SET_COOKIE, cookie);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Handles `POST /logout`: ends the session and revokes its token.
pub(crate) async fn logout(context: RequestContext) -> Answer {
    let sender = context.sender()?;
    context.api.auth.end(sender);
    // Ends the event streams of the session.
    context.api.hub.wake();
    // The session has ended either way.
    context.revoke(&sender.token).await;
    let mut response = context.reply(&map! {"return" => "Your token has been cleared"}.into())?;
    if let Ok(cookie) = cookie("", 0, context.api.is_tls).parse() {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Handles `POST /token`: returns tokens for credentials.
pub(crate) async fn token(mut context: RequestContext) -> Answer {
    if !context.api.enabled.iter().any(|client| client == "runner") {
        let message = "Client disabled: 'runner'. Add to 'netapi_enable_clients' master config option to enable.";
        return Err(ApiError::bad_request(message));
    }
    let mut tokens = Vec::new();
    for credentials in context.login_payload().await?.lowstate()? {
        let has_all = ["username", "password", "eauth"].iter().all(|name| credentials.contains_key(*name));
        let (user, proof) = password(&credentials).filter(|_| has_all).ok_or_else(|| ApiError::bad_request(NEEDED))?;
        let expire = expire(&credentials)?;
        let Some(token) = context.make_token(proof, expire).await? else {
            let message = format!("Authentication failure of type \"eauth\" occurred for user {user}.");
            return Err(ApiError::unauthorized(message));
        };
        tokens.push(Value::from(token));
    }
    context.reply(&tokens.into())
}

/// Returns the user name and the password proof in credentials.
fn password(credentials: &Map) -> Option<(String, Proof)> {
    let text = |name: &str| credentials.get(name).and_then(Value::as_str).map(str::to_owned);
    let username = text("username")?;
    let password = credentials.get("password").map(ToString::to_string).unwrap_or_default();
    Some((username.clone(), Proof::Password { eauth: text("eauth")?, username, password }))
}

/// Returns the lifetime that credentials ask for, in seconds. The master decides whether the user may choose one.
fn expire(credentials: &Map) -> Result<Option<f64>, ApiError> {
    let Some(value) = credentials.get("token_expire").filter(|value| !value.is_nil()) else { return Ok(None) };
    // Forms send strings.
    let seconds = value.as_f64().or_else(|| value.as_str().and_then(|text| text.trim().parse().ok()));
    let seconds = seconds.filter(|seconds| TokenRequest::EXPIRE.contains(seconds));
    seconds.map(Some).ok_or_else(|| {
        let (least, most) = (TokenRequest::EXPIRE.start(), TokenRequest::EXPIRE.end());
        ApiError::bad_request(format!(
            "'token_expire' is invalid: expected a number of seconds from {least} to {most}, got {value}"
        ))
    })
}

/// Returns the cookie of a session. Scripts cannot read it, and browsers do not send it with cross-site requests.
fn cookie(session: &str, seconds: u64, is_tls: bool) -> String {
    let secure = if is_tls { "; Secure" } else { "" };
    format!("{COOKIE_NAME}={session}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Strict{secure}")
}

/// Whether `api_acl` permits a user to log in from an address. Other spellings of a name have its limits.
fn may_log_in(acl: &Map, user: &str, address: IpAddr) -> bool {
    let Some(users) = acl.get("users").and_then(Value::as_map).filter(|users| !users.is_empty()) else {
        return acl.is_empty();
    };
    let folded = fold(user);
    let named = users.iter().find(|(name, _)| name.as_str().is_some_and(|name| name == user));
    let named = named.or_else(|| users.iter().find(|(name, _)| name.as_str().is_some_and(|name| fold(name) == folded)));
    let addresses = named.map(|(_, addresses)| addresses).or_else(|| users.get("*"));
    let fits = |one: &str| one == "*" || one.parse::<IpAddr>().is_ok_and(|one| one.to_canonical() == address);
    addresses.and_then(Value::as_list).unwrap_or_default().iter().filter_map(Value::as_str).any(fits)
}

impl RequestContext {
    fn may_log_in(&self, user: &str) -> bool {
        let permitted = may_log_in(&self.api.options.api_acl, user, self.client.address);
        if !permitted {
            tracing::warn!(peer = %self.client.address, user, "a login is refused: api_acl does not permit the address");
            metrics::UNAUTHENTICATED.add(1);
        }
        permitted
    }

    /// Requests a new token; `None` if the credentials are wrong. The master throttles failures by user and address.
    async fn make_token(&self, proof: Proof, expire: Option<f64>) -> Result<Option<Map>, ApiError> {
        let token = self.api.master.make_token(self.client.address, proof, expire).await?;
        if token.is_some() {
            self.client.slot.authenticate();
        }
        if token.is_none() {
            metrics::UNAUTHENTICATED.add(1);
            tracing::info!(peer = %self.client.address, "a login failed: the log of the master has the cause");
        }
        Ok(token)
    }

    async fn revoke(&self, token: &str) {
        // The digest instead of the token, because the arguments of calls are published as events.
        let digest = brine_digest::hex(brine_digest::Digest::Sha256.of(token));
        if let Err(error) = self.api.master.own_runner("auth.del_token", Args::positional([digest.into()])).await {
            tracing::error!(%error, "revoking a token failed: it is valid until it expires");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_acl_limits_addresses_by_user() {
        let acl = map! {"users" => map! {"fred" => list!["10.0.0.1"], "ann" => list!["*"], "*" => list!["10.0.0.2"]}};
        let [one, other] = [IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2])];
        for (acl, user, address, permitted) in [
            (&Map::new(), "fred", one, true),
            (&acl, "fred", one, true),
            (&acl, "fred", other, false),
            (&acl, "ann", other, true),
            (&acl, "FRED", one, true),
            (&acl, "FRED", other, false),
            (&acl, "ｆred", other, false),
            (&acl, "eve", one, false),
            (&acl, "eve", other, true),
            (&map! {"user" => map! {"fred" => list!["*"]}}, "fred", one, false),
        ] {
            assert_eq!(may_log_in(acl, user, address), permitted, "{user} {address}");
        }
    }

    #[test]
    fn lifetimes_are_positive_seconds() {
        for (value, expected) in [
            (Value::Nil, Some(None)),
            (60.into(), Some(Some(60.0))),
            (0.5.into(), None),
            (1.5.into(), Some(Some(1.5))),
            ("3600".into(), Some(Some(3600.0))),
            (1e12.into(), None),
            ((-5).into(), None),
            (0.into(), None),
            (f64::NAN.into(), None),
            (f64::INFINITY.into(), None),
            ("soon".into(), None),
            (true.into(), None),
            (list![60], None),
        ] {
            let read = expire(&map! {"token_expire" => value.clone()});
            assert_eq!(read.clone().ok(), expected, "{value}: {read:?}");
        }
        assert_eq!(expire(&Map::new()), Ok(None));
    }

    #[test]
    fn cookies_are_for_this_server_only() {
        let text = cookie("abc", 60, true);
        assert_eq!(text, "session_id=abc; Max-Age=60; Path=/; HttpOnly; SameSite=Strict; Secure");
        assert!(!cookie("abc", 60, false).contains("Secure"));
    }
}
