//! Authenticates the users of client requests and authorises them, by the key files of local users (`publisher_acl`),
//! and by passwords and tokens of `external_auth` (`login/`). Clients receive the same message regardless of the
//! cause of a refusal; the log and the event `brine/access/denied` contain the cause.

mod called;
mod custom_auth;
mod denials;
mod explain;
mod keys;
mod login;
mod options;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use brine_auth::{Acl, Blacklist, CustomAuthModules, ExternalAuth, JobRequest, may_be_masters};
use brine_config::MasterConfig;
use brine_crypt::token;
use brine_function::Args;
use brine_ids::Jid;
use brine_master_custom::HostFunctions;
use brine_master_custom::Kind;
use brine_master_facts::{Facts, Targets};
use brine_master_store::events::Events;
use brine_master_store::storage::Storage;
use brine_runtime::executors::{Blocking, Executor, Executors};
use brine_system::files::FileError;
use brine_target::TargetKind;
use brine_value::{Value, map};
use brine_wire::{Proof, PublishRequest};
use brine_zmtp::Peer;
use tokio::sync::Semaphore;

use called::{AskedCall, calls_of};
use custom_auth::CustomAuth;
use denials::Denials;
pub use explain::{ExplainError, PermissionQuery};
pub use keys::{LocalKeys, api_key_path, open_to_users, process_user, root_key_path, socket_group};
use login::Logins;
pub use login::TokenAccessError;
use options::OptionRefused;
pub use options::{SOURCE, permit_returners, permit_source};

/// The user name of the REST API's own calls.
const API_USER: &str = "salt-api";
/// The runner functions that the REST API may call on its own behalf: to read the journal for subscribers, and to revoke
/// the token of a session that ends.
const API_FUNCTIONS: &[&str] = &["event_bus.since", "auth.del_token"];
/// The tag of refusal events.
const DENIED: &str = "brine/access/denied";
/// The maximum length of a user or function name in logs and events, in characters.
const MAX_SHOWN_NAME: usize = 128;

/// Authorises client requests.
pub struct Access {
    config: Arc<MasterConfig>,
    storage: Blocking<Storage>,
    /// Runs the backends of `external_auth` and custom token stores.
    backends: Executor,
    /// Limits concurrent calls of a custom token store, if there is one.
    custom_tokens: Option<Arc<Semaphore>>,
    events: Events,
    facts: Arc<Facts>,
    external: Arc<ExternalAuth>,
    blacklist: Blacklist,
    logins: Arc<Logins>,
    denials: Denials,
    keys: LocalKeys,
    /// The keys of other local users, by user name.
    user_keys: Vec<(String, String)>,
}

/// An authenticated user.
#[derive(Debug)]
pub enum User {
    /// A client with the master's own key: it may do everything, under the user name in the request.
    Master(String),
    /// The REST API on its own behalf: it may call [`API_FUNCTIONS`].
    Api,
    /// Any other user, who is limited by access control entries.
    Limited {
        /// The name of the user.
        name: String,
        /// The entries that grant permissions.
        entries: Vec<Value>,
    },
}

impl User {
    /// Returns the name of the user, for events and logs.
    pub fn name(&self) -> &str {
        match self {
            User::Master(name) | User::Limited { name, .. } => name,
            User::Api => API_USER,
        }
    }

    fn acl(&self) -> Option<Acl> {
        match self {
            User::Master(_) => None,
            User::Api => Some(Acl::default()),
            User::Limited { entries, .. } => Some(Acl::new(entries)),
        }
    }
}

/// A call of a runner or wheel function.
#[derive(Debug, Clone, Copy)]
pub struct MasterCall<'a> {
    /// The registry of the function.
    pub kind: Kind,
    /// The function.
    pub function: &'a str,
    /// Its arguments.
    pub args: &'a Args,
    /// The returner that the function reads from, if it is an argument.
    pub source: Option<&'a Value>,
}

/// The reason why a request is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The sender is not authenticated. `kind` is the type of credential that failed.
    #[error("authentication failed")]
    Authentication {
        /// The type of credential, as in Salt's messages.
        kind: &'static str,
        /// The name that the client gave.
        user: String,
    },
    /// The user lacks the permission.
    #[error("authorization failed")]
    Authorization {
        /// The type of credential, as in Salt's messages.
        kind: &'static str,
        /// The name that the client gave.
        user: String,
    },
}

