//! The summary below the states of a minion: counts and run time.

use brine_value::python::repr;
use brine_value::{Map, Value};

use super::state::State;
use crate::Colour;
use crate::OutputOptions;
use crate::escape::escape_control;

/// The length of the longest label, including the colon and the space.
const LABEL_WIDTH: usize = "Succeeded: ".len();

/// The counts of a run.
#[derive(Debug, Default)]
pub struct Counts {
    /// States with result True.
    succeeded: usize,
    /// States with result None: they would make changes.
    unchanged: usize,
    failed: usize,
    /// States with an invalid result; they count in the total only.
    other: usize,
    /// States with changes.
    pub changed: usize,
    /// Blocks with warnings.
    pub warnings: usize,
    /// The sum of the durations of sequential states, in milliseconds.
    serial: f64,
    /// The duration of the longest parallel state, in milliseconds.
    parallel: f64,
}

impl Counts {
    /// Adds a state.
    pub fn add(&mut self, state: &State, changed: bool) {
        let count = match state.result {
            Value::Bool(true) | Value::Int(1) => &mut self.succeeded,
            Value::Bool(false) | Value::Int(0) => &mut self.failed,
            Value::Nil => &mut self.unchanged,
            _ => &mut self.other,
        };
        *count += state.count;
        if changed {
            let compressed = state.changes.get("compressed changes").and_then(Value::as_map);
            self.changed += compressed.filter(|_| state.count > 1).map_or(1, Map::len);
        }
        if state.data.get("__parallel__").is_some_and(Value::is_truthy) {
            self.parallel = self.parallel.max(state.milliseconds());
        } else {
            self.serial += state.milliseconds();
        }
    }

    fn total(&self) -> usize {
        self.succeeded + self.unchanged + self.failed + self.other
    }

    /// Returns the width of the summary: the longest label and the digits of the largest count, if it is not 0.
    fn width(&self) -> usize {
        let largest = [self.succeeded, self.unchanged, self.failed, self.other, self.warnings].into_iter().max();
        LABEL_WIDTH + largest.filter(|count| *count > 0).map_or(0, |count| count.to_string().len())
    }

    /// Appends the lines of the summary.
    pub fn write(&self, id: &str, options: &OutputOptions, body: &mut Vec<String>) {
        let colours = options.colours;
        let width = self.width();
        let dashes = "-".repeat(width);
        let line = |label: &str, count: &str| format!("{label}: {count:>0$}", width - label.len() - 2);
        let alarm = if self.failed > 0 { Colour::Red } else { Colour::Cyan };

        body.push(colours.paint(Colour::Cyan, &format!("\nSummary for {}\n{dashes}", escape_control(id))));
        let succeeded = line("Succeeded", &(self.succeeded + self.unchanged).to_string());
        body.push(colours.paint(Colour::Green, &succeeded) + &self.details(options));
        body.push(colours.paint(alarm, &line("Failed", &self.failed.to_string())));
        if options.state_output_pct && self.total() > 0 {
            let percent = |part: usize| {
                let percent = (part as f64 * 10_000.0 / self.total() as f64).round() / 100.0;
                repr(&Value::Float(percent))
            };
            body.push(colours.paint(Colour::Green, &line("Success %", &percent(self.total() - self.failed))));
            body.push(colours.paint(alarm, &line("Failure %", &percent(self.failed))));
        }
        if self.warnings > 0 {
            body.push(colours.paint(Colour::LightRed, &line("Warnings", &self.warnings.to_string())));
        }
        let total = format!("{dashes}\nTotal states run: {:>1$}", self.total(), width - 7);
        body.push(colours.paint(Colour::Cyan, &total));
        if options.state_output_profile {
            body.push(colours.paint(Colour::Cyan, &self.run_time(width)));
        }
    }

    fn details(&self, options: &OutputOptions) -> String {
        let mut details = Vec::new();
        for (label, count, colour) in
            [("unchanged", self.unchanged, Colour::LightYellow), ("changed", self.changed, Colour::Green)]
        {
            if count > 0 {
                details.push(options.colours.paint(colour, &format!("{label}={count}")));
            }
        }
        if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) }
    }

    fn run_time(&self, width: usize) -> String {
        let milliseconds = self.serial + self.parallel;
        let (time, unit) = if milliseconds > 999.0 { (milliseconds / 1000.0, "s") } else { (milliseconds, "ms") };
        format!("Total run time: {:>1$} {unit}", format!("{time:.3}"), width - 5)
    }
}
