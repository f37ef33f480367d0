//! `iptables`: firewall rules, with the programs `iptables` and `ip6tables`.

mod changes;
mod rule;
mod saved;
pub(crate) mod state;

use std::path::Path;

use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::process::{Output, Program};
use brine_host::programs::which;
use brine_system::files;
use brine_system::user_files;
use brine_text::python_regex::Regex;
use brine_value::{FromValue, Map, Value};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `iptables`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "iptables",
    [
        version,
        build_rule,
        get_saved_rules,
        get_rules,
        get_saved_policy,
        get_policy,
        set_policy,
        save,
        check,
        check_chain,
        new_chain,
        delete_chain,
        append,
        changes::insert,
        changes::delete,
        changes::flush
    ]
);

/// Return the version of iptables.
///
/// CLI Example:
///
///     salt '*' iptables.version family=ipv6
#[function]
pub fn version(
    context: &Context,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    let report = Tables::new(context, &family)?.run("--version")?.stdout;
    Ok(report.split_whitespace().nth(1).map_or(Value::Nil, Value::from))
}

/// Build a rule from options with iptables' long names; `connstate` is its `state`. With `full`, return the whole
/// command, which requires `table`, `chain` and `command`.
///
/// CLI Example:
///
///     salt '*' iptables.build_rule match=state connstate=RELATED,ESTABLISHED jump=ACCEPT
#[function]
pub fn build_rule(
    context: &Context,
    /// Table, such as `filter`.
    #[default("filter".into())]
    table: String,
    /// Chain, such as `INPUT`.
    chain: Option<String>,
    /// Letter of the command, such as `A`, for the full rule.
    command: Option<String>,
    /// Position of the rule; 1 is the first.
    #[default("".into())]
    position: Value,
    /// Whether the whole command is returned.
    #[default(false)]
    full: bool,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
    /// Options of the rule, such as `match`, `connstate`, `dport`, `proto`, `source` and `jump`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let rule = match rule::build(kwargs) {
        Ok(rule) => rule,
        Err(wrong) => return Ok(wrong.into()),
    };
    if !full {
        return Ok(rule.into());
    }
    let needed = |what: &str| Ok(format!("Error: {what} needs to be specified").into());
    let Some(chain) = chain.filter(|chain| !chain.is_empty()) else { return needed("Chain") };
    let Some(command) = command.filter(|command| !command.is_empty()) else { return needed("Command") };
    let flag = if "ACDIRLSFZNXPE".contains(&command) { "-" } else { "--" };
    let tables = Tables::new(context, &family)?;
    let (program, wait) = (&tables.program, tables.wait()?);
    Ok(format!("{program} {wait} -t {table} {flag}{command} {chain} {position} {rule}").into())
}

/// Return the rules of a file by table and chain; by default of the file that is loaded at boot.
///
/// CLI Example:
///
///     salt '*' iptables.get_saved_rules
#[function]
pub fn get_saved_rules(
    context: &Context,
    /// Path of the file of saved rules; that of the system by default.
    conf_file: Option<String>,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    Ok(saved(context, conf_file, &family)?.into())
}

/// Return the current rules by table and chain.
///
/// CLI Example:
///
///     salt '*' iptables.get_rules family=ipv6
#[function]
pub fn get_rules(
    context: &Context,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    Ok(Tables::new(context, &family)?.rules()?.into())
}

/// Return the policy of a chain in a file.
///
/// CLI Example:
///
///     salt '*' iptables.get_saved_policy filter INPUT
#[function]
pub fn get_saved_policy(
    context: &Context,
    /// Table, such as `filter`.
    #[default("filter".into())]
    table: String,
    /// Chain, such as `INPUT`.
    chain: String,
    /// Path of the file of saved rules; that of the system by default.
    conf_file: Option<String>,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    Ok(policy(&saved(context, conf_file, &family)?, &table, &chain))
}

/// Return the current policy of a chain.
///
/// CLI Example:
///
///     salt '*' iptables.get_policy filter INPUT
#[function]
pub fn get_policy(
    context: &Context,
    /// Table, such as `filter`.
    #[default("filter".into())]
    table: String,
    /// Chain, such as `INPUT`.
    chain: String,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    Ok(policy(&Tables::new(context, &family)?.rules()?, &table, &chain))
}

