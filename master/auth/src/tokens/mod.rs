//! Tokens: credentials of an authenticated user that replace the password until they expire or are revoked.
//!
//! The store contains only a digest of each token, so that read access to the store does not reveal tokens. With
//! `eauth_tokens` a custom store is used instead: `custom`. `token` owns one token and its encodings, `files` the files of
//! tokens for Salt's own programs.

mod custom;
mod files;
mod token;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use brine_bus::store::{Batch, BlockingStore, StoreError, Table};
use brine_crypt::token::random_bytes;
use brine_value::msgpack;
use jiff::{SignedDuration, Timestamp};

use crate::eauth::Identity;
use crate::names::{UserName, fold};
pub use custom::CustomTokens;
use files::TokenFiles;
pub use token::{NewToken, Token};

/// The identity as a packed map, by the token's SHA-256 digest in hexadecimal.
const TOKENS: Table = Table("auth_tokens");
/// The maximum number of tokens.
const MAX_TOKENS: usize = 10_000;
/// The number of tokens read in one page.
const PAGE: usize = 1_000;

/// The error of an operation on tokens.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The master's store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The custom store failed.
    #[error("the token store of eauth_tokens failed: {0}")]
    Custom(String),
}

/// Whether a token has lost its files. `with_files` are the digests of tokens whose files exist.
fn is_without_files(with_files: Option<&HashSet<String>>, digest: &str, token: &Token) -> bool {
    token.has_files && with_files.is_some_and(|digests| !digests.contains(digest))
}

/// The tokens in the master's store, or in a custom one.
#[derive(Clone)]
pub struct TokenStore {
    store: BlockingStore,
    custom: Option<Arc<dyn CustomTokens>>,
    files: Option<TokenFiles>,
}

impl TokenStore {
    /// Opens the tokens in a store, or in the custom store `custom`.
    pub fn new(store: BlockingStore, custom: Option<Arc<dyn CustomTokens>>) -> Self {
        TokenStore { store, custom, files: None }
    }

    /// Enables files of new tokens in a directory, for Salt's own programs.
    #[must_use]
    pub fn with_files(self, directory: Option<&Path>) -> Self {
        TokenStore { files: directory.map(TokenFiles::new), ..self }
    }

    /// Creates a token that is valid for a duration from `now` on.
    pub fn create(&self, identity: Identity, valid: Duration, now: Timestamp) -> Result<NewToken, TokenError> {
        if let Some(custom) = &self.custom {
            return custom::create(&**custom, identity, valid, now).map_err(TokenError::Custom);
        }
        self.make_room(now)?;
        let secret = brine_digest::hex(random_bytes::<32>());
        let expire = now.checked_add(valid).unwrap_or(Timestamp::MAX);
        let mut token = Token { identity, start: now, expire, has_files: self.files.is_some() };
        self.put(&secret, &token)?;
        // The token is stored first, since files of unknown tokens are removed.
        if let Some(files) = &self.files
            && let Err(error) = files.write(&secret, &token.to_salt())
        {
            tracing::warn!(%error, "writing the files of a token for Salt's programs failed");
            token.has_files = false;
            self.put(&secret, &token)?;
        }
        Ok(NewToken { secret, token })
    }

    fn put(&self, secret: &str, token: &Token) -> Result<(), StoreError> {
        let mut batch = Batch::new();
        batch.put(TOKENS, token::digest(secret), msgpack::pack_map(&token.to_map()));
        self.store.write_blocking(batch).durable_blocking()
    }

    /// Returns a token; `None` if it is unknown, revoked or expired.
    pub fn get(&self, secret: &str, now: Timestamp) -> Result<Option<Token>, TokenError> {
        if let Some(custom) = &self.custom {
            return custom::get(&**custom, secret, now).map_err(TokenError::Custom);
        }
        let packed = self.store.get(TOKENS, token::digest(secret).as_bytes())?;
        let token = packed.and_then(|packed| Token::from_map(&msgpack::unpack_map(&packed).ok()?));
        let Some(token) = token.filter(|token| now < token.expire) else { return Ok(None) };
        if token.has_files && self.files.as_ref().is_some_and(|files| !files.has(secret)) {
            tracing::info!(
                user = %token.identity.username,
                "a token is revoked: a program of Salt has removed its file"
            );
            self.revoke(secret)?;
            return Ok(None);
        }
        Ok(Some(token))
    }

    /// Revokes a token. Returns whether it existed.
    pub fn revoke(&self, secret: &str) -> Result<bool, TokenError> {
        self.revoke_digest(&token::digest(secret))
    }

    /// Revokes the token with this digest, as returned by [`TokenStore::list`].
    pub fn revoke_digest(&self, digest: &str) -> Result<bool, TokenError> {
        if let Some(custom) = &self.custom {
            return Ok(self.revoke_custom(&**custom, |secret, _| token::digest(secret) == digest)? > 0);
        }
        let is_known = self.store.get(TOKENS, digest.as_bytes())?.is_some();
        if is_known {
            let mut batch = Batch::new();
            batch.delete(TOKENS, digest);
            self.store.write_blocking(batch).durable_blocking()?;
            self.clean_files();
        }
        Ok(is_known)
    }

    /// Removes the files of tokens that no longer exist.
    fn clean_files(&self) {
        if let Some(files) = &self.files {
            // The file of a token that cannot be read is kept.
            files.remove(|secret| !matches!(self.store.get(TOKENS, token::digest(secret).as_bytes()), Ok(None)));
        }
    }

