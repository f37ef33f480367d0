//! The command line of `salt`.

use std::cmp::Ordering;
use std::path::PathBuf;

use brine_target::TargetKind;
use brine_value::Value;
use clap::{Args, Parser};

use super::super::common::{CommonOptions, OutputArguments};
use super::super::credentials::Credentials;
use super::super::exit_status::FailureStatus;
use super::super::plan_file::PLAN_FILE;
use super::super::usage::{float, integer};
use super::wire_args;

/// Publish a job to minions and show their returns.
#[derive(Parser, Debug)]
#[command(
    after_help = "Examples:\n  salt '*' test.ping                        which minions answer\n  salt -G os:Debian pkg.version nginx       target by grain\n  salt -C 'web* and not G@os:Debian' test.ping\n  salt -L web1,db1 cmd.run 'uptime' -t 10\n  salt '*' state.apply -b 10%               on a tenth of the minions at a time\n  salt '*' state.apply test=True --out=json\n  salt '*' state.apply nginx --plan         what would change, one group for equal changes\n  salt --apply plan.brine                   apply exactly this plan"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(super) struct Arguments {
    /// Seconds to wait for returns before asking silent minions whether the job still runs
    #[arg(short, long, value_name = "SECONDS", value_parser = integer)]
    pub timeout: Option<i64>,
    /// Collect all returns and show them together
    #[arg(short = 's', long = "static")]
    pub fixed: bool,
    /// Print the job id and do not wait for returns
    #[arg(long = "async")]
    pub asynchronous: bool,
    /// Print the job id first, and name failed minions in the summary
    #[arg(short, long)]
    pub verbose: bool,
    /// Do not show minions that did not return; they count as failed all the same
    #[arg(long)]
    pub hide_timeout: bool,
    /// Print the job id first
    #[arg(long)]
    pub show_jid: bool,
    /// Print the number of minions that returned, failed and did not return
    #[arg(long)]
    pub summary: bool,
    /// Show a progress bar and a summary instead of the returns
    #[arg(short, long)]
    pub progress: bool,
    /// Run on N random minions of the target that have the function
    #[arg(long, value_name = "N", value_parser = integer, default_value = "0", hide_default_value = true)]
    pub subset: i64,
    /// Run on N minions, or N percent of them, at a time
    #[arg(short, long, visible_alias = "batch-size", value_name = "N or N%")]
    pub batch: Option<String>,
    /// Seconds to wait after a minion of a batch has returned
    #[arg(long, value_name = "SECONDS", value_parser = float)]
    pub batch_wait: Option<f64>,
    /// Run in batches if the target has N or more minions
    #[arg(long, value_name = "N", value_parser = integer, default_value = "0", hide_default_value = true)]
    pub batch_safe_limit: i64,
    /// The batch size for --batch-safe-limit (default: 8)
    #[arg(long, value_name = "N or N%")]
    pub batch_safe_size: Option<String>,
    /// Stop a batch run at the first failure
    #[arg(long)]
    pub failhard: bool,
    /// Returners that minions use in addition, separated by commas
    #[arg(long = "return", value_name = "RETURNERS")]
    pub r#return: Option<String>,
    /// The prefix of the options that the returners use
    #[arg(long = "return_config", alias = "return-config", value_name = "PREFIX")]
    pub return_config: Option<String>,
    /// Options of the returners
    #[arg(long = "return_kwargs", alias = "return-kwargs", value_name = "MAPPING")]
    pub return_kwargs: Option<String>,
    /// Data that is stored with the job
    #[arg(long, value_name = "MAPPING")]
    pub metadata: Option<String>,
    /// Make minions publish an event when they start the job
    #[arg(long)]
    pub start_event: bool,
    /// The executors of the job's function, instead of those of the minion's configuration
    #[arg(long, value_name = "LIST")]
    pub module_executors: Option<String>,
    /// Options of these executors
    #[arg(long, value_name = "MAPPING")]
    pub executor_opts: Option<String>,
    /// Plan state.apply, state.sls or state.highstate: run them in test mode, show minions that would change in the
    /// same way as one group, and keep the plan in FILE (default: plan.brine)
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = PLAN_FILE)]
    pub plan: Option<PathBuf>,
    /// Apply a plan on the minions that would still change exactly as planned
    #[arg(long, value_name = "FILE", conflicts_with = "plan")]
    pub apply: Option<PathBuf>,
    /// Show only states that have changed or failed
    #[arg(long)]
    pub output_diff: bool,
    /// Show the configuration of the master
    #[arg(long)]
    pub config_dump: bool,
    /// Show the minions of the target and do not publish a job
    #[arg(long)]
    pub preview_target: bool,
    /// Show the documentation of functions
    #[arg(short, long = "doc", alias = "documentation")]
    pub doc: bool,
    /// The separator between the arguments of several functions
    #[arg(long, value_name = "WORD", default_value = ",")]
    pub args_separator: String,
    /// Names of keyword arguments that are passed as strings, separated by commas
    #[arg(long, value_name = "NAMES")]
    pub no_parse: Option<String>,
    #[command(flatten)]
    pub common: CommonOptions,
    #[command(flatten)]
    pub target: TargetOptions,
    #[command(flatten)]
    pub credentials: Credentials,
    #[command(flatten)]
    pub output: OutputArguments,
    #[arg(hide = true)]
    pub words: Vec<String>,
    /// Whether the master lets a plan be applied only if another user approved it.
    #[arg(skip)]
    pub plan_approval: bool,
    /// The exit statuses of failures, by the configuration.
    #[arg(skip)]
    pub statuses: FailureStatus,
}