/// Set the policy of a chain, and return the error output.
///
/// CLI Example:
///
///     salt '*' iptables.set_policy filter INPUT ACCEPT
#[function]
pub fn set_policy(
    context: &Context,
    /// Table, such as `filter`.
    #[default("filter".into())]
    table: String,
    /// Chain, such as `INPUT`.
    chain: String,
    /// `ACCEPT` or `DROP`.
    policy: String,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    Ok(Tables::new(context, &family)?.change(&table, &format!("-P {chain} {}", rule::name(&policy)?))?.into())
}

/// Save the current rules to a file, by default the one that is loaded at boot. Lines that match a regular
/// expression of the option `iptables.save_filters` are omitted.
///
/// CLI Example:
///
///     salt '*' iptables.save /etc/sysconfig/iptables
#[function]
pub fn save(
    context: &Context,
    /// Path of the file; that of the system by default.
    filename: Option<String>,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    let file = file_of(context, filename, &family)?;
    let text = Tables::new(context, &family)?.saved()?;
    if let Some(directory) = Path::new(&file).parent() {
        user_files::create_dir_all(directory)
            .map_err(|error| CallError::Execution(format!("{}: {error}", directory.display())))?;
    }
    let report =
        context.call("config.option", Args::positional(["iptables.save_filters".into(), Value::List(Vec::new())]))?;
    let filters: Vec<Regex> = Vec::<String>::from_value(&report)
        .unwrap_or_default()
        .iter()
        .filter_map(|filter| {
            Regex::new(filter).map_err(|error| tracing::warn!(filter, %error, "invalid filter is ignored")).ok()
        })
        .collect();
    let is_kept = |line: &&str| !filters.iter().any(|filter| filter.is_match(line).unwrap_or(false));
    let text: String = text.split_inclusive('\n').filter(is_kept).collect();
    context.call("file.write", Args::positional([file.into(), text.into()]))
}

/// The arguments that name a rule of a chain.
#[derive(brine_function::Args)]
pub struct RuleArgs {
    /// Table of the chain.
    #[default("filter".into())]
    table: String,
    /// Name of the chain.
    chain: String,
    /// Rule in iptables' syntax.
    rule: String,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
}

/// Return whether a chain has a rule.
///
/// CLI Example:
///
///     salt '*' iptables.check filter INPUT rule='-m state --state RELATED,ESTABLISHED -j ACCEPT'
#[function]
pub fn check(context: &Context, #[args] rule: RuleArgs) -> CallResult {
    let RuleArgs { table, chain, rule, family } = rule;
    Ok(Tables::new(context, &family)?.has(&table, &chain, &rule)?.into())
}

/// Return whether a table has a chain.
///
/// CLI Example:
///
///     salt '*' iptables.check_chain filter INPUT
#[function]
pub fn check_chain(
    context: &Context,
    /// Table, such as `filter`.
    #[default("filter".into())]
    table: String,
    /// Chain, such as `INPUT`.
    chain: String,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    let rules = Tables::new(context, &family)?.rules()?;
    Ok(rules.get(table.as_str()).is_some_and(|chains| chains.get(chain.as_str()).is_some()).into())
}

/// Create a chain, and return true or the error output.
///
/// CLI Example:
///
///     salt '*' iptables.new_chain filter CUSTOM_CHAIN
#[function]
pub fn new_chain(
    context: &Context,
    /// Table, such as `filter`.
    #[default("filter".into())]
    table: String,
    /// Chain, such as `INPUT`.
    chain: String,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    Tables::new(context, &family)?.change(&table, &format!("-N {chain}")).map(true_or)
}

/// Delete a chain, and return true or the error output.
///
/// CLI Example:
///
///     salt '*' iptables.delete_chain filter CUSTOM_CHAIN
#[function]
pub fn delete_chain(
    context: &Context,
    /// Table, such as `filter`.
    #[default("filter".into())]
    table: String,
    /// Chain, such as `INPUT`.
    chain: String,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    Tables::new(context, &family)?.change(&table, &format!("-X {}", rule::name(&chain)?)).map(true_or)
}

/// Append a rule to a chain unless it exists, and return whether it was added.
///
/// CLI Example:
///
///     salt '*' iptables.append filter INPUT rule='-m state --state RELATED,ESTABLISHED -j ACCEPT'
#[function]
pub fn append(context: &Context, #[args] rule: RuleArgs) -> CallResult {
    let RuleArgs { table, chain, rule, family } = rule;
    let tables = Tables::new(context, &family)?;
    let is_there = tables.has(&table, &chain, &rule)?;
    Ok((!is_there && tables.change(&table, &format!("-A {chain} {rule}"))?.is_empty()).into())
}

