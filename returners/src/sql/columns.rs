//! The columns of jobs and returns: whole JSON documents, or a column for each field.

#[cfg(feature = "postgres")]
use brine_ids::{Jid, MinionId};
use brine_job::{Load, Return};
use brine_value::{Map, Value, json};

use crate::{ReturnerError, encoding};

/// The conversion between columns and jobs and returns.
pub(super) struct Columns {
    /// The parameters that store a load.
    pub of_load: fn(&Load, Texts) -> Vec<String>,
    /// The columns that store a return: function, job id, value, minion id, success, and others. Their order matters:
    /// existing returns are found by it.
    pub of_return: fn(&Return, Texts) -> Vec<String>,
    /// Decodes the columns of a load.
    pub to_load: fn(&'static str, &[String]) -> Result<Load, ReturnerError>,
    /// Decodes a return of this job and minion to the form of [`crate::Returner::get_jid`].
    pub to_summary: fn(&'static str, &str, &str, &str) -> Result<Map, ReturnerError>,
}

/// The encoding of values in a layout.
#[derive(Clone, Copy)]
pub(super) struct Texts {
    /// The texts of false and true.
    pub booleans: [&'static str; 2],
    /// Whether columns can contain NUL characters, or their escapes in JSON.
    pub holds_nul: bool,
}

impl Texts {
    /// Encodes a value as JSON that a column can hold.
    pub fn json(self, value: &Value) -> String {
        if self.holds_nul { json::to_json(value) } else { json::to_json(&without_nul(value)) }
    }

    /// Returns a text that a column can store: columns of PostgreSQL cannot contain NUL characters.
    #[cfg(feature = "postgres")]
    fn plain(self, text: String) -> String {
        if self.holds_nul { text } else { text.replace('\0', "") }
    }
}

/// Returns a value without the NUL characters of its strings, which PostgreSQL's jsonb cannot contain.
fn without_nul(value: &Value) -> Value {
    match value {
        Value::Str(text) if text.contains('\0') => text.replace('\0', "").into(),
        Value::List(items) => items.iter().map(without_nul).collect::<Vec<_>>().into(),
        Value::Map(map) => Value::Map(map.iter().map(|(key, value)| (without_nul(key), without_nul(value))).collect()),
        other => other.clone(),
    }
}

fn column(row: &[String], index: usize) -> &str {
    row.get(index).map(String::as_str).unwrap_or_default()
}

/// JSON documents: the load, the value of a return, and the return.
pub(super) const WHOLE: Columns = Columns {
    of_load: |load, texts| vec![load.jid().to_string(), texts.json(&load.map().clone().into())],
    of_return: |one, texts| {
        let success = one.map().get("success").is_some_and(Value::is_truthy);
        vec![
            one.fun().to_owned(),
            one.jid().to_string(),
            texts.json(one.value()),
            one.id().to_string(),
            texts.booleans[usize::from(success)].to_owned(),
            texts.json(&one.map().clone().into()),
        ]
    },
    to_load: |returner, row| encoding::to_load(returner, "jids", column(row, 0)),
    to_summary: |returner, jid, id, text| {
        Ok(encoding::to_return(returner, &format!("jid {jid}, id {id}"), text)?.summary())
    },
};

/// A column for each field in Salt's encoding, and one for the whole load, which Salt does not have. Returns lack the
/// fields that `salt-run jobs.lookup_jid` does not show.
#[cfg(feature = "postgres")]
pub(super) const SEPARATE: Columns = Columns {
    of_load: |load, texts| {
        let field = |name: &str| load.map().get(name).unwrap_or(&Value::Nil);
        let text = |name: &str| texts.plain(field(name).to_string());
        vec![
            load.jid().to_string(),
            texts.json(&load.map().clone().into()),
            text("tgt_type"),
            text("cmd"),
            text("tgt"),
            text("kwargs"),
            text("ret"),
            text("user"),
            texts.json(field("arg")),
            text("fun"),
            started(load.jid()),
        ]
    },
    of_return: |one, texts| {
        let success = one.map().get("success").map_or("", |success| texts.booleans[usize::from(success.is_truthy())]);
        vec![
            texts.plain(one.fun().to_owned()),
            one.jid().to_string(),
            texts.json(&one.summary().into()),
            one.id().to_string(),
            success.to_owned(),
        ]
    },
    to_load: |returner, row| {
        if !column(row, 0).is_empty() {
            return encoding::to_load(returner, "jids", column(row, 0));
        }
        // The row was written by Salt.
        let key = column(row, 1);
        let names = ["jid", "tgt_type", "cmd", "tgt", "kwargs", "ret", "user", "arg", "fun"];
        let mut map: Map =
            names.iter().enumerate().map(|(index, name)| ((*name).into(), column(row, index + 1).into())).collect();
        map.insert("arg".into(), encoding::to_value(returner, key, column(row, 8))?);
        Load::from_map(map).map_err(|error| ReturnerError::damaged(returner, key, error))
    },
    to_summary: |returner, jid, id, text| {
        let key = format!("jid {jid}, id {id}");
        // Rows with invalid ids are foreign.
        let invalid = |error: &dyn std::fmt::Display| ReturnerError::damaged(returner, &key, error);
        jid.parse::<Jid>().map_err(|error| invalid(&error))?;
        id.parse::<MinionId>().map_err(|error| invalid(&error))?;
        Ok(match encoding::to_value(returner, &key, text)? {
            Value::Map(map) if map.contains_key("return") => map,
            // Old versions of Salt stored the value alone.
            value => [("return".into(), value)].into_iter().collect(),
        })
    },
};

/// Returns the time of a job in PostgreSQL's format, with the offset from UTC.
#[cfg(feature = "postgres")]
fn started(jid: &Jid) -> String {
    let time = jid.time().and_then(|time| time.to_zoned(brine_clock::zone()).ok());
    time.unwrap_or_else(brine_clock::now).strftime("%Y-%m-%d %H:%M:%S%.6f%:z").to_string()
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn nul_is_removed_from_strings_and_keys() {
        let value = map! {"a\0b" => list!["\0", 1, "c"]}.into();
        assert_eq!(without_nul(&value), map! {"ab" => list!["", 1, "c"]}.into());
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn rows_of_salt_are_decoded() {
        let row = ["", "20261120235852025555", "glob", "publish", "*", "None", "", "root", "[1, \"a\"]", "test.arg"];
        let load = (SEPARATE.to_load)("x", &row.map(str::to_owned)).unwrap();
        assert_eq!(
            (load.fun(), load.arg(), load.tgt()),
            (&"test.arg".into(), &[1.into(), "a".into()][..], &"*".into())
        );
        let summary = |text| (SEPARATE.to_summary)("x", "20261120235852025555", "web1", text);
        assert_eq!(summary(r#"{"return": 1, "retcode": 2}"#).unwrap(), map! {"return" => 1, "retcode" => 2});
        assert_eq!(summary(r#"{"a": 1}"#).unwrap(), map! {"return" => map! {"a" => 1}});
        assert!(summary("{").is_err());
    }
}
