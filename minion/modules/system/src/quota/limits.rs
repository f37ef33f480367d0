//! `quota`: the function that sets limits.

use brine_context::Context;
use brine_context::programs::run;
use brine_function::{CallError, CallResult, function};
use brine_host::programs::argument;
use brine_value::{Map, Value, map};

use super::parse::{self, Kind};
use super::repquota;

/// The limits, in the order of the arguments of `setquota`.
const LIMITS: [&str; 4] = ["block-soft-limit", "block-hard-limit", "file-soft-limit", "file-hard-limit"];

/// Set limits of a user or a group on a file system, and return its limits. Limits that are not given are kept.
///
/// CLI Example:
///
///     salt '*' quota.set /media/data user=larry block-soft-limit=1048576
///     salt '*' quota.set /media/data group=painters file-hard-limit=1000
#[function(name = "set")]
pub fn set_(
    context: &Context,
    /// The mount point, or the device.
    device: String,
    /// `user` or `group`; `block-soft-limit` and `block-hard-limit` in kilobytes, `file-soft-limit` and
    /// `file-hard-limit`. 0 is no limit.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let owner = Owner::of(&kwargs)?;
    check(&kwargs)?;
    let new_limit = |limit: &str| kwargs.get(limit).cloned();
    let mut limits = Map::new();
    let all_given = LIMITS.iter().all(|limit| kwargs.contains_key(*limit));
    let former = if all_given { Map::new() } else { owner.limits(context, &device)? };
    let mut words = vec!["setquota".to_owned(), owner.kind.flag().to_owned(), argument(&owner.name)?];
    for limit in LIMITS {
        let value = new_limit(limit).or_else(|| former.get(limit).cloned()).unwrap_or(Value::Int(0));
        words.push(argument(&value.to_string())?);
        limits.insert(limit.into(), value);
    }
    words.push(argument(&device)?);
    let output = run(context, &words, &[])?;
    if output.retcode != 0 {
        let message = format!("Unable to set desired quota. Error follows: \n{}", output.stderr);
        return Err(CallError::Execution(message));
    }
    Ok(map! {owner.title() => limits}.into())
}

/// The user or group that limits apply to.
struct Owner {
    kind: Kind,
    name: String,
}

impl Owner {
    fn of(kwargs: &Map) -> Result<Self, CallError> {
        let named = |kind: Kind| kwargs.get(kind.name()).map(|name| Owner { kind, name: name.to_string() });
        match (named(Kind::User), named(Kind::Group)) {
            (Some(_), Some(_)) => {
                let message = "Please specify a user or group, not both.".into();
                Err(CallError::Invocation { function: "quota.set".into(), message })
            }
            (Some(owner), None) | (None, Some(owner)) => Ok(owner),
            (None, None) => Err(CallError::Execution("A valid user or group was not found".into())),
        }
    }

    fn title(&self) -> String {
        match self.kind {
            Kind::User => format!("User: {}", self.name),
            Kind::Group => format!("Group: {}", self.name),
        }
    }

    /// Returns the present limits. The report has no row for an owner without files and limits.
    fn limits(&self, context: &Context, device: &str) -> Result<Map, CallError> {
        let output = repquota(context, device, self.kind)?;
        if output.retcode != 0 {
            let message = format!("Unable to read the present limits. Error follows: \n{}", output.stderr);
            return Err(CallError::Execution(message));
        }
        let report = parse::report(&output.stdout, self.kind);
        let rows = report.get(self.kind.rows());
        // An ID without a name is reported as `#1000`.
        let row = rows.and_then(|rows| rows.get(&self.name).or_else(|| rows.get(&format!("#{}", self.name))));
        let number = |limit: &str| {
            let text = row.and_then(|row| row.get(limit)).and_then(Value::as_str).unwrap_or("0");
            let invalid = || CallError::Execution(format!("{limit} is invalid: expected a number, got {text}"));
            text.parse::<i64>().map_err(|_| invalid())
        };
        LIMITS.iter().map(|limit| Ok(((*limit).into(), number(limit)?.into()))).collect()
    }
}

/// Checks the names of the arguments: a limit that is misspelled must not be ignored.
fn check(kwargs: &Map) -> Result<(), CallError> {
    let is_known = |name: &str| name.starts_with("__") || ["user", "group"].contains(&name) || LIMITS.contains(&name);
    match kwargs.keys().map(ToString::to_string).find(|name| !is_known(name)) {
        Some(name) => {
            let message = format!("{name} is not a limit: expected {}", LIMITS.join(", "));
            Err(CallError::Invocation { function: "quota.set".into(), message })
        }
        None => Ok(()),
    }
}