    /// Revokes all tokens of a user, in any spelling of the name, or those of one backend. Returns their number.
    pub fn revoke_user(&self, user: &str, eauth: Option<&str>) -> Result<usize, TokenError> {
        let user = fold(user);
        let is_meant = |Token { identity, .. }: &Token| {
            fold(&identity.username) == user && eauth.is_none_or(|eauth| identity.eauth == eauth)
        };
        if let Some(custom) = &self.custom {
            return self.revoke_custom(&**custom, |_, token| is_meant(token));
        }
        let revoked = self.delete_where(|_, token| token.is_some_and(is_meant))?;
        self.clean_files();
        Ok(revoked)
    }

    /// Revokes the tokens in a custom store for which `is_meant` returns `true`. Returns their number.
    fn revoke_custom(
        &self,
        custom: &dyn CustomTokens,
        is_meant: impl Fn(&str, &Token) -> bool,
    ) -> Result<usize, TokenError> {
        let mut count = 0;
        for (secret, token) in custom::list(custom, Timestamp::now()).map_err(TokenError::Custom)? {
            if is_meant(&secret, &token) {
                custom::revoke(custom, &secret).map_err(TokenError::Custom)?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// Returns all valid tokens, each with its digest.
    pub fn list(&self, now: Timestamp) -> Result<Vec<(String, Token)>, TokenError> {
        if let Some(custom) = &self.custom {
            let listed = custom::list(&**custom, now).map_err(TokenError::Custom)?;
            return Ok(listed.into_iter().map(|(secret, token)| (token::digest(&secret), token)).collect());
        }
        let with_files = self.digests_with_files();
        let mut tokens = Vec::new();
        self.each(|digest, token| {
            let is_valid = |token: &Token| now < token.expire && !is_without_files(with_files.as_ref(), digest, token);
            if let Some(token) = token.filter(is_valid) {
                tokens.push((digest.to_owned(), token));
            }
        })?;
        Ok(tokens)
    }

    /// Removes expired tokens. Returns their number.
    pub fn remove_expired(&self, now: Timestamp) -> Result<usize, TokenError> {
        if let Some(custom) = &self.custom {
            return custom::remove_expired(&**custom, now).map_err(TokenError::Custom);
        }
        let with_files = self.digests_with_files();
        // The files of a new token may not have been listed yet.
        let is_ended = |digest: &str, token: &Token| {
            let is_new = now.duration_since(token.start) < SignedDuration::from_secs(60);
            token.expire <= now || !is_new && is_without_files(with_files.as_ref(), digest, token)
        };
        let removed = self.delete_where(|digest, token| token.is_none_or(|token| is_ended(digest, token)))?;
        self.clean_files();
        Ok(removed)
    }

    fn digests_with_files(&self) -> Option<HashSet<String>> {
        self.files.as_ref()?.digests()
    }

    /// Deletes the tokens for which `is_meant` returns `true`. Its arguments are the digest and the token, which is
    /// `None` if it cannot be decoded. Returns the number of deleted tokens.
    fn delete_where(&self, is_meant: impl Fn(&str, Option<&Token>) -> bool) -> Result<usize, StoreError> {
        let mut batch = Batch::new();
        let mut count = 0;
        self.each(|digest, token| {
            if is_meant(digest, token.as_ref()) {
                batch.delete(TOKENS, digest);
                count += 1;
            }
        })?;
        if count > 0 {
            self.store.write_blocking(batch).durable_blocking()?;
        }
        Ok(count)
    }

    /// Evicts tokens if there are too many. The user with the most tokens loses the oldest ones, so that nobody can
    /// evict the tokens of others by logging in many times.
    fn make_room(&self, now: Timestamp) -> Result<(), StoreError> {
        if self.store.scan(TOKENS, b"", MAX_TOKENS)?.len() < MAX_TOKENS {
            return Ok(());
        }
        self.delete_where(|_, token| token.is_none_or(|token| token.expire <= now))?;
        let mut by_user: HashMap<(String, UserName), Vec<(Timestamp, String)>> = HashMap::new();
        let mut count = 0;
        self.each(|digest, token| {
            count += 1;
            if let Some(Token { identity, start, .. }) = token {
                let user = (identity.eauth, identity.username);
                by_user.entry(user).or_default().push((start, digest.to_owned()));
            }
        })?;
        let most = by_user.into_iter().max_by_key(|(_, tokens)| tokens.len());
        let Some(((eauth, user), mut tokens)) = most.filter(|_| count >= MAX_TOKENS) else { return Ok(()) };
        tokens.sort();
        // Half of the tokens are evicted at once, so that this happens rarely.
        let removed = tokens.len().div_ceil(2);
        let mut batch = Batch::new();
        for (_, digest) in tokens.iter().take(removed) {
            batch.delete(TOKENS, digest.as_str());
        }
        tracing::warn!(%user, eauth, removed, "the oldest tokens of a user are revoked: there are {MAX_TOKENS} tokens");
        self.store.write_blocking(batch).durable_blocking()
    }

    fn each(&self, mut visit: impl FnMut(&str, Option<Token>)) -> Result<(), StoreError> {
        let mut start = Vec::new();
        loop {
            let page = self.store.scan(TOKENS, &start, PAGE)?;
            for (key, packed) in &page {
                let token = msgpack::unpack_map(packed).ok().and_then(|map| Token::from_map(&map));
                visit(&String::from_utf8_lossy(key), token);
            }
            match page.into_iter().nth(PAGE - 1) {
                Some((key, _)) => start = [&key[..], b"\0"].concat(),
                None => return Ok(()),
            }
        }
    }
}

#[cfg(test)]
mod tests;