/// The target types that every tool supports.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub struct SimpleTargets {
    /// The target is a regular expression of ids
    #[arg(short = 'E', long)]
    pcre: bool,
    /// The target is a list of ids
    #[arg(short = 'L', long)]
    list: bool,
    /// The target is a grain: NAME:GLOB
    #[arg(short = 'G', long)]
    grain: bool,
    /// The target is a grain: NAME:REGEX
    #[arg(short = 'P', long)]
    grain_pcre: bool,
    /// The target is a node group of the configuration
    #[arg(short = 'N', long)]
    nodegroup: bool,
}

impl SimpleTargets {
    /// Returns the types, each with whether it is on the command line.
    pub fn kinds(&self) -> [(bool, TargetKind); 5] {
        [
            (self.pcre, TargetKind::Pcre),
            (self.list, TargetKind::List),
            (self.grain, TargetKind::Grain),
            (self.grain_pcre, TargetKind::GrainPcre),
            (self.nodegroup, TargetKind::Nodegroup),
        ]
    }
}

/// The type of the target.
#[derive(Args, Debug)]
#[command(next_help_heading = "Target options")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub struct TargetOptions {
    #[command(flatten)]
    simple: SimpleTargets,
    /// The target is a pillar value: PATH:GLOB
    #[arg(short = 'I', long)]
    pillar: bool,
    /// The target is a pillar value: PATH:REGEX
    #[arg(short = 'J', long)]
    pillar_pcre: bool,
    /// The target is an address or a network
    #[arg(short = 'S', long)]
    ipcidr: bool,
    /// The target combines several types with and, or, not and parentheses
    #[arg(short = 'C', long)]
    compound: bool,
    /// The separator of the keys in a grain or pillar path, instead of a colon
    #[arg(long, value_name = "CHARACTER")]
    pub delimiter: Option<String>,
}

impl TargetOptions {
    /// Returns the target types on the command line: at most one is valid.
    fn kinds(&self) -> Vec<TargetKind> {
        let kinds = [
            (self.compound, TargetKind::Compound),
            (self.pillar, TargetKind::Pillar),
            (self.pillar_pcre, TargetKind::PillarPcre),
            (self.ipcidr, TargetKind::IpCidr),
        ];
        self.simple.kinds().into_iter().chain(kinds).filter(|(asked, _)| *asked).map(|(_, kind)| kind).collect()
    }

    /// Returns an error if the command line has several target types.
    pub fn check(&self) -> Result<(), String> {
        self.check_with(None)
    }

    /// Returns an error as [`check`](Self::check), for a tool with a further target type.
    pub fn check_with(&self, further: Option<TargetKind>) -> Result<(), String> {
        let kinds: Vec<_> = self.kinds().into_iter().chain(further).collect();
        if kinds.len() < 2 {
            return Ok(());
        }
        let names: Vec<String> = kinds.iter().map(|kind| format!("--{}", kind.name().replace('_', "-"))).collect();
        Err(format!("The options {} are mutually exclusive. Please only choose one of them", names.join("/")))
    }

