//! `auth`: tokens of users, and what users may do.

use brine_auth::{Token, fold};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};
use jiff::Timestamp;

use super::RunnerContext;

/// Runner functions of `auth`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("auth", [list_tokens, del_token, del_tokens, test]);

/// Return the valid tokens by digest: user, system and times. With `user`, only the tokens of this user.
///
/// CLI Example:
///
///     salt-run auth.list_tokens
///     salt-run auth.list_tokens user=fred
#[function]
pub fn list_tokens(
    context: &RunnerContext,
    /// Name of the user; all by default.
    user: Option<String>,
) -> CallResult {
    let mut tokens = context.storage().tokens.list(Timestamp::now()).map_err(CallError::execution)?;
    tokens.retain(|(_, token)| user.as_ref().is_none_or(|user| fold(token.identity.username()) == fold(user)));
    let described = |(digest, token): (String, Token)| {
        let identity = token.identity;
        let about = map! {
            "name" => identity.username().as_str(),
            "eauth" => identity.eauth(),
            "start" => token.start.to_string(),
            "expire" => token.expire.to_string(),
        };
        (Value::from(digest), Value::from(about))
    };
    Ok(tokens.into_iter().map(described).collect::<Map>().into())
}

/// Revoke a token, by itself or by its digest in `auth.list_tokens`. Return whether there was such a token.
///
/// CLI Example:
///
///     salt-run auth.del_token 6556760736e4077daa601baec2b67c24
#[function]
pub fn del_token(
    context: &RunnerContext,
    /// The token.
    token: String,
) -> CallResult {
    let tokens = &context.storage().tokens;
    let revoked = tokens.revoke(&token).and_then(|was| Ok(was || tokens.revoke_digest(&token)?));
    Ok(revoked.map_err(CallError::execution)?.into())
}

/// Revoke all tokens of a user; with `eauth`, only those of this backend. Return their number.
///
/// CLI Example:
///
///     salt-run auth.del_tokens fred
///     salt-run auth.del_tokens fred eauth=ldap
#[function]
pub fn del_tokens(
    context: &RunnerContext,
    /// Name of the user; all by default.
    user: String,
    /// Backend of the logins, such as `pam`; all by default.
    eauth: Option<String>,
) -> CallResult {
    let revoked = context.storage().tokens.revoke_user(&user, eauth.as_deref()).map_err(CallError::execution)?;
    tracing::info!(user, eauth, revoked, "tokens of a user revoked");
    Ok((revoked as i64).into())
}

/// Return whether a user may publish a job, and by which entries. With a function such as `runner.jobs.active` and any
/// target: whether the user may call a function of the master; with the function `events` and tags as arguments: whether
/// the user sees such events; with the function `options`: whether the user may publish jobs with these options. Further
/// arguments are those of the function, but for `eauth`, `groups` and `tgt_type`. Without `eauth` it is a user of
/// `publisher_acl`.
///
/// CLI Example:
///
///     salt-run auth.test fred 'web*' state.apply nginx eauth=file
///     salt-run auth.test fred '*' runner.jobs.active eauth=file groups='[ops]'
///     salt-run auth.test fred '*' events salt/job/20261122000000000000/new eauth=file
///     salt-run auth.test fred '*' options ret=redis ret_kwargs='{db: 3}' eauth=file
#[function]
pub fn test(
    context: &RunnerContext,
    /// Name of the user; all by default.
    user: String,
    /// Target of the call.
    tgt: Value,
    /// Name of the function.
    fun: String,
    /// Arguments of the function.
    #[rest]
    args: Vec<Value>,
    /// Keyword arguments of the function.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut kwargs = kwargs;
    let mut take = |name: &str| kwargs.shift_remove(name);
    let groups = take("groups").map(|groups| match groups {
        Value::List(all) => all.iter().map(ToString::to_string).collect(),
        one => vec![one.to_string()],
    });
    let asked = brine_master_access::access::PermissionQuery {
        user,
        eauth: take("eauth").map(|eauth| eauth.to_string()),
        groups: groups.unwrap_or_default(),
        tgt,
        tgt_type: take("tgt_type").map_or_else(|| "glob".to_owned(), |kind| kind.to_string()),
        fun,
        args,
        kwargs,
    };
    context.master.access.explain(context.storage(), asked).map_err(CallError::execution)
}
