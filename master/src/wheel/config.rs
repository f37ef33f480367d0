//! `wheel.config`: the master's configuration, without its secrets.

use brine_function::{CallResult, Function, function, registry};
use brine_value::{Map, Value};

use super::WheelContext;

/// Wheel functions of `config`.
pub static FUNCTIONS: &[Function<WheelContext>] = registry!("config", [values]);

/// The value shown in place of a secret.
const HIDDEN: &str = "<hidden>";

/// Return all options of the master. Passwords, secrets, tokens and API keys are shown as `<hidden>`, and URLs without
/// a name and password.
#[function]
pub fn values(context: &WheelContext) -> CallResult {
    Ok(Value::Map(visible(context.host.options())))
}

/// Returns the options with secrets replaced.
fn visible(options: Map) -> Map {
    options
        .into_iter()
        .map(|(name, value)| {
            let shown = if name.as_str().is_some_and(is_secret) { hidden(value) } else { shown(value) };
            (name, shown)
        })
        .collect()
}

fn shown(value: Value) -> Value {
    match value {
        Value::Map(map) => visible(map).into(),
        Value::List(all) => all.into_iter().map(shown).collect(),
        Value::Str(text) => without_login(&text).map_or(Value::Str(text), Value::from),
        other => other,
    }
}

/// Returns whether an option of this name has a secret as its value.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["secret", "passw", "passphrase"].iter().any(|part| name.contains(part))
        || ["pass", "token", "apikey", "api_key", "access_key", "private_key", "hmac_key"]
            .iter()
            .any(|end| name.ends_with(end))
}

/// Replaces the values of a secret; switches and values that are not set stay.
fn hidden(value: Value) -> Value {
    match value {
        Value::Map(map) => map.into_iter().map(|(name, value)| (name, hidden(value))).collect::<Map>().into(),
        Value::List(all) => all.into_iter().map(hidden).collect(),
        Value::Nil | Value::Bool(_) => value,
        Value::Str(text) if text.is_empty() => Value::Str(text),
        _ => HIDDEN.into(),
    }
}

/// Returns a URL without the name and password before its host, if it has them.
fn without_login(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let authority = rest.split('/').next()?;
    let (login, _) = authority.rsplit_once('@')?;
    login.contains(':').then(|| format!("{scheme}://{HIDDEN}{}", &rest[login.len()..]))
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn secrets_are_hidden_at_every_depth() {
        let options = map! {
            "sharedsecret" => "one",
            "interface" => "0.0.0.0",
            "keep_acl_in_token" => false,
            "token_expire" => 43200,
            "mysql.pass" => "two",
            "cluster_secret" => Value::Nil,
            "rest_cherrypy" => map! {"port" => 8000, "webhook_secrets" => map! {"github/*" => "three"}},
            "gitfs_remotes" => list!["https://me:four@host/repository", "ssh://git@host/repository",
                map! {"https://host/other" => list![map! {"password" => "five"}]}],
        };
        let text = Value::Map(visible(options.clone())).to_string();
        for secret in ["one", "two", "three", "four", "five"] {
            assert!(!text.contains(&format!("'{secret}'")) && !text.contains(&format!(":{secret}@")), "{text}");
        }
        let found = visible(options.clone());
        for name in ["interface", "keep_acl_in_token", "token_expire", "cluster_secret"] {
            assert_eq!(found.get(name), options.get(name), "{name}");
        }
        let remotes = found.get("gitfs_remotes").unwrap().as_list().unwrap();
        assert_eq!(
            remotes[..2],
            [format!("https://{HIDDEN}@host/repository").into(), "ssh://git@host/repository".into()]
        );
    }
}
