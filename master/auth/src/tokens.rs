//! Tokens: credentials of an authenticated user that replace the password until they expire or are revoked.
//!
//! The store contains only a digest of each token, so that read access to the store does not reveal tokens. With
//! `eauth_tokens` a custom store is used instead.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use brine_bus::store::{Batch, BlockingStore, StoreError, Table};
use brine_crypt::token;
use brine_value::{Map, Value, map, msgpack};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use crate::custom_tokens::{self, CustomTokens};
use crate::eauth::Identity;
use crate::token_files::TokenFiles;

/// The identity as a packed map, by the token's SHA-256 digest in hexadecimal.
const TOKENS: Table = Table("auth_tokens");
/// The maximum number of tokens.
const MAX_TOKENS: usize = 10_000;
/// The number of tokens read in one page.
const PAGE: usize = 1_000;

/// A valid token.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    /// The user. Its entries are set if they are fixed at creation of the token (`keep_acl_in_token`).
    pub identity: Identity,
    /// The time of creation.
    pub start: Timestamp,
    /// The expiry time.
    pub expire: Timestamp,
    /// Whether the token has files for Salt's programs, without which it is revoked.
    pub has_files: bool,
}

/// A new token with its secret.
#[derive(Debug, Clone, PartialEq)]
pub struct NewToken {
    /// The secret: 64 hexadecimal digits. It is not stored.
    pub secret: String,
    /// The token.
    pub token: Token,
}

impl Token {
    fn to_map(&self) -> Map {
        map! {
            "name" => &self.identity.username,
            "eauth" => &self.identity.eauth,
            "groups" => self.identity.groups.clone(),
            "auth_list" => self.identity.entries.clone(),
            "start" => self.start.as_millisecond(),
            "expire" => self.expire.as_millisecond(),
            "has_files" => self.has_files,
        }
    }

    fn from_map(map: &Map) -> Option<Self> {
        let text = |name: &str| map.get(name).and_then(Value::as_str).map(str::to_owned);
        let time = |name: &str| match map.get(name) {
            Some(Value::Int(millisecond)) => Timestamp::from_millisecond(*millisecond).ok(),
            _ => None,
        };
        let groups = map.get("groups").and_then(Value::as_list).unwrap_or_default();
        Some(Token {
            identity: Identity {
                eauth: text("eauth")?,
                username: text("name")?,
                groups: groups.iter().map(ToString::to_string).collect(),
                entries: map.get("auth_list").and_then(Value::as_list).map(<[Value]>::to_vec),
            },
            start: time("start")?,
            expire: time("expire")?,
            has_files: map.get("has_files").is_some_and(Value::is_truthy),
        })
    }
}

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

