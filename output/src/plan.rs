//! The page of a plan: groups of minions that would change in the same way, the unusual ones first, then failures and
//! minions that did not answer.

use std::collections::BTreeSet;

use brine_value::{Map, Value};

use crate::escape::{escape_control, escape_line};
use crate::text::lines;
use crate::{Colour, Colours, nested};

/// The number of ids that a group names.
const NAMED: usize = 10;
/// The number of states of a group, and of errors, that are shown.
const SHOWN: usize = 200;

/// Formats a plan; `None` if the value is none.
pub fn render(value: &Value, colours: Colours) -> Option<String> {
    let plan = value.as_map()?;
    let list = |name: &str| plan.get(name).and_then(Value::as_list);
    if let Some(steps) = list("steps") {
        return Some(orchestration(plan, steps, colours));
    }
    let (groups, failed) = (list("groups")?, list("failed")?);
    let mut page = Page { colours, lines: Vec::new() };
    page.head(plan);
    for group in groups {
        page.group(group);
    }
    for group in failed {
        let ids = ids(group.get("minions"));
        let errors = group.get("errors").and_then(Value::as_list).unwrap_or_default();
        page.line(0, Colour::Red, &format!("{} cannot be planned: {}", count(ids.len()), names(&ids)));
        for error in errors.iter().take(SHOWN) {
            page.text(4, Colour::Red, &error.to_string());
        }
        page.plain("");
    }
    let silent = ids(plan.get("silent"));
    if !silent.is_empty() {
        page.line(0, Colour::Red, &format!("{} did not answer: {}", count(silent.len()), names(&silent)));
        page.plain("");
    }
    let unchanged = ids(plan.get("unchanged"));
    if !unchanged.is_empty() {
        let text = format!("{} would not change: {}", count(unchanged.len()), names(&unchanged));
        page.line(0, Colour::Green, &text);
        page.plain("");
    }
    let changed: usize = groups.iter().map(|group| ids(group.get("minions")).len()).sum();
    let broken: usize = failed.iter().map(|group| ids(group.get("minions")).len()).sum();
    let summary = format!(
        "Plan: {} in {}; {} unchanged, {broken} failed, {} silent",
        if changed == 1 { "1 minion would change".to_owned() } else { format!("{changed} minions would change") },
        if groups.len() == 1 { "1 way".to_owned() } else { format!("{} ways", groups.len()) },
        unchanged.len(),
        silent.len()
    );
    page.line(0, Colour::Cyan, &summary);
    Some(page.lines.join("\n"))
}

/// Formats the plan of an orchestration: its steps in order.
fn orchestration(plan: &Map, steps: &[Value], colours: Colours) -> String {
    let mut page = Page { colours, lines: Vec::new() };
    page.head(plan);
    let mut minions = BTreeSet::new();
    let mut changing = 0;
    for (number, step) in steps.iter().enumerate() {
        let field = |name: &str| step.get(name).map(ToString::to_string).unwrap_or_default();
        page.line(0, Colour::Cyan, &format!("Step {}: {}", number + 1, escape_line(&field("name"))));
        let Some(text) = step.as_map().filter(|step| step.contains_key("groups")).and(render(step, colours)) else {
            let colour = if step.get("failed") == Some(&true.into()) { Colour::Red } else { Colour::LightGray };
            page.text(4, colour, &field("comment"));
            page.plain("");
            continue;
        };
        // Without the sum at the end.
        let lines: Vec<&str> = text.lines().collect();
        let lines = lines.split_last().map_or(&[][..], |(_, lines)| lines);
        page.lines.extend(lines.iter().map(|line| if line.is_empty() { String::new() } else { format!("    {line}") }));
        let groups = step.get("groups").and_then(Value::as_list).unwrap_or_default();
        changing += usize::from(!groups.is_empty());
        minions.extend(groups.iter().flat_map(|group| ids(group.get("minions"))));
    }
    let summary = format!("Plan: {changing} of {} steps would change states of {}", steps.len(), count(minions.len()));
    page.line(0, Colour::Cyan, &summary);
    page.lines.join("\n")
}

struct Page {
    colours: Colours,
    lines: Vec<String>,
}

impl Page {
    fn plain(&mut self, text: &str) {
        self.lines.push(text.to_owned());
    }

    /// Adds a line whose parts are escaped already, or come from this program.
    fn line(&mut self, indent: usize, colour: Colour, text: &str) {
        self.lines.push(format!("{:indent$}{}", "", self.colours.paint(colour, text)));
    }

    fn text(&mut self, indent: usize, colour: Colour, text: &str) {
        for line in lines(text) {
            self.line(indent, colour, &escape_control(line));
        }
    }

    /// Says what was planned, if the value does.
    fn head(&mut self, plan: &Map) {
        let field = |name: &str| plan.get(name).filter(|value| !value.is_nil()).map(ToString::to_string);
        let Some(fun) = field("fun") else { return };
        let mut text = fun;
        for argument in plan.get("arg").and_then(Value::as_list).unwrap_or_default() {
            match argument.as_map() {
                Some(keywords) => {
                    for (name, value) in keywords.iter().filter(|(name, _)| name.as_str() != Some("__kwarg__")) {
                        text += &format!(" {name}={value}");
                    }
                }
                None => text += &format!(" {argument}"),
            }
        }
        self.plain(&escape_line(&text));
        let named = [("id", "plan"), ("tgt", "target"), ("jid", "job"), ("user", "by"), ("time", "at")];
        let parts: Vec<String> =
            named.iter().filter_map(|(name, word)| Some(format!("{word} {}", field(name)?))).collect();
        if !parts.is_empty() {
            self.plain(&escape_line(&parts.join(", ")));
        }
        if let Some(approved) = field("approved_by") {
            self.plain(&escape_line(&format!("approved by {approved}")));
        }
        if let Some(applied) = field("applied") {
            self.plain(&escape_line(&format!("applied by job {applied}")));
        }
        self.plain("");
    }

