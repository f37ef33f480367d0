//! Jobs and the returns of minions.
//!
//! Both types retain the original map, so that fields that only some functions or peers know are passed on.

mod call;
mod driver;
mod fields;
pub mod metrics;
pub mod orchestration;
pub mod plan;
mod published;
mod reports;
#[cfg(test)]
mod tests;
pub mod trim;
mod watch;

use brine_ids::{InvalidJid, InvalidMinionId, Jid, MinionId};
use brine_value::{FromValue, Map, Value, map};
use jiff::Zoned;
use jiff::civil::DateTime;

pub use call::Call;
pub use driver::{Action, Batch, Driver, Halt};
pub use fields::{Rule, rule_of_option};
pub use published::{AUTH_LIST, LOAD_OPTIONS, MASTER_ID, Published};
pub use reports::ReportingSyndics;
pub use watch::{Due, Times, Watch};

/// The error of a map that is not a valid job or return.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidJob {
    /// A required field is missing, or has a value other than a string.
    #[error("field '{0}' is missing or of the wrong type")]
    Field(&'static str),
    /// The job id is invalid.
    #[error("field 'jid': {0}")]
    Jid(#[from] InvalidJid),
    /// The minion id is invalid.
    #[error("field 'id': {0}")]
    Id(#[from] InvalidMinionId),
    /// The packed form is invalid.
    #[error("the packed job is invalid: {0}")]
    Body(String),
}

fn text<'a>(map: &'a Map, field: &'static str) -> Result<&'a str, InvalidJob> {
    map.get(field).and_then(Value::as_str).ok_or(InvalidJob::Field(field))
}

/// Returns the additional returners that minions use: the comma-separated names in the field `ret`.
fn returners(map: &Map) -> Vec<&str> {
    let names = map.get("ret").and_then(Value::as_str).unwrap_or_default();
    names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect()
}

/// A job: `jid`, `fun`, `arg`, `tgt`, `tgt_type`, `user`, `ret`, `minions`, `metadata`, ...
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    jid: Jid,
    map: Map,
}

impl Load {
    /// Parses a job; its `jid` must be valid.
    pub fn from_map(map: Map) -> Result<Self, InvalidJob> {
        Ok(Load { jid: text(&map, "jid")?.parse()?, map })
    }

    /// Returns the job id.
    pub fn jid(&self) -> &Jid {
        &self.jid
    }

    /// Returns all fields.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// Returns all fields by value.
    pub fn into_map(self) -> Map {
        self.map
    }

    fn field(&self, name: &str) -> &Value {
        self.map.get(name).unwrap_or(&Value::Nil)
    }

    /// Returns the name of the function, or a list of names.
    pub fn fun(&self) -> &Value {
        self.field("fun")
    }

    /// Returns the arguments in wire format: keyword arguments are a mapping that contains `__kwarg__`.
    pub fn arg(&self) -> &[Value] {
        self.field("arg").as_list().unwrap_or_default()
    }

    /// Returns the target: a string, or a list of minions.
    pub fn tgt(&self) -> &Value {
        self.field("tgt")
    }

    /// Returns the type of the target: `glob`, `list`, `compound`, ...
    pub fn tgt_type(&self) -> &str {
        self.field("tgt_type").as_str().unwrap_or("glob")
    }

    /// Returns the user who published the job.
    pub fn user(&self) -> &str {
        self.field("user").as_str().filter(|user| !user.is_empty()).unwrap_or("root")
    }

    /// Returns the additional returners that minions use.
    pub fn ret(&self) -> Vec<&str> {
        returners(&self.map)
    }

    /// Returns the minions that were expected to return, in their order in the job. The field is `Minions` in Salt's
    /// job cache, and `minions` in Salt's event.
    pub fn minions(&self) -> Vec<MinionId> {
        let listed = ["minions", "Minions"].into_iter().find_map(|field| self.map.get(field));
        let listed = listed.and_then(Value::as_list).unwrap_or_default();
        listed.iter().filter_map(|id| id.as_str()?.parse().ok()).collect()
    }

    /// Adds expected minions, and sorts them.
    #[must_use]
    pub fn with_minions(mut self, more: impl IntoIterator<Item = MinionId>) -> Self {
        let mut minions = self.minions();
        let before = minions.len();
        minions.extend(more);
        if minions.len() > before {
            minions.sort();
            minions.dedup();
            self.map.shift_remove("Minions");
            self.map.insert("minions".into(), minions.iter().map(Value::from).collect());
        }
        self
    }

    /// Returns the user's metadata of the job: a field of its own or, from a command line, a keyword argument.
    pub fn metadata(&self) -> Option<&Value> {
        let of_kwargs = || self.field("kwargs").get("metadata");
        let is_keywords = |arg: &&Value| arg.get("__kwarg__").and_then(Value::as_bool) == Some(true);
        let of_arg = || self.arg().iter().filter(is_keywords).find_map(|arg| arg.get("metadata"));
        self.map.get("metadata").or_else(of_kwargs).or_else(of_arg)
    }

    /// Returns the time of the job's creation, in the master's local time.
    pub fn time(&self) -> Option<DateTime> {
        self.jid.time()
    }

    /// Returns the job as listings show it: `Function`, `Arguments`, `Target`, `Target-type`, `User`, `Metadata` if
    /// there is any, `StartTime`. Unknown values have Salt's wording.
    pub fn summary(&self) -> Map {
        let or = |value: &Value, unknown: &str| if value.is_nil() { unknown.into() } else { value.clone() };
        let mut summary = map! {
            "Function" => or(self.fun(), "unknown-function"),
            "Arguments" => self.arg().to_vec(),
            "Target" => or(self.tgt(), "unknown-target"),
            "Target-type" => or(self.field("tgt_type"), "list"),
            "User" => self.user(),
        };
        if let Some(metadata) = self.metadata() {
            summary.insert("Metadata".into(), metadata.clone());
        }
        summary.insert("StartTime".into(), self.jid.start_time().into());
        summary
    }
}

/// The field of a return with the errors of returners that the job names.
pub const RETURN_ERRORS: &str = "return_errors";

/// The return of a minion: `jid`, `id`, `fun`, `fun_args`, `return`, `retcode`, `success`, `out`, ...
#[derive(Debug, Clone, PartialEq)]
pub struct Return {
    jid: Jid,
    id: MinionId,
    map: Map,
}

impl Return {
    /// Parses a return; its `jid` and `id` must be valid, and `return` must exist.
    ///
    /// A minion's scheduled job has the jid `req`: the receiver replaces it by a new one first.
    pub fn from_map(map: Map) -> Result<Self, InvalidJob> {
        let (jid, id) = (text(&map, "jid")?.parse()?, text(&map, "id")?.parse()?);
        if map.contains_key("return") { Ok(Return { jid, id, map }) } else { Err(InvalidJob::Field("return")) }
    }

    /// Returns the job id.
    pub fn jid(&self) -> &Jid {
        &self.jid
    }

    /// Returns the minion.
    pub fn id(&self) -> &MinionId {
        &self.id
    }

    /// Returns all fields.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// Returns all fields by value.
    pub fn into_map(self) -> Map {
        self.map
    }

    /// Returns the function's name; empty for several functions.
    pub fn fun(&self) -> &str {
        self.map.get("fun").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the arguments of the function.
    pub fn fun_args(&self) -> &[Value] {
        self.map.get("fun_args").and_then(Value::as_list).unwrap_or_default()
    }

    /// Returns the result of the function.
    pub fn value(&self) -> &Value {
        self.map.get("return").unwrap_or(&Value::Nil)
    }

    /// Returns the retcode, 0 for success.
    pub fn retcode(&self) -> i64 {
        retcode(&self.map)
    }

    /// Returns the errors of the job's returners.
    pub fn return_errors(&self) -> impl Iterator<Item = &str> {
        self.map.get(RETURN_ERRORS).and_then(Value::as_list).unwrap_or_default().iter().filter_map(Value::as_str)
    }

    /// Whether the minion reports success. A missing field means success, as Salt's minions may omit it.
    pub fn success(&self) -> bool {
        self.map.get("success").is_none_or(Value::is_truthy)
    }

    /// Returns the outputter for the result, if the function suggests one.
    pub fn out(&self) -> Option<&str> {
        self.map.get("out").and_then(Value::as_str)
    }

    /// Returns the additional returners that the minion uses.
    pub fn ret(&self) -> Vec<&str> {
        returners(&self.map)
    }

    /// Returns the part that job caches show: `return`, `retcode`, `success` and `out`, if they exist.
    pub fn summary(&self) -> Map {
        let fields = ["return", "retcode", "success", "out"];
        fields.iter().filter_map(|name| Some(((*name).into(), self.map.get(*name)?.clone()))).collect()
    }
}

/// Returns the oldest jid that is kept if jobs expire after `seconds`: all smaller jids are older. `None` for 0, which
/// means that jobs never expire, as in `keep_jobs_seconds`.
pub fn oldest_kept(now: &Zoned, seconds: u64) -> Option<Jid> {
    let age = jiff::Span::new().try_seconds(i64::try_from(seconds).ok()?).ok()?;
    let oldest = now.checked_sub(age).ok().filter(|_| seconds > 0)?;
    format!("{}000000", oldest.strftime("%Y%m%d%H%M%S")).parse().ok()
}

/// Returns the job id and the minion id from the tag of a return: `salt/job/<jid>/ret/<id>`.
pub fn return_tag(tag: &str) -> Option<(&str, &str)> {
    tag.strip_prefix("salt/job/")?.split_once("/ret/")
}

/// Returns the retcode of a return: 0 for success, or if it is missing. For several functions, returns the first
/// retcode other than 0; a negative one is a signal.
pub fn retcode(map: &Map) -> i64 {
    match map.get("retcode") {
        Some(Value::Map(codes)) => codes.values().filter_map(i64::from_value).find(|code| *code != 0).unwrap_or(0),
        Some(code) => i64::from_value(code).unwrap_or(0),
        None => 0,
    }
}

/// The error of the size of a batch. Its message is Salt's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Invalid batch specification '{0}': must be an integer or percentage string like '10' or '25%'.")]
pub struct BatchSizeError(pub String);

/// Returns the number of minions in a batch of `all`, at least 1. The text is an integer, or a percentage such as
/// `25%`.
///
/// # Errors
/// The text is neither.
pub fn batch_size(text: &str, all: usize) -> Result<usize, BatchSizeError> {
    let wrong = || BatchSizeError(text.to_owned());
    // As in Salt, the percent sign may come first.
    let number = match text.contains('%').then(|| text.trim_matches('%')) {
        Some(percent) => {
            let percent: f64 = percent.trim().parse().map_err(|_| wrong())?;
            (all as f64 * percent / 100.0).floor() as usize
        }
        None => usize::try_from(text.trim().parse::<i64>().map_err(|_| wrong())?).unwrap_or(0),
    };
    Ok(number.max(1))
}
