//! Jobs: what was asked, and what a minion returned.
//!
//! Both keep the map that they came as: fields that only some functions or peers know are handed on.

use crate::jid::Jid;
use crate::minion_id::MinionId;
use crate::value::{Map, Value};

/// A map is not a job or not a return.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("field '{field}': {reason}")]
pub struct InvalidJob {
    /// Which field is wrong or missing.
    pub field: &'static str,
    /// What is wrong.
    pub reason: String,
}

fn parsed<T: std::str::FromStr>(map: &Map, field: &'static str) -> Result<T, InvalidJob>
where
    T::Err: std::fmt::Display,
{
    let text = map.get(field).and_then(Value::as_str);
    let text = text.ok_or_else(|| InvalidJob { field, reason: "it is missing".into() })?;
    text.parse().map_err(|error: T::Err| InvalidJob { field, reason: error.to_string() })
}

/// What was asked: `fun`, `arg`, `tgt`, `tgt_type`, `user`, `minions`, ...
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    jid: Jid,
    map: Map,
}

impl Load {
    /// Reads a load; its `jid` must be one.
    pub fn from_map(map: Map) -> Result<Self, InvalidJob> {
        Ok(Load { jid: parsed(&map, "jid")?, map })
    }

    /// The job's id.
    pub fn jid(&self) -> &Jid {
        &self.jid
    }

    /// All fields.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// The function, or several in a list.
    pub fn fun(&self) -> &Value {
        self.map.get("fun").unwrap_or(&Value::Nil)
    }

    /// The minions that were expected to return.
    pub fn minions(&self) -> Vec<&str> {
        let minions = self.map.get("minions").and_then(Value::as_list).unwrap_or_default();
        minions.iter().filter_map(Value::as_str).collect()
    }
}

/// What a minion returned: `return`, `retcode`, `success`, `fun`, `fun_args`, `out`, ...
#[derive(Debug, Clone, PartialEq)]
pub struct Return {
    jid: Jid,
    id: MinionId,
    map: Map,
}

impl Return {
    /// Reads a return; its `jid` and `id` must be such.
    pub fn from_map(map: Map) -> Result<Self, InvalidJob> {
        Ok(Return { jid: parsed(&map, "jid")?, id: parsed(&map, "id")?, map })
    }

    /// The job's id.
    pub fn jid(&self) -> &Jid {
        &self.jid
    }

    /// Who returned.
    pub fn id(&self) -> &MinionId {
        &self.id
    }

    /// All fields.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// The function's name; empty if several were called.
    pub fn fun(&self) -> &str {
        self.map.get("fun").and_then(Value::as_str).unwrap_or_default()
    }

    /// What the function returned.
    pub fn value(&self) -> &Value {
        self.map.get("return").unwrap_or(&Value::Nil)
    }

    /// 0 if all went well.
    pub fn retcode(&self) -> i64 {
        match self.map.get("retcode") {
            Some(Value::Int(code)) => *code,
            // Several functions: the worst counts.
            Some(Value::Map(codes)) => codes.values().filter_map(Value::as_i64).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Whether the minion says that all went well.
    pub fn success(&self) -> bool {
        self.map.get("success").is_none_or(Value::is_truthy)
    }

    /// The part that job caches show: `return`, `retcode`, `success`, and `out` if there is one.
    pub fn summary(&self) -> Map {
        let mut summary =
            crate::map! {"return" => self.value().clone(), "retcode" => self.retcode(), "success" => self.success()};
        if let Some(out) = self.map.get("out") {
            summary.insert("out".into(), out.clone());
        }
        summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map;

    #[test]
    fn a_return_without_safe_names_is_refused() {
        let good =
            map! {"jid" => "20261120235852025555", "id" => "web1", "return" => true, "retcode" => 2, "extra" => 1};
        let job_return = Return::from_map(good.clone()).unwrap();
        assert_eq!((job_return.retcode(), job_return.success(), job_return.map()), (2, true, &good));
        for (field, value) in [("jid", "../x"), ("id", "../x"), ("id", "")] {
            let mut bad = good.clone();
            bad.insert(field.into(), value.into());
            assert_eq!(Return::from_map(bad).unwrap_err().field, field);
        }
        assert_eq!(Return::from_map(map! {}).unwrap_err().reason, "it is missing");
    }
}
