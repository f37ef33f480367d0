//! A kept plan, and the arguments of the job that applies it.

use brine_value::{Map, Value, map};

/// The version of the form of a plan.
pub(super) const FORM: i64 = 1;

/// The error of data that is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPlan {
    /// A field is missing, or has another type.
    #[error("the plan is invalid: expected {expected} in '{field}', got {got}")]
    Field {
        /// The name of the field.
        field: &'static str,
        /// What it should be.
        expected: &'static str,
        /// What it is.
        got: String,
    },
    /// A newer release wrote the plan.
    #[error("the plan has the form {0}, which this release does not know: apply it with the release that wrote it")]
    Form(i64),
    /// Steps of an orchestration have the same name: which digest is meant would be open.
    #[error("several steps have the name '{0}': give each 'salt.state' a name of its own")]
    SameName(String),
}

/// A plan: a job, and for each minion that would change the digest of its changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    map: Map,
}

impl Plan {
    /// Creates the plan of a dry run: `job` has `fun`, `arg` (without `test`), `tgt`, `tgt_type`, `jid`, `user`, and
    /// further fields for display; `groups` is what [`Groups::to_value`](super::Groups::to_value) returns.
    ///
    /// # Errors
    /// Fields of another type.
    pub fn new(job: Map, groups: Map) -> Result<Self, InvalidPlan> {
        let mut map = map! {"plan" => FORM};
        map.extend(job);
        map.extend(groups);
        Self::from_map(map)
    }

    /// Reads a plan, such as that of a file.
    ///
    /// # Errors
    /// Data that is no plan.
    pub fn from_map(map: Map) -> Result<Self, InvalidPlan> {
        let wrong = |field: &'static str, expected: &'static str| {
            let got = map.get(field).map_or("nothing", Value::type_name).to_owned();
            InvalidPlan::Field { field, expected, got }
        };
        check_form(&map)?;
        map.get("fun").and_then(Value::as_str).ok_or_else(|| wrong("fun", "a function"))?;
        map.get("arg").and_then(Value::as_list).ok_or_else(|| wrong("arg", "a list"))?;
        map.get("jid").and_then(Value::as_str).ok_or_else(|| wrong("jid", "a job id"))?;
        let groups = map.get("groups").and_then(Value::as_list).ok_or_else(|| wrong("groups", "a list"))?;
        check_groups(groups)?;
        Ok(Plan { map })
    }

    /// Returns the plan as data.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// Adds a field, such as the id under which a master keeps the plan.
    pub fn insert(&mut self, name: &str, value: impl Into<Value>) {
        self.map.insert(name.into(), value.into());
    }

    /// Returns the function.
    pub fn fun(&self) -> &str {
        self.map.get("fun").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the arguments in their wire format, without `test`.
    pub fn arg(&self) -> &[Value] {
        self.map.get("arg").and_then(Value::as_list).unwrap_or_default()
    }

    /// Returns the id under which a master keeps the plan.
    pub fn id(&self) -> Option<&str> {
        self.map.get("id").and_then(Value::as_str)
    }

    /// Returns the minions by digest.
    pub fn digests(&self) -> Map {
        digests_of(self.map.get("groups").and_then(Value::as_list).unwrap_or_default())
    }

    /// Returns the minions that would change, sorted.
    pub fn minions(&self) -> Vec<String> {
        let digests = self.digests();
        let ids = digests.values().filter_map(Value::as_list).flatten().map(ToString::to_string);
        let mut ids: Vec<String> = ids.collect();
        ids.sort();
        ids
    }

    /// Returns the arguments of the function that applies a plan: the planned function, the digests, and the arguments of the function.
    pub fn apply_arg(&self) -> Vec<Value> {
        let mut planned = map! {"digests" => self.digests()};
        if let Some(id) = self.id() {
            planned.insert("id".into(), id.into());
        }
        let mut arg = vec![self.fun().into(), planned.into()];
        arg.extend(self.arg().iter().cloned());
        arg
    }
}

/// Returns the minions of groups by digest.
pub(super) fn digests_of(groups: &[Value]) -> Map {
    let one = |group: &Value| Some((group.get("digest")?.clone(), group.get("minions")?.clone()));
    groups.iter().filter_map(one).collect()
}

/// Checks the version of a plan.
pub(super) fn check_form(map: &Map) -> Result<(), InvalidPlan> {
    match map.get("plan").and_then(Value::as_i64) {
        Some(FORM) => Ok(()),
        Some(form) => Err(InvalidPlan::Form(form)),
        None => {
            let got = map.get("plan").map_or("nothing", Value::type_name).to_owned();
            Err(InvalidPlan::Field { field: "plan", expected: "a number", got })
        }
    }
}

/// Checks that each group has a digest and minions.
pub(super) fn check_groups(groups: &[Value]) -> Result<(), InvalidPlan> {
    for group in groups {
        let wrong = |expected| InvalidPlan::Field { field: "groups", expected, got: group.to_string() };
        let is_digest = |text: &&str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        group.get("digest").and_then(Value::as_str).filter(is_digest).ok_or_else(|| wrong("digests"))?;
        let are_ids = |ids: &&[Value]| ids.iter().all(|id| id.as_str().is_some());
        group.get("minions").and_then(Value::as_list).filter(are_ids).ok_or_else(|| wrong("minions"))?;
    }
    Ok(())
}