    fn group(&mut self, group: &Value) {
        let ids = ids(group.get("minions"));
        let states = group.get("states").and_then(Value::as_list).unwrap_or_default();
        let number = if states.len() == 1 { "1 state".to_owned() } else { format!("{} states", states.len()) };
        self.line(0, Colour::Cyan, &format!("{}: {number}: {}", count(ids.len()), names(&ids)));
        for state in states.iter().take(SHOWN) {
            let field = |name: &str| state.get(name).map(ToString::to_string).unwrap_or_default();
            let (id, name) = (field("id"), field("name"));
            let named = if id == name || name.is_empty() { String::new() } else { format!(" {name}") };
            self.line(4, Colour::LightYellow, &escape_line(&format!("{id} ({}){named}", field("state"))));
            self.text(8, Colour::LightYellow, &field("comment"));
            match state.get("changes") {
                Some(Value::Map(changes)) if !changes.is_empty() => self.changes(changes),
                _ => {}
            }
        }
        if states.len() > SHOWN {
            self.plain(&format!("    and {} more states: --out json shows them", states.len() - SHOWN));
        }
        self.plain("");
    }

    /// Adds changes: a diff as it is, everything else nested.
    fn changes(&mut self, changes: &Map) {
        let mut rest = changes.clone();
        if let Some(Value::Str(diff)) = rest.shift_remove("diff") {
            for line in lines(&diff) {
                let colour = match line.as_bytes().first() {
                    Some(b'+') => Colour::Green,
                    Some(b'-') => Colour::Red,
                    _ => Colour::LightGray,
                };
                self.line(8, colour, &escape_control(line));
            }
        }
        if !rest.is_empty() {
            let text = nested::render_indented(&rest.into(), 8, self.colours);
            self.lines.extend(text.split('\n').skip(1).map(str::to_owned));
        }
    }
}

fn ids(value: Option<&Value>) -> Vec<&str> {
    value.and_then(Value::as_list).unwrap_or_default().iter().filter_map(Value::as_str).collect()
}

fn count(minions: usize) -> String {
    if minions == 1 { "1 minion".to_owned() } else { format!("{minions} minions") }
}

fn names(ids: &[&str]) -> String {
    let mut text = ids.iter().take(NAMED).map(|id| escape_line(id)).collect::<Vec<_>>().join(", ");
    if ids.len() > NAMED {
        text += &format!(" and {} more", ids.len() - NAMED);
    }
    text
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn a_plan_is_one_page() {
        let state = map! {
            "state" => "file.managed", "id" => "conf", "name" => "/etc/a", "comment" => "The file /etc/a is set to be changed",
            "changes" => map! {"diff" => "--- \n+++ \n@@ -1 +1 @@\n-a\n+b\n", "mode" => "0644"},
        };
        let many: Value = (0..12).map(|n| Value::from(format!("web{n:02}"))).collect();
        let plan = map! {
            "fun" => "state.apply", "arg" => list!["web", map! {"pillar" => map! {"a" => 1}, "__kwarg__" => true}],
            "tgt" => "*", "jid" => "20261130000000000001", "user" => "root",
            "groups" => list![
                map! {"minions" => list!["odd"], "states" => list![
                    map! {"state" => "pkg.installed", "id" => "vim", "name" => "vim", "comment" => "vim would be installed", "changes" => Value::map()}
                ]},
                map! {"minions" => many, "states" => list![state]},
            ],
            "failed" => list![map! {"minions" => list!["bad"], "errors" => list!["no\x1b[2J pillar"]}],
            "silent" => list!["gone"],
            "unchanged" => list!["same"],
        };
        insta::assert_snapshot!(render(&plan.into(), Colours::OFF).unwrap(), @"
        state.apply web pillar={'a': 1}
        target *, job 20261130000000000001, by root

        1 minion: 1 state: odd
            vim (pkg.installed)
                vim would be installed

        12 minions: 1 state: web00, web01, web02, web03, web04, web05, web06, web07, web08, web09 and 2 more
            conf (file.managed) /etc/a
                The file /etc/a is set to be changed
                --- 
                +++ 
                @@ -1 +1 @@
                -a
                +b
                mode:
                    0644

        1 minion cannot be planned: bad
            no?[2J pillar

        1 minion did not answer: gone

        1 minion would not change: same

        Plan: 13 minions would change in 2 ways; 1 unchanged, 1 failed, 1 silent
        ");
        assert_eq!(render(&map! {"a" => 1}.into(), Colours::OFF), None);
    }

    #[test]
    fn the_plan_of_an_orchestration_has_its_steps_in_order() {
        let state =
            map! {"state" => "test.nop", "id" => "a", "name" => "a", "comment" => "would", "changes" => Value::map()};
        let web = map! {
            "name" => "web", "groups" => list![map! {"minions" => list!["w1", "w2"], "states" => list![state]}],
            "failed" => list![], "silent" => list![], "unchanged" => list!["w3"],
        };
        let restart = map! {"name" => "cmd.run", "comment" => "Function cmd.run would be executed", "failed" => false};
        let plan = map! {"fun" => "state.orchestrate", "arg" => list!["deploy"], "steps" => list![web, restart]};
        insta::assert_snapshot!(render(&plan.into(), Colours::OFF).unwrap(), @"
        state.orchestrate deploy

        Step 1: web
            2 minions: 1 state: w1, w2
                a (test.nop)
                    would

            1 minion would not change: w3

        Step 2: cmd.run
            Function cmd.run would be executed

        Plan: 1 of 2 steps would change states of 2 minions
        ");
    }
}