impl Refusal {
    /// Returns the response to a publish, with Salt's message.
    pub fn of_publish(&self) -> Value {
        let (name, message) = match self {
            Refusal::Authentication { .. } => ("AuthenticationError", "Authentication error occurred."),
            Refusal::Authorization { .. } => ("AuthorizationError", "Authorization error occurred."),
        };
        map! {"error" => map! {"name" => name, "message" => message}}.into()
    }

    /// Returns the response to a call of a runner or wheel function, in Salt's wording.
    pub fn of_call(&self) -> Value {
        let (Refusal::Authentication { kind, user } | Refusal::Authorization { kind, user }) = self;
        let name = match *kind {
            "token" => "TokenAuthenticationError",
            "eauth" => "EauthAuthenticationError",
            _ => "UserAuthenticationError",
        };
        let message = format!("Authentication failure of type \"{kind}\" occurred for user {user}.");
        map! {"error" => map! {"name" => name, "message" => message}}.into()
    }
}

impl Access {
    /// Sets whether tokens are in a custom store.
    #[must_use]
    pub fn with_custom_tokens(self, is_own: bool) -> Self {
        let custom_tokens = is_own.then(|| Arc::new(Semaphore::new(login::MAX_CUSTOM_CALLS)));
        Access { custom_tokens, ..self }
    }

    /// Reads the permissions from the configuration, and creates the keys of the users of `publisher_acl`.
    pub fn new(
        config: Arc<MasterConfig>,
        storage: Blocking<Storage>,
        executors: &Executors,
        events: Events,
        facts: Arc<Facts>,
        keys: LocalKeys,
        host: Option<Arc<dyn HostFunctions>>,
    ) -> Result<Self, FileError> {
        let own = |host| Arc::new(CustomAuth { config: Arc::clone(&config), host }) as Arc<dyn CustomAuthModules>;
        let external = Arc::new(ExternalAuth::with_modules(&config.opts, host.map(own)));
        for error in external.check() {
            tracing::error!(%error, "a backend of external_auth cannot authenticate users");
        }
        let blacklist = Value::from(config.publisher_acl_blacklist.clone());
        Ok(Access {
            storage,
            backends: executors.logins.clone(),
            custom_tokens: None,
            events,
            facts,
            logins: Arc::new(Logins::new(Arc::clone(&external))),
            external,
            blacklist: Blacklist::new(Some(&blacklist)),
            denials: Denials::default(),
            user_keys: keys::user_keys(&config)?,
            keys,
            config,
        })
    }

    /// Returns the owner of a key.
    fn by_key(&self, presented: Option<&str>, user: &str) -> Option<User> {
        let presented = presented?;
        if token::constant_time_eq(presented, &self.keys.root) {
            return Some(User::Master(user.to_owned()));
        }
        if self.is_api_key(presented) {
            return Some(User::Api);
        }
        // All are compared, so that the time does not reveal a near match.
        let mut key_owner = None;
        for (name, key) in &self.user_keys {
            if token::constant_time_eq(presented, key) {
                key_owner = Some(name.clone());
            }
        }
        let name = key_owner?;
        let entries = self.external.entries_of_publisher(&self.config.publisher_acl, &name);
        Some(User::Limited { name, entries })
    }
}

fn truncated(name: &str) -> String {
    name.chars().take(MAX_SHOWN_NAME).collect()
}

impl Access {
    /// Checks the key of the REST API. `what` names the request in the log.
    ///
    /// # Errors
    /// The refusal, which is logged and published.
    pub async fn admit_api(&self, peer: &Peer, key: &str, what: &str) -> Result<(), Refusal> {
        if self.is_api_key(key) {
            peer.authenticate();
            return Ok(());
        }
        let refusal = Refusal::Authentication { kind: "user", user: API_USER.to_owned() };
        self.publish_refusal(peer, what, &refusal, API_USER, None).await;
        Err(refusal)
    }

    fn is_api_key(&self, presented: &str) -> bool {
        token::constant_time_eq(presented, &self.keys.api)
    }

