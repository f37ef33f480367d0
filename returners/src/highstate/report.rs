//! The report of a state run: statistics, the job, and the states in the order of the run.

use brine_job::Return;
use brine_value::{Map, Value, list, map};

/// The runs that are reported.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReportedRuns {
    pub everything: bool,
    pub changes: bool,
    pub failures: bool,
}

pub(super) struct Report {
    /// Lists of mappings with one name each, which keeps their order in every format. Beside the name, a mapping may have
    /// the `__style__` of its part.
    pub value: Value,
    pub has_failed: bool,
}

/// The result of one state.
struct State<'a> {
    /// The key in the return, such as `file_|-motd_|-/etc/motd_|-managed`.
    key: &'a str,
    data: &'a Map,
}

impl<'a> State<'a> {
    fn field(&self, name: &str) -> &'a Value {
        self.data.get(name).unwrap_or(&Value::Nil)
    }

    fn has_failed(&self) -> bool {
        self.data.get("result").is_some_and(|result| !result.is_truthy())
    }

    fn has_changed(&self) -> bool {
        self.field("changes").is_truthy()
    }

    fn duration(&self) -> f64 {
        let duration = self.field("duration");
        duration.as_f64().or_else(|| duration.to_string().trim().parse().ok()).unwrap_or_default()
    }

    fn report(&self) -> Value {
        let parts: Vec<&str> = self.key.split("_|-").collect();
        let &[module, id, name, function] = &parts[..] else { return Value::Nil };
        let or = |value: &Value, default: Value| if value.is_nil() { default } else { value.clone() };
        let mut single = vec![
            row("function", format!("{module}.{function}")),
            row("name", name),
            row(
                "result",
                or(self.field("result"), if self.data.contains_key("result") { Value::Nil } else { "".into() }),
            ),
            row("duration", or(self.field("duration"), 0.0.into())),
            row("comment", or(self.field("comment"), "".into())),
        ];
        let is_failed = !self.field("result").is_truthy();
        let changes = self.field("changes").as_map().filter(|changes| !is_failed && !changes.is_empty());
        if let Some(changes) = changes {
            single.push(row("changes", pairs(changes)));
        }
        let style = match (is_failed, changes) {
            (true, _) => "failed",
            (false, Some(_)) => "changed",
            (false, None) => "unchanged",
        };
        if self.field("start_time").is_truthy() {
            single.push(row("started", self.field("start_time").clone()));
        }
        map! {id => single, "__style__" => style}.into()
    }
}

fn row(name: &str, value: impl Into<Value>) -> Value {
    map! {name => value.into()}.into()
}

/// Returns a mapping as a list of mappings with one name each, sorted by name.
fn pairs(map: &Map) -> Value {
    let mut sorted: Vec<(&Value, &Value)> = map.iter().collect();
    sorted.sort_by_key(|(name, _)| name.to_string());
    let pair = |(name, value): (&Value, &Value)| -> Value {
        let value = value.as_map().map_or_else(|| value.clone(), pairs);
        Value::Map([(name.clone(), value)].into_iter().collect())
    };
    sorted.into_iter().map(pair).collect::<Vec<_>>().into()
}

/// Returns the report of a state run; `None` if it is not to be reported, or if the return is not that of a state run.
pub(super) fn build(job_return: &Return, reported_runs: ReportedRuns) -> Option<Report> {
    let states = job_return.value().as_map()?;
    let of_entry = |(key, data): (&'_ Value, &'_ Value)| -> bool {
        key.as_str().is_some_and(|key| key.split("_|-").count() == 4) && data.as_map().is_some()
    };
    if states.is_empty() || !states.iter().all(of_entry) {
        tracing::debug!(jid = %job_return.jid(), "the return is not that of a state run: there is no report of it");
        return None;
    }
    let mut states: Vec<State> =
        states.iter().filter_map(|(key, data)| Some(State { key: key.as_str()?, data: data.as_map()? })).collect();
    states.sort_by_key(|state| state.field("__run_num__").as_i64().unwrap_or_default());
    let failed = states.iter().filter(|state| state.has_failed()).count();
    let changed = states.iter().filter(|state| state.has_changed()).count();
    let is_wanted =
        reported_runs.everything || reported_runs.changes && changed > 0 || reported_runs.failures && failed > 0;
    if !is_wanted {
        return None;
    }
    // A failed state may have changes: then fewer are unchanged.
    let unchanged = states.len() as i64 - failed as i64 - changed as i64;
    let styled = |name: &str, count: i64| Value::Map(map! {name => count, "__style__" => name});
    let stats = list![
        row("total", states.len() as i64),
        styled("failed", failed as i64),
        styled("unchanged", unchanged),
        styled("changed", changed as i64),
        row("duration", states.iter().map(State::duration).sum::<f64>()),
    ];
    let field = |name: &str, default: Value| job_return.map().get(name).cloned().unwrap_or(default);
    let job = list![
        row("function", field("fun", "".into())),
        row("arguments", field("fun_args", "".into())),
        row("jid", field("jid", "".into())),
        row("success", field("success", true.into())),
        row("retcode", field("retcode", 0.into())),
    ];
    let states: Vec<Value> = states.iter().map(State::report).collect();
    Some(Report { value: list![row("stats", stats), row("job", job), row("states", states)], has_failed: failed > 0 })
}