    /// Returns the target and the name of its type.
    pub fn read(&self, word: &str) -> (Value, String) {
        let kind = self.kinds().first().copied().unwrap_or(TargetKind::Glob);
        let target = match kind {
            TargetKind::List if word.contains(',') => {
                word.replace(' ', "").split(',').filter(|id| !id.is_empty()).collect()
            }
            TargetKind::List => word.split_whitespace().collect(),
            _ => Value::from(word),
        };
        (target, kind.name().to_owned())
    }
}

impl Arguments {
    /// Returns an error for options that choose or limit minions and would have no effect beside the others.
    pub fn check_choice(&self) -> Result<(), String> {
        let in_batches = self.batch.is_some() || self.batch_safe_limit > 1;
        let alone =
            |option| Err(format!("{option} has an effect with --batch or --batch-safe-limit alone: add one of them"));
        match self {
            _ if self.subset < 0 => Err(format!("option --subset: expected a number of minions, got {}", self.subset)),
            // 0 turns the limit off.
            _ if self.batch_safe_limit < 0 || self.batch_safe_limit == 1 => {
                let got = self.batch_safe_limit;
                Err(format!("option --batch-safe-limit: expected 2 or more minions, got {got}"))
            }
            _ if self.preview_target && self.subset > 0 => {
                Err("--preview-target shows all minions of the target, and \
                --subset chooses among those that answer when the job is published: leave out one of them"
                    .to_owned())
            }
            Arguments { batch: Some(_), batch_safe_size: Some(_), .. } => {
                Err("--batch and --batch-safe-size are two sizes of the batch: leave out one of them".to_owned())
            }
            Arguments { batch_safe_size: Some(_), .. } if self.batch_safe_limit < 2 => {
                Err("--batch-safe-size has an effect with --batch-safe-limit alone: add it".to_owned())
            }
            _ if self.plan.is_some() && self.asynchronous => {
                Err("--plan waits for the dry runs: leave out --async".to_owned())
            }
            Arguments { apply: Some(_), .. } if !self.words.is_empty() => {
                Err("--apply takes target and function from the plan: leave them out".to_owned())
            }
            _ if self.failhard && !in_batches => alone("--failhard"),
            _ if self.batch_wait.is_some() && !in_batches => alone("--batch-wait"),
            _ => Ok(()),
        }
    }

    /// Returns the function, or the list of functions, and the arguments in their wire format. A command line without
    /// function, which `--preview-target` allows, has an empty one.
    pub fn functions(&self) -> Result<(Value, Vec<Value>), String> {
        let no_parse: Vec<String> =
            self.no_parse.iter().flat_map(|names| names.split(',')).map(str::to_owned).collect();
        let [_, fun, words @ ..] = &self.words[..] else { return Ok((Value::from(""), Vec::new())) };
        if !fun.contains(',') {
            return Ok((fun.into(), wire_args(words, &no_parse)));
        }
        let functions: Vec<&str> = fun.split(',').map(str::trim).collect();
        // If too few arguments are exactly the separator, it is also searched within arguments.
        let alone = words.iter().filter(|word| **word == self.args_separator).count() + 1 == functions.len();
        let mut lists: Vec<Vec<String>> = vec![Vec::new()];
        for word in words {
            let whole = (alone && *word != self.args_separator) || word.is_empty();
            let parts = if whole { vec![word.as_str()] } else { word.split(&self.args_separator).collect() };
            for (at, part) in parts.into_iter().enumerate() {
                if at > 0 {
                    lists.push(Vec::new());
                }
                if let Some(list) = lists.last_mut().filter(|_| whole || !part.is_empty()) {
                    list.push(part.to_owned());
                }
            }
        }
        // Salt's messages.
        match lists.len().cmp(&functions.len()) {
            Ordering::Less => return Err("Cannot execute compound command without defining all arguments.".into()),
            Ordering::Greater => {
                return Err("Cannot execute compound command with more arguments than commands.".into());
            }
            Ordering::Equal => {}
        }
        let lists = lists.iter().map(|list| Value::List(wire_args(list, &no_parse))).collect();
        Ok((functions.into_iter().collect(), lists))
    }
}

#[cfg(test)]
mod tests;
