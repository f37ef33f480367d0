//! The format of a crontab: unmanaged lines, a mark, and below it the lines that Salt and Brine manage.

use brine_value::{Map, Value, map};

/// The line above managed lines.
const MARK: &str = "# Lines below here are managed by Salt, do not edit";
/// Prefix of the identifier in the comment above a job.
const IDENTIFIER: &str = "SALT_CRON_IDENTIFIER";
/// Salt's placeholder for a missing identifier.
const NO_IDENTIFIER: &str = "NO ID SET";
/// Prefix of a disabled job.
const DISABLED: &str = "#DISABLED#";
/// Names of the fields of a time.
const FIELDS: [&str; 5] = ["minute", "hour", "daymonth", "month", "dayweek"];

/// The time of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CronTime {
    /// Minute, hour, day of the month, month, day of the week.
    Times([String; 5]),
    /// A special time such as `@daily`.
    Special(String),
}

/// A job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Time.
    pub when: CronTime,
    /// Command.
    pub command: String,
    /// Identifier, by which later runs find the job.
    pub identifier: Option<String>,
    /// The comment above the job.
    pub comment: Option<String>,
    /// Whether the job is commented out.
    pub commented: bool,
}

/// The desired job; unset fields are left unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Desired<'w> {
    /// Time.
    pub when: CronTime,
    /// Command.
    pub command: &'w str,
    /// Identifier, by which later runs find the job.
    pub identifier: Option<&'w str>,
    /// The comment above the job.
    pub comment: Option<&'w str>,
    /// Whether the job is commented out.
    pub commented: bool,
}

/// A whole crontab.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tab {
    /// The lines above the mark.
    pub before: Vec<String>,
    /// Variables.
    pub env: Vec<(String, String)>,
    /// Jobs with a time.
    pub jobs: Vec<Job>,
    /// Jobs with a special time such as `@daily`.
    pub special: Vec<Job>,
}

impl CronTime {
    /// Creates a time from the five fields, in lower case.
    pub fn times(fields: [&Value; 5]) -> Self {
        CronTime::Times(fields.map(|field| field.to_string().to_lowercase()))
    }

    fn differs(&self, desired: &CronTime) -> bool {
        match (self, desired) {
            (CronTime::Times(have), CronTime::Times(desired)) => {
                have.iter().zip(desired).any(|(have, desired)| field_differs(have, desired))
            }
            (have, desired) => have != desired,
        }
    }

    /// Returns the time to write: fields of the old job are kept where they satisfy the desired ones, and values are
    /// chosen for `random` and for ranges such as `5:10`.
    fn resolved(&self, old: Option<&CronTime>) -> Self {
        let CronTime::Times(times) = self else { return self.clone() };
        let mut fields = times.clone();
        if let Some(CronTime::Times(old)) = old {
            for (field, old) in fields.iter_mut().zip(old).filter(|(field, old)| !field_differs(old, field)) {
                field.clone_from(old);
            }
        }
        let days = match fields[3].as_str() {
            "1" | "3" | "5" | "7" | "8" | "10" | "12" => 31,
            "4" | "6" | "9" | "11" => 30,
            _ => 28,
        };
        for (field, (first, last)) in fields.iter_mut().zip([(0, 59), (0, 23), (1, days), (1, 12), (0, 6)]) {
            let range = match field.split_once(':') {
                None if field == "random" => Some((first, last)),
                Some((from, to)) => from.parse::<u32>().ok().zip(to.parse::<u32>().ok()),
                None => None,
            };
            if let Some((from, to)) = range {
                *field = rand::random_range(from.min(to)..=from.max(to)).to_string();
            }
        }
        CronTime::Times(fields)
    }
}

/// Whether a field must change: any value except `*` satisfies `random`.
fn field_differs(have: &str, desired: &str) -> bool {
    if desired == "random" { have == "*" } else { have != desired }
}

