//! The fields of tokens in replies.

use brine_auth::Token;
use brine_value::{Map, map};
use jiff::Timestamp;

/// Returns the fields of a token for clients, as in Salt: times are seconds since the epoch.
pub(super) fn fields(token: &Token, secret: Option<&str>) -> Map {
    let seconds = |time: Timestamp| time.as_millisecond() as f64 / 1000.0;
    let mut map = map! {
        "start" => seconds(token.start),
        "expire" => seconds(token.expire),
        "name" => token.identity.username().as_str(),
        "eauth" => token.identity.eauth(),
    };
    if let Some(entries) = token.identity.entries() {
        map.insert("auth_list".into(), entries.to_vec().into());
    }
    if !token.identity.groups().is_empty() {
        map.insert("groups".into(), token.identity.groups().to_vec().into());
    }
    map.extend(secret.map(|secret| ("token".into(), secret.into())));
    map
}