fn key(secret: &str) -> String {
    brine_digest::hex(Sha256::digest(secret))
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
            return custom_tokens::create(&**custom, identity, valid, now).map_err(TokenError::Custom);
        }
        self.make_room(now)?;
        let secret = brine_digest::hex(token::random_bytes::<32>());
        let expire = now.checked_add(valid).unwrap_or(Timestamp::MAX);
        let mut token = Token { identity, start: now, expire, has_files: self.files.is_some() };
        self.put(&secret, &token)?;
        // The token is stored first, since files of unknown tokens are removed.
        if let Some(files) = &self.files
            && let Err(error) = files.write(&secret, &custom_tokens::to_map(&token))
        {
            tracing::warn!(%error, "writing the files of a token for Salt's programs failed");
            token.has_files = false;
            self.put(&secret, &token)?;
        }
        Ok(NewToken { secret, token })
    }

    fn put(&self, secret: &str, token: &Token) -> Result<(), StoreError> {
        let mut batch = Batch::new();
        batch.put(TOKENS, key(secret), msgpack::pack_map(&token.to_map()));
        self.store.write_blocking(batch).durable_blocking()
    }

    /// Returns a token; `None` if it is unknown, revoked or expired.
    pub fn get(&self, secret: &str, now: Timestamp) -> Result<Option<Token>, TokenError> {
        if let Some(custom) = &self.custom {
            return custom_tokens::get(&**custom, secret, now).map_err(TokenError::Custom);
        }
        let packed = self.store.get(TOKENS, key(secret).as_bytes())?;
        let token = packed.and_then(|packed| Token::from_map(&msgpack::unpack_map(&packed).ok()?));
        let Some(token) = token.filter(|token| now < token.expire) else { return Ok(None) };
        if token.has_files && self.files.as_ref().is_some_and(|files| !files.has(secret)) {
            tracing::info!(
                user = token.identity.username,
                "a token is revoked: a program of Salt has removed its file"
            );
            self.revoke(secret)?;
            return Ok(None);
        }
        Ok(Some(token))
    }

    /// Revokes a token. Returns whether it existed.
    pub fn revoke(&self, secret: &str) -> Result<bool, TokenError> {
        self.revoke_digest(&key(secret))
    }

    /// Revokes the token with this digest, as returned by [`TokenStore::list`].
    pub fn revoke_digest(&self, digest: &str) -> Result<bool, TokenError> {
        if let Some(custom) = &self.custom {
            return Ok(self.revoke_custom(&**custom, |secret, _| custom_tokens::digest(secret) == digest)? > 0);
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
            files.remove(|secret| !matches!(self.store.get(TOKENS, key(secret).as_bytes()), Ok(None)));
        }
    }

    /// Revokes all tokens of a user, or those of one backend. Returns their number.
    pub fn revoke_user(&self, user: &str, eauth: Option<&str>) -> Result<usize, TokenError> {
        let is_meant =
            |token: &Token| token.identity.username == user && eauth.is_none_or(|eauth| token.identity.eauth == eauth);
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
        for (secret, token) in custom_tokens::list(custom, Timestamp::now()).map_err(TokenError::Custom)? {
            if is_meant(&secret, &token) {
                custom_tokens::revoke(custom, &secret).map_err(TokenError::Custom)?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// Returns all valid tokens, each with its digest.
    pub fn list(&self, now: Timestamp) -> Result<Vec<(String, Token)>, TokenError> {
        if let Some(custom) = &self.custom {
            let listed = custom_tokens::list(&**custom, now).map_err(TokenError::Custom)?;
            return Ok(listed.into_iter().map(|(secret, token)| (custom_tokens::digest(&secret), token)).collect());
        }
        let with_files = self.digests_with_files();
        let mut found = Vec::new();
        self.each(|digest, token| {
            let is_valid = |token: &Token| now < token.expire && !is_without_files(with_files.as_ref(), digest, token);
            if let Some(token) = token.filter(is_valid) {
                found.push((digest.to_owned(), token));
            }
        })?;
        Ok(found)
    }

    /// Removes expired tokens. Returns their number.
    pub fn remove_expired(&self, now: Timestamp) -> Result<usize, TokenError> {
        if let Some(custom) = &self.custom {
            return custom_tokens::remove_expired(&**custom, now).map_err(TokenError::Custom);
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
        let mut by_user: HashMap<(String, String), Vec<(Timestamp, String)>> = HashMap::new();
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
        tracing::warn!(user, eauth, removed, "the oldest tokens of a user are revoked: there are {MAX_TOKENS} tokens");
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
mod tests {
    use brine_bus::store::Store;
    use brine_runtime::executors::MayBlock;

    use super::*;

    fn tokens(directory: &Path) -> TokenStore {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (store, _) = Store::open(&directory.join("brine.redb"), 1 << 20).unwrap();
        TokenStore::new(store.blocking(&MayBlock::own_thread(runtime.handle().clone())), None)
    }

    fn fred() -> Identity {
        let entries = Some(vec!["test.*".into()]);
        Identity { eauth: "file".into(), username: "fred".into(), groups: vec!["ops".into()], entries }
    }

    #[test]
    fn tokens_are_valid_until_they_expire_or_are_revoked() {
        let directory = tempfile::tempdir().unwrap();
        let tokens = tokens(directory.path());
        let now = Timestamp::from_second(1_000).unwrap();
        let hour = Duration::from_secs(3600);
        let made = tokens.create(fred(), hour, now).unwrap();
        assert!(made.secret.len() == 64 && made.secret.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let expires = Timestamp::from_second(4_600).unwrap();
        assert_eq!((made.token.start, made.token.expire), (now, expires));
        for (secret, at, valid) in [
            (made.secret.as_str(), now, true),
            (&made.secret, Timestamp::from_second(4_599).unwrap(), true),
            (&made.secret, expires, false),
            ("", now, false),
            (&made.secret[1..], now, false),
        ] {
            assert_eq!(tokens.get(secret, at).unwrap().is_some(), valid, "{secret} {at}");
        }
        assert_eq!(tokens.get(&made.secret, now).unwrap().unwrap().identity, fred());
        let other = tokens.create(fred(), hour, now).unwrap();
        assert!(tokens.revoke(&made.secret).unwrap() && !tokens.revoke(&made.secret).unwrap());
        assert_eq!(tokens.get(&made.secret, now).unwrap(), None);
        let listed = tokens.list(now).unwrap();
        assert_eq!(listed.len(), 1);
        // The digest in a list is not a token.
        assert_eq!(tokens.get(&listed[0].0, now).unwrap(), None);
        assert!(tokens.revoke_digest(&listed[0].0).unwrap());
        assert_eq!(tokens.get(&other.secret, now).unwrap(), None);
    }

    #[test]
    fn a_user_with_many_tokens_does_not_evict_those_of_others() {
        let directory = tempfile::tempdir().unwrap();
        let tokens = tokens(directory.path());
        let at = |second: usize| Timestamp::from_second(1_000 + second as i64).unwrap();
        let day = Duration::from_secs(86_400);
        let ann = Identity { username: "ann".into(), ..fred() };
        let hers = tokens.create(ann, day, at(0)).unwrap();
        let mut batch = Batch::new();
        for number in 1..MAX_TOKENS {
            let token = Token { identity: fred(), start: at(number), expire: at(90_000), has_files: false };
            batch.put(TOKENS, format!("{number:064}"), msgpack::pack_map(&token.to_map()));
        }
        tokens.store.write_blocking(batch).durable_blocking().unwrap();
        let newest = tokens.create(fred(), day, at(MAX_TOKENS)).unwrap();
        for token in [&hers, &newest] {
            assert!(tokens.get(&token.secret, at(MAX_TOKENS)).unwrap().is_some(), "{token:?}");
        }
        assert_eq!(tokens.list(at(MAX_TOKENS)).unwrap().len(), MAX_TOKENS / 2 + 1);
    }

    #[test]
    fn tokens_of_a_user_are_revoked_together() {
        let directory = tempfile::tempdir().unwrap();
        let tokens = tokens(directory.path());
        let now = Timestamp::from_second(1_000).unwrap();
        for (user, eauth) in [("fred", "file"), ("fred", "file"), ("fred", "ldap"), ("ann", "file")] {
            let identity = Identity { eauth: eauth.into(), username: user.into(), ..fred() };
            tokens.create(identity, Duration::from_secs(10), now).unwrap();
        }
        for (user, eauth, revoked) in
            [("fred", Some("file"), 2), ("fred", None, 1), ("fred", None, 0), ("bob", None, 0), ("ann", Some("pam"), 0)]
        {
            assert_eq!(tokens.revoke_user(user, eauth).unwrap(), revoked, "{user} {eauth:?}");
        }
        assert_eq!(tokens.list(now).unwrap().len(), 1);
    }

    #[test]
    fn a_token_and_its_files_are_removed_together() {
        let directory = tempfile::tempdir().unwrap();
        let files = directory.path().join("tokens");
        let tokens = tokens(directory.path()).with_files(Some(&files));
        let now = Timestamp::from_second(1_000).unwrap();
        let create = || tokens.create(fred(), Duration::from_secs(100), now).unwrap().secret;
        let names = || {
            let mut names: Vec<String> = std::fs::read_dir(&files)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        for ending in ["", ".p"] {
            let (ended, kept) = (create(), create());
            let data = msgpack::unpack_map(&std::fs::read(files.join(format!("{ended}{ending}"))).unwrap()).unwrap();
            assert_eq!((data.get("token"), data.get("name")), (Some(&Value::from(&ended)), Some(&"fred".into())));
            assert!(tokens.get(&ended, now).unwrap().is_some());
            std::fs::remove_file(files.join(format!("{ended}{ending}"))).unwrap();
            assert_eq!(tokens.list(now).unwrap().len(), 1);
            assert_eq!(tokens.get(&ended, now).unwrap(), None);
            assert_eq!(names(), [kept.clone(), format!("{kept}.p")]);
            assert!(tokens.get(&kept, now).unwrap().is_some());
            assert!(tokens.revoke(&kept).unwrap() && names().is_empty());
        }
        let (kept, other) = (create(), files.join("other"));
        std::fs::write(&other, "").unwrap();
        assert_eq!(tokens.remove_expired(now).unwrap(), 0);
        assert_eq!(names().len(), 3);
        let lost = create();
        std::fs::remove_file(files.join(&lost)).unwrap();
        assert_eq!(tokens.remove_expired(now).unwrap(), 0, "it may be new");
        assert_eq!(tokens.remove_expired(Timestamp::from_second(1_090).unwrap()).unwrap(), 1);
        assert_eq!(names().len(), 3);
        assert_eq!(tokens.remove_expired(Timestamp::from_second(1_100).unwrap()).unwrap(), 1);
        assert_eq!(names(), ["other"]);
        // Files have no effect on tokens that were created without the option, or once it is off.
        let without = TokenStore { files: None, ..tokens.clone() };
        let secret = without.create(fred(), Duration::from_secs(100), now).unwrap().secret;
        assert!(tokens.get(&secret, now).unwrap().is_some() && without.get(&kept, now).unwrap().is_none());
    }

    #[test]
    fn expired_and_damaged_tokens_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let tokens = tokens(directory.path());
        let now = Timestamp::from_second(1_000).unwrap();
        tokens.create(fred(), Duration::from_secs(10), now).unwrap();
        let kept = tokens.create(fred(), Duration::from_secs(100), now).unwrap();
        let mut batch = Batch::new();
        batch.put(TOKENS, "damaged", &b"\xc1"[..]);
        tokens.store.write_blocking(batch).durable_blocking().unwrap();
        assert_eq!(tokens.remove_expired(Timestamp::from_second(1_010).unwrap()).unwrap(), 2);
        assert!(tokens.get(&kept.secret, now).unwrap().is_some());
    }
}
