//! A master's reply to a publish request, and the options of a publish that minions receive.

use std::time::Duration;

use brine_ids::Jid;
use brine_value::{FromValue, Value, map};

use crate::ReportingSyndics;

/// The option with the permissions of the job's user, for masters below (`order_masters`).
pub const AUTH_LIST: &str = "auth_list";
/// The option with the id of the master that published the job, for masters below.
pub const MASTER_ID: &str = "master_id";

/// The options of a request that become part of the load for minions, and that masters below pass on.
pub const LOAD_OPTIONS: &[&str] = &[
    "delimiter",
    "metadata",
    "ret_config",
    "ret_kwargs",
    "module_executors",
    "executor_opts",
    "start_event",
    "id",
    AUTH_LIST,
    MASTER_ID,
];

/// A published job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Published {
    /// The job id; `None` if the target matches no accepted minion, and nothing was published.
    pub jid: Option<Jid>,
    /// The minions that are expected to return.
    pub minions: Vec<String>,
    /// The ids in a list target that are not accepted minions.
    pub missing: Vec<String>,
    /// Those among `minions` that are certainly disconnected, and will not return soon.
    pub disconnected: Vec<String>,
    /// The connected syndics, if there are masters below.
    pub syndics: Option<ReportingSyndics>,
}

impl Published {
    /// Parses the reply of a master.
    pub fn from_value(reply: &Value) -> Self {
        let list = |name| -> Vec<String> {
            reply.get(name).and_then(Value::as_list).unwrap_or_default().iter().map(ToString::to_string).collect()
        };
        let jid = reply.get("jid").and_then(Value::as_str).and_then(|jid| jid.parse().ok());
        let wait = reply.get("syndic_wait").and_then(u64::from_value);
        let syndics = wait.map(|wait| ReportingSyndics { ids: list("syndics"), wait: Duration::from_secs(wait) });
        let disconnected = list("disconnected");
        Published { jid, minions: list("minions"), missing: list("missing"), disconnected, syndics }
    }

    /// Returns the reply to a client: Salt's fields, and others where they apply: `disconnected`, and with masters below
    /// `syndics` and `syndic_wait`.
    pub fn to_value(&self) -> Value {
        let mut answer = map! {
            "jid" => self.jid.as_ref().map(Jid::to_string),
            "minions" => self.minions.clone(),
            "missing" => self.missing.clone(),
        };
        if !self.disconnected.is_empty() {
            answer.insert("disconnected".into(), self.disconnected.clone().into());
        }
        if let Some(syndics) = &self.syndics {
            answer.insert("syndics".into(), syndics.ids.clone().into());
            answer.insert("syndic_wait".into(), syndics.wait.as_secs().into());
        }
        answer.into()
    }

    /// Returns the minions to wait for.
    pub fn awaited(&self) -> Vec<String> {
        self.minions.iter().filter(|id| !self.disconnected.contains(id)).cloned().collect()
    }

    /// Returns Salt's message about a minion that did not return.
    pub fn no_return(&self, id: &str, jid: &str) -> String {
        let reason = if self.disconnected.iter().any(|minion| minion == id) { "Not connected" } else { "No response" };
        no_return(jid, reason)
    }

    /// Returns the minions that may return. If there are masters below, listed ids that are unknown here may be minions
    /// of theirs.
    pub fn reached(&self) -> Vec<String> {
        let unknown = if self.syndics.is_some() { &self.missing[..] } else { &[] };
        [&self.minions[..], unknown].concat()
    }
}

/// Returns Salt's message about a minion that did not return, with Salt's word for the reason.
fn no_return(jid: &str, reason: &str) -> String {
    format!(
        "Minion did not return. [{reason}]\n\
         The minions may not have all finished running and any remaining minions will return upon completion. \
         To look up the return data for this job later, run the following command:\n\
         \n\
         salt-run jobs.lookup_jid {jid}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_round_trip() {
        let syndics = ReportingSyndics { ids: vec!["s1".to_owned()], wait: Duration::from_secs(5) };
        for (syndics, reached) in [(None, vec!["m1"]), (Some(syndics), vec!["m1", "gone"])] {
            let (minions, missing) = (vec!["m1".to_owned()], vec!["gone".to_owned()]);
            let published = Published { jid: Some(Jid::new()), minions, missing, disconnected: Vec::new(), syndics };
            assert_eq!(Published::from_value(&published.to_value()), published);
            assert_eq!(published.reached(), reached);
        }
    }

    #[test]
    fn disconnected_minions_are_not_awaited() {
        let [minions, disconnected] = [vec!["m1".to_owned(), "m2".to_owned()], vec!["m2".to_owned()]];
        let jid = Some(Jid::new());
        let published = Published { jid, minions, missing: Vec::new(), disconnected, syndics: None };
        assert_eq!(Published::from_value(&published.to_value()), published);
        assert_eq!(published.awaited(), ["m1"]);
        assert!(published.no_return("m2", "1").starts_with("Minion did not return. [Not connected]\n"));
        assert!(published.no_return("m1", "1").starts_with("Minion did not return. [No response]\n"));
    }

    #[test]
    fn the_no_return_message_names_the_job() {
        let text = no_return("20261121002328592174", "No response");
        assert!(text.starts_with("Minion did not return. [No response]\nThe minions may"), "{text}");
        assert!(text.ends_with(":\n\nsalt-run jobs.lookup_jid 20261121002328592174"), "{text}");
    }
}