impl Job {
    /// Whether this is the job with this identifier or, if the job has none, with this command.
    pub fn matches(&self, command: &str, identifier: Option<&str>) -> bool {
        let own = self.identifier.as_deref().filter(|own| !own.is_empty() && *own != NO_IDENTIFIER);
        match own {
            None => self.command == command,
            Some(own) => identifier == Some(own),
        }
    }

    /// Whether the job differs from the desired one.
    pub fn differs(&self, desired: &Desired) -> bool {
        self.when.differs(&desired.when)
            || self.command != desired.command
            || self.commented != desired.commented
            || desired
                .comment
                .is_some_and(|comment| self.comment.as_deref().map(str::trim_end) != Some(comment.trim_end()))
            || desired.identifier.is_some_and(|identifier| self.identifier.as_deref() != Some(identifier))
    }

    /// Whether the job runs at these times; unset fields match any value.
    pub fn runs_at(&self, times: [Option<&str>; 5]) -> bool {
        let CronTime::Times(have) = &self.when else { return false };
        have.iter().zip(times).all(|(have, desired)| match desired {
            None => true,
            Some(desired) if desired.eq_ignore_ascii_case("random") => have != "*",
            Some(desired) => have == desired,
        })
    }

    /// Returns the job as `cron.list_tab` reports it.
    pub fn describe(&self) -> Map {
        let mut report = match &self.when {
            CronTime::Times(times) => {
                FIELDS.into_iter().zip(times).map(|(name, time)| (name.into(), time.into())).collect()
            }
            CronTime::Special(word) => map! {"spec" => word},
        };
        report.extend(map! {
            "identifier" => self.identifier.as_deref(),
            "cmd" => &self.command,
            "comment" => self.comment.as_deref(),
            "commented" => self.commented,
        });
        report
    }

    fn render(&self) -> String {
        let mut text = String::new();
        if self.comment.is_some() || self.identifier.is_some() {
            text.push('#');
            if let Some(comment) = self.comment.as_deref().filter(|comment| !comment.is_empty()) {
                text = format!("# {}", comment.trim_end().replace('\n', "\n# "));
            }
            if let Some(identifier) = self.identifier.as_deref().filter(|identifier| !identifier.is_empty()) {
                text = format!("{text} {IDENTIFIER}:{identifier}");
            }
            text.push('\n');
        }
        let when = match &self.when {
            CronTime::Times(times) => times.join(" "),
            CronTime::Special(word) => word.clone(),
        };
        let disabled = if self.commented { DISABLED } else { "" };
        format!("{text}{disabled}{when} {}\n", self.command)
    }
}

impl Tab {
    /// Parses a crontab.
    pub fn parse(text: &str) -> Self {
        let mut tab = Tab::default();
        let mut lines = text.lines();
        tab.before = lines.by_ref().take_while(|line| *line != MARK).map(str::to_owned).collect();
        let (mut comment, mut identifier) = (None::<String>, None);
        for line in lines.filter(|line| *line != MARK) {
            let (line, commented) = line.strip_prefix(DISABLED).map_or((line, false), |line| (line, true));
            if let Some(report) = line.strip_prefix('#') {
                let mut report = report.trim_start_matches(['#', ' ']);
                if let Some((before, after)) = report.split_once(IDENTIFIER) {
                    report = before.trim_end();
                    let own = after.strip_prefix(':').unwrap_or(after);
                    identifier = (!own.is_empty()).then(|| own.to_owned()).or(identifier);
                }
                comment = Some(comment.map_or_else(|| report.to_owned(), |before| format!("{before}\n{report}")));
            } else if let Some((name, value)) = variable(line) {
                tab.env.push((name.to_owned(), value.to_owned()));
            } else if let Some((when, command)) = job(line) {
                let list = if matches!(when, CronTime::Special(_)) { &mut tab.special } else { &mut tab.jobs };
                list.push(Job { when, command, identifier: identifier.take(), comment: comment.take(), commented });
            }
        }
        tab
    }