    /// Authenticates the sender of a request. `what` names the request in the log.
    pub async fn identify(
        &self,
        peer: &Peer,
        what: &str,
        key: Option<&str>,
        user: &str,
        proof: Option<&Proof>,
    ) -> Result<User, Refusal> {
        let identified = match proof {
            None => {
                self.by_key(key, user).ok_or_else(|| Refusal::Authentication { kind: "user", user: truncated(user) })
            }
            Some(Proof::Token(secret)) => {
                let identity = self.token(secret).await.map(|token| token.identity);
                let entries = match &identity {
                    Some(identity) => self.entries_of(identity).await,
                    None => None,
                };
                match (identity, entries) {
                    (Some(identity), Some(entries)) => {
                        Ok(User::Limited { name: identity.username().to_string(), entries })
                    }
                    _ => Err(Refusal::Authentication { kind: "token", user: "UNKNOWN".to_owned() }),
                }
            }
            Some(password) => match self.authenticate_user(peer, password).await {
                Some(identity) => {
                    let entries = self.entries_of(&identity).await.unwrap_or_default();
                    Ok(User::Limited { name: identity.username().to_string(), entries })
                }
                None => Err(Refusal::Authentication { kind: "eauth", user: truncated(user_of(proof, user)) }),
            },
        };
        match &identified {
            Ok(_) => peer.authenticate(),
            Err(refusal) => self.publish_refusal(peer, what, refusal, user_of(proof, user), None).await,
        }
        identified
    }

    /// Checks whether a user may publish a job with its options. Options that have no effect, or that only the master's
    /// own tools may set, are removed from requests of limited users; the latter are kept if the request `is_passed_on`
    /// by the local syndic.
    ///
    /// # Errors
    /// The refusal, which is logged and published.
    pub async fn authorise_job(
        &self,
        peer: &Peer,
        user: &User,
        request: &mut PublishRequest,
        is_passed_on: bool,
    ) -> Result<(), Refusal> {
        let functions = functions(&request.fun);
        let mut refused = None;
        let permitted = match user.acl().or_else(|| self.acl_of_sudo(user)) {
            _ if matches!(user, User::Api) => false,
            _ if self.is_blacklisted(user, functions.iter().map(String::as_str)) => false,
            _ if calls_of(request)
                .is_none_or(|called| self.blacklist.has_function(called.iter().map(String::as_str))) =>
            {
                false
            }
            None => true,
            Some(_) if functions.is_empty() => false,
            Some(acl) => {
                let is_passed_on = is_passed_on || matches!(user, User::Master(_));
                refused = options::limit(&acl, &self.config, request, is_passed_on).err();
                refused.is_none() && self.permits(acl, user.name(), functions, request).await
            }
        };
        if permitted {
            return Ok(());
        }
        let refusal = Refusal::Authorization { kind: kind(request.proof.as_ref()), user: truncated(user.name()) };
        self.publish_refusal(peer, &request.fun.to_string(), &refusal, user.name(), refused).await;
        Err(refusal)
    }

    /// Returns the entries of a job's user for masters below: also for the returner `ext_job_cache`, which this master adds
    /// to the job. No entries mean no limits.
    pub fn entries_below(&self, mut entries: Vec<Value>) -> Vec<Value> {
        let cache = self.config.ext_job_cache.as_deref().filter(|name| !name.is_empty());
        if let Some(name) = cache.filter(|_| !entries.is_empty()) {
            entries.push(map! {"@options" => map! {"ret" => name}}.into());
        }
        entries
    }

    /// Returns the permissions of a user who publishes through `sudo`, if `sudo_acl` limits them.
    fn acl_of_sudo(&self, user: &User) -> Option<Acl> {
        let User::Master(name) = user else { return None };
        let is_limited = self.config.sudo_acl && !self.config.publisher_acl.is_empty();
        let name = name.strip_prefix("sudo_").filter(|_| is_limited)?;
        Some(Acl::new(&self.external.entries_of_publisher(&self.config.publisher_acl, name)))
    }