/// The tables of IPv4 or IPv6.
struct Tables<'c> {
    context: &'c Context,
    program: String,
}

impl<'c> Tables<'c> {
    fn new(context: &'c Context, family: &str) -> Result<Self, CallError> {
        let name = if is_ipv6(family) { "ip6tables" } else { "iptables" };
        let program =
            which(name).ok_or_else(|| CallError::Execution(format!("program {name} not found: install iptables")))?;
        Ok(Tables { context, program: program.to_string_lossy().into_owned() })
    }

    fn call(&self, command: String) -> Result<Output, CallError> {
        let program = Program { command, ..Program::default() };
        let output = self.context.run_program(&program).map_err(CallError::execution)?;
        self.context.set_retcode(output.retcode);
        Ok(output)
    }

    fn run(&self, words: &str) -> Result<Output, CallError> {
        self.call(format!("{} {words}", self.program))
    }

    /// Returns the option that waits for the lock of the tables, if the program has it.
    fn wait(&self) -> Result<&'static str, CallError> {
        Ok(if self.run("--help")?.stdout.contains("--wait") { "--wait" } else { "" })
    }

    /// Changes a table. Returns the error output if it fails.
    fn change(&self, table: &str, words: &str) -> Result<String, CallError> {
        let output = self.run(&format!("{} -t {table} {words}", self.wait()?))?;
        Ok(match output.retcode {
            0 => String::new(),
            status if output.stderr.is_empty() => format!("{} ended with exit status {status}", self.program),
            _ => output.stderr,
        })
    }

    fn has(&self, table: &str, chain: &str, rule: &str) -> Result<bool, CallError> {
        Ok(self.run(&format!("-t {table} -C {chain} {rule}"))?.retcode == 0)
    }

    /// Returns the current rules as text.
    fn saved(&self) -> Result<String, CallError> {
        Ok(self.call(format!("{}-save", self.program))?.stdout)
    }

    fn rules(&self) -> Result<Map, CallError> {
        Ok(saved::parse(&self.saved()?))
    }
}

fn is_ipv6(family: &str) -> bool {
    family == "ipv6"
}

fn true_or(complaint: String) -> Value {
    if complaint.is_empty() { true.into() } else { complaint.into() }
}

fn policy(rules: &Map, table: &str, chain: &str) -> Value {
    let policy = rules.get(table).and_then(|chains| chains.get(chain)?.get("policy"));
    policy.cloned().unwrap_or(Value::Nil)
}

fn saved(context: &Context, file: Option<String>, family: &str) -> Result<Map, CallError> {
    let text = files::read_to_string(file_of(context, file, family)?).map_err(CallError::execution)?;
    Ok(saved::parse(&text))
}

/// Returns the given file, or the one that this system loads at boot.
fn file_of(context: &Context, file: Option<String>, family: &str) -> Result<String, CallError> {
    if let Some(file) = file.filter(|file| !file.is_empty()) {
        return Ok(file);
    }
    let v6 = is_ipv6(family);
    let grains = context.grains();
    let os = grains.get("os").and_then(Value::as_str).unwrap_or_default();
    let (one, other) = match (context.os_family().as_str(), os) {
        ("RedHat", _) => ("/etc/sysconfig/iptables", "/etc/sysconfig/ip6tables"),
        ("Arch" | "Void", _) => ("/etc/iptables/iptables.rules", "/etc/iptables/ip6tables.rules"),
        ("Debian", _) => ("/etc/iptables/rules.v4", "/etc/iptables/rules.v6"),
        (_, "Gentoo") => ("/var/lib/iptables/rules-save", "/var/lib/ip6tables/rules-save"),
        ("Suse", _) => ("/etc/sysconfig/scripts/SuSEfirewall2-custom", "/etc/sysconfig/scripts/SuSEfirewall2-custom"),
        (_, "Alpine") => ("/etc/iptables/rules-save", "/etc/iptables/rules6-save"),
        (family, _) => {
            let message = format!("the rules file of {os} ({family}) is unknown: pass its path");
            return Err(CallError::Execution(message));
        }
    };
    Ok(if v6 { other } else { one }.to_owned())
}