    /// Renders the crontab, with the mark.
    pub fn render(&self) -> String {
        let mut text: String = self.before.iter().flat_map(|line| [line, "\n"]).collect();
        text = format!("{text}{MARK}\n");
        for (name, value) in &self.env {
            text = format!("{text}{name}={}\n", if value.is_empty() { "\"\"" } else { value });
        }
        text.extend(self.jobs.iter().chain(&self.special).map(Job::render));
        text
    }

    /// Returns the crontab as `cron.list_tab` reports it.
    pub fn describe(&self) -> Value {
        let jobs = |jobs: &[Job]| jobs.iter().map(Job::describe).collect::<Value>();
        let env = self.env.iter().map(|(name, value)| map! {"name" => name, "value" => value});
        map! {
            "pre" => self.before.clone(),
            "crons" => jobs(&self.jobs),
            "special" => jobs(&self.special),
            "env" => env.collect::<Value>(),
        }
        .into()
    }

    /// Sets a job. Returns true if it was changed, false if it was added, `None` if it is present as desired.
    pub fn set(&mut self, desired: &Desired) -> Option<bool> {
        let mut old = None::<Job>;
        loop {
            let matches = |job: &&Job| job.matches(desired.command, desired.identifier);
            match self.jobs.iter().chain(&self.special).find(matches) {
                Some(job) if !job.differs(desired) => return old.map(|_| true),
                Some(_) => {}
                None => break,
            }
            let matches = |job: &Job| job.matches(desired.command, desired.identifier);
            let taken = match self.jobs.iter().position(matches) {
                Some(at) => self.jobs.remove(at),
                None => self.special.remove(self.special.iter().position(matches)?),
            };
            old.get_or_insert(taken);
        }
        let comment = desired.comment.map(str::to_owned);
        let job = Job {
            when: desired.when.resolved(old.as_ref().map(|old| &old.when)),
            command: desired.command.to_owned(),
            identifier: desired.identifier.map(str::to_owned),
            comment: comment.or_else(|| old.as_ref()?.comment.clone()),
            commented: desired.commented,
        };
        let list = if matches!(job.when, CronTime::Special(_)) { &mut self.special } else { &mut self.jobs };
        list.push(job);
        Some(old.is_some())
    }

    /// Sets a variable, with the same result as `set`. A changed variable moves to the end.
    pub fn set_variable(&mut self, name: &str, value: &str) -> Option<bool> {
        if self.has_variable(name, value) == Some(true) {
            return None;
        }
        let before = self.remove_variable(name);
        self.env.push((name.to_owned(), value.to_owned()));
        Some(before)
    }

    /// Whether a variable has this value; `None` if there is no such variable.
    pub fn has_variable(&self, name: &str, value: &str) -> Option<bool> {
        let (_, have) = self.env.iter().find(|(have, _)| have == name)?;
        Some(have == value || (value.is_empty() && have == "\"\""))
    }

    /// Removes a variable and returns whether it existed.
    pub fn remove_variable(&mut self, name: &str) -> bool {
        let at = self.env.iter().rposition(|(have, _)| have == name);
        at.map(|at| self.env.remove(at)).is_some()
    }
}

/// Parses `NAME=value`.
fn variable(line: &str) -> Option<(&str, &str)> {
    line.split_once('=').filter(|(name, _)| !name.is_empty() && !name.contains(' ') && !name.starts_with('@'))
}

fn job(line: &str) -> Option<(CronTime, String)> {
    if line.starts_with('@') {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (word, command) = words.split_first().filter(|(_, command)| !command.is_empty())?;
        return Some((CronTime::Special((*word).to_owned()), command.join(" ")));
    }
    let words: Vec<&str> = line.splitn(6, ' ').collect();
    let [minute, hour, day, month, weekday, command] = words[..] else { return None };
    Some((CronTime::Times([minute, hour, day, month, weekday].map(str::to_owned)), command.to_owned()))
}

#[cfg(test)]
mod tests;