    fn is_blacklisted<'a>(&self, user: &User, functions: impl IntoIterator<Item = &'a str>) -> bool {
        self.blacklist.has_user(user.name()) || self.blacklist.has_function(functions)
    }

    async fn permits(&self, acl: Acl, user: &str, functions: Vec<String>, request: &PublishRequest) -> bool {
        // The publish reports an invalid target.
        let Ok(Targets { minions, .. }) = self.facts.possible_targets(request).await else { return true };
        let (facts, arguments) = (Arc::clone(&self.facts), request.arg.clone());
        let is_list = request.fun.as_list().is_some();
        let acl = if self.config.plan_approval { acl.with_approved_plans() } else { acl };
        let jid = request.jid.clone();
        let user = (!self.is_master(user)).then(|| user.to_owned());
        let permitted = self.storage.run(move |storage| {
            let of = |at: usize| match arguments.get(at) {
                Some(Value::List(own)) if is_list => own.as_slice(),
                _ if is_list => &[],
                _ => arguments.as_slice(),
            };
            let functions = functions.iter().enumerate().map(|(at, function)| (function.as_str(), of(at))).collect();
            // Only its own user may continue an existing job, as happens in batches.
            let is_own = |jid: &Jid| match storage.job_cache.get_load(jid) {
                Ok(None) => true,
                Ok(Some(load)) => user.as_deref() == Some(load.user()),
                Err(_) => false,
            };
            acl.permits_job(&JobRequest { functions, minions: &minions }, |target| minions_of(&facts, storage, target))
                && jid.as_ref().is_none_or(is_own)
        });
        permitted.await.unwrap_or(false)
    }

    /// Whether jobs with this user name may belong to the master's own user. If so, backend users of the same name may
    /// not continue them.
    fn is_master(&self, user: &str) -> bool {
        may_be_masters(user, self.config.user.as_deref())
    }

    /// Checks whether a user may call a runner or wheel function.
    ///
    /// # Errors
    /// The refusal, which is logged and published.
    pub async fn authorise_call(
        &self,
        peer: &Peer,
        user: &User,
        call: &MasterCall<'_>,
        proof: Option<&Proof>,
    ) -> Result<(), Refusal> {
        let MasterCall { kind: kind_of_call, function, args, source } = *call;
        let mut refused = None;
        let is_of_api = matches!(user, User::Api) && kind_of_call == Kind::Runner && API_FUNCTIONS.contains(&function);
        let permitted = match user.acl() {
            _ if is_of_api => true,
            None => true,
            Some(acl) => {
                refused = permit_source(&acl, &self.config, source).err();
                let call = AskedCall::new(kind_of_call, function, args.clone());
                refused.is_none() && self.permits_call(user, acl, &call).await
            }
        };
        if permitted {
            return Ok(());
        }
        let refusal = Refusal::Authorization { kind: kind(proof), user: truncated(user.name()) };
        self.publish_refusal(peer, function, &refusal, user.name(), refused).await;
        Err(refusal)
    }

    /// Logs and publishes a refusal. `option` is the option of the request that is not permitted, if that is the cause.
    async fn publish_refusal(
        &self,
        peer: &Peer,
        what: &str,
        refusal: &Refusal,
        user: &str,
        option: Option<OptionRefused>,
    ) {
        brine_wire::metrics::REQUESTS_REFUSED.add(1);
        let (user, what) = (truncated(user), truncated(what));
        let reason = option.as_ref().map_or_else(|| refusal.to_string(), ToString::to_string);
        tracing::warn!(peer = %peer.address, user, request = what, reason, "a request of a client is refused");
        let (Refusal::Authentication { kind, .. } | Refusal::Authorization { kind, .. }) = refusal;
        let mut body = map! {
            "user" => user,
            "request" => what,
            "address" => &*peer.address,
            "type" => *kind,
            "reason" => reason,
        };
        body.extend(option.map(|OptionRefused(option)| ("option".into(), option.into())));
        // Unauthenticated peers can cause any number of refusals: they must not fill the journal.
        if self.denials.admit(Instant::now()) {
            self.events.fire(DENIED, &body).await;
        }
    }
}

/// Returns the minions that match the compound target of an entry.
fn minions_of(facts: &Facts, storage: &Storage, target: &str) -> Option<HashSet<String>> {
    let target = facts.target(TargetKind::Compound, target.into(), ":").ok()?;
    let accepted = storage.accepted().ok()?;
    let ids = accepted.iter().map(String::as_str).filter(|id| storage.minion_data.is_permitted(&target, id));
    Some(ids.map(str::to_owned).collect())
}

/// Returns the names of the functions of a job.
fn functions(fun: &Value) -> Vec<String> {
    match fun {
        Value::List(all) => all.iter().map(ToString::to_string).collect(),
        one => one.as_str().map(str::to_owned).into_iter().collect(),
    }
}

fn kind(proof: Option<&Proof>) -> &'static str {
    match proof {
        None => "user",
        Some(Proof::Token(_)) => "token",
        Some(Proof::Password { .. }) => "eauth",
    }
}

fn user_of<'a>(proof: Option<&'a Proof>, otherwise: &'a str) -> &'a str {
    match proof {
        Some(Proof::Password { username, .. }) => username,
        _ => otherwise,
    }
}
