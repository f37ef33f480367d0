//! The command line of `salt-ssh`.

use std::path::PathBuf;

use brine_config::MasterConfig;
use brine_runtime::seconds;
use brine_ssh::Options;
use brine_ssh::roster::RosterOptions;
use brine_value::{Map, Value};
use clap::{ArgAction, Args, Parser};

use super::super::common::{CommonOptions, OutputArguments};
use super::super::plan_file::PLAN_FILE;
use super::super::salt::TargetOptions;
use super::super::usage;

/// Call functions and apply states on hosts by ssh, without minions and without a running master.
#[derive(Parser, Debug)]
#[command(
    after_help = "Examples:\n  salt-ssh '*' test.ping                      all hosts of the roster /etc/salt/roster\n  salt-ssh 'web*' state.apply nginx test=True what a state would change\n  salt-ssh '*' state.apply nginx --plan       one group for hosts that would change alike\n  salt-ssh --apply plan.brine                 apply exactly this plan\n  salt-ssh -i 'web*' grains.item os           accept keys of new hosts\n  salt-ssh -r web1 'uptime'                   a command of the host's shell\n  salt-ssh --askpass --key-deploy web1 test.ping  install the own key first\n  salt-ssh admin@192.0.2.7 test.ping          a host that is in no roster"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(super) struct Arguments {
    /// Run a command of the host's shell instead of a function
    #[arg(short, long, visible_alias = "raw-shell")]
    pub raw: bool,
    /// The kind of roster: flat, ansible, cache, clustershell, dir, range, scan, sshconfig, sshknownhosts
    #[arg(long, value_name = "NAME")]
    pub roster: Option<String>,
    /// The roster file (default: roster beside the master's configuration)
    #[arg(long, value_name = "FILE")]
    pub roster_file: Option<PathBuf>,
    /// The number of hosts at the same time
    #[arg(long, value_name = "N")]
    pub max_procs: Option<usize>,
    /// The ports that the rosters scan and clustershell try, separated by commas (default: ssh_scan_ports)
    #[arg(long, value_name = "PORTS")]
    pub scan_ports: Option<String>,
    /// The seconds that each port has to answer (default: ssh_scan_timeout)
    #[arg(long, value_name = "SECONDS")]
    pub scan_timeout: Option<f64>,
    /// The target is an expression of the range server (range_server)
    #[arg(short = 'R', long)]
    pub range: bool,
    /// Add the host that the target names to the roster file, if it is not there
    #[arg(long)]
    pub update_roster: bool,
    /// The seconds that connecting to a host may take, and after which a silent host is left (default: ssh_timeout)
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,
    /// Show the job id
    #[arg(short, long)]
    pub verbose: bool,
    /// Show all results together when all hosts are done
    #[arg(short = 's', long = "static")]
    pub fixed: bool,
    /// Plan state.apply, state.sls or state.highstate: run them in test mode, show hosts that would change in the same
    /// way as one group, and keep the plan in FILE (default: plan.brine)
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = PLAN_FILE)]
    pub plan: Option<PathBuf>,
    /// Apply a plan on the hosts that would still change exactly as planned
    #[arg(long, value_name = "FILE", conflicts_with = "plan")]
    pub apply: Option<PathBuf>,
    /// Remove the program from the hosts afterwards
    #[arg(short, long)]
    pub wipe: bool,
    /// Use a directory with a random name on the hosts and remove it afterwards
    #[arg(short = 'W', long)]
    pub rand_thin_dir: bool,
    /// List the hosts of the target and do nothing
    #[arg(short = 'H', long)]
    pub hosts: bool,
    /// The job id
    #[arg(long, value_name = "JID")]
    pub jid: Option<String>,
    /// Names of keyword arguments that are passed as strings, separated by commas
    #[arg(long, value_name = "NAMES")]
    pub no_parse: Option<String>,
    /// Run the script ssh_pre_flight of the roster although the program's directory is on the host
    #[arg(long)]
    pub pre_flight: bool,
    /// Accepted for compatibility with Salt: files are fetched when states need them
    #[arg(long, value_name = "FILES", hide = true)]
    pub extra_filerefs: Option<String>,
    /// Accepted for compatibility with Salt: grains and pillar are always fresh
    #[arg(long, alias = "refresh-cache", hide = true)]
    pub refresh: bool,
    /// Accepted for compatibility with Salt: the program on a host is known by its hash
    #[arg(short = 't', long, alias = "thin", hide = true)]
    pub regen_thin: bool,
    #[command(flatten)]
    pub ssh: SshOptions,
    #[command(flatten)]
    pub target: TargetOptions,
    #[command(flatten)]
    pub common: CommonOptions,
    #[command(flatten)]
    pub output: OutputArguments,
    #[arg(hide = true)]
    pub words: Vec<String>,
}

/// The options of ssh connections.
#[derive(Args, Debug)]
#[command(next_help_heading = "SSH options")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(super) struct SshOptions {
    /// The private key
    #[arg(long = "priv", value_name = "FILE")]
    pub key: Option<String>,
    /// The passphrase of the private key
    #[arg(long, value_name = "PASSPHRASE")]
    pub priv_passwd: Option<String>,
    /// Accept keys of hosts that are not known yet
    #[arg(short, long)]
    pub ignore_host_keys: bool,
    /// Neither check nor store keys of hosts
    #[arg(long)]
    pub no_host_keys: bool,
    /// The user of logins, unless the roster names one
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// The password of logins, which other users see in the list of processes: --askpass asks for it
    #[arg(long, value_name = "PASSWORD")]
    pub passwd: Option<String>,
    /// Ask for the password
    #[arg(long)]
    pub askpass: bool,
    /// Install the public key beside --priv on hosts, with the password
    #[arg(long)]
    pub key_deploy: bool,
    /// Try only the given private key
    #[arg(long)]
    pub identities_only: bool,
    /// Run functions as root by sudo, which must not ask for a password
    #[arg(long)]
    pub sudo: bool,
    /// An option of ssh without -o; may be given several times
    #[arg(long = "ssh-option", value_name = "OPTION", action = ArgAction::Append)]
    pub options: Vec<String>,
    /// Forwarded ports of the hosts, as with ssh -R, separated by commas
    #[arg(long, value_name = "FORWARDS")]
    pub remote_port_forwards: Option<String>,
    /// The seconds between two keepalive messages to a host
    #[arg(long, value_name = "SECONDS", value_parser = usage::integer)]
    pub keepalive_interval: Option<i64>,
    /// The number of unanswered keepalive messages after which a connection ends
    #[arg(long, value_name = "N", value_parser = usage::integer)]
    pub keepalive_count_max: Option<i64>,
    /// Do not send keepalive messages to hosts
    #[arg(long)]
    pub disable_keepalive: bool,
}

impl Arguments {
    /// Returns the roster's settings of command line and configuration. `default_file` is the roster beside the
    /// configuration.
    pub fn roster_options(
        &self,
        config: &MasterConfig,
        password: Option<String>,
        default_file: PathBuf,
    ) -> RosterOptions {
        let roster = self.roster.clone().unwrap_or_else(|| config.roster.clone());
        // A configuration of ssh has users and ports of its own.
        let is_ssh_config = roster == "sshconfig";
        let of_ssh = || config.ssh_config_file.clone().or_else(|| in_home("config")).filter(|_| is_ssh_config);
        let named = self.roster_file.clone().or_else(|| config.roster_file.clone());
        let file = named.or_else(of_ssh).unwrap_or(default_file);
        let home_key = || in_home("id_rsa").filter(|key| config.ssh_use_home_key && key.is_file());
        let key = || home_key().map(|key| key.display().to_string()).or_else(|| config.ssh_priv.clone());
        let user = Some(config.ssh_user.clone()).filter(|_| !is_ssh_config);
        RosterOptions {
            roster,
            file,
            defaults: config.roster_defaults.clone(),
            user: self.ssh.user.clone().or(user),
            port: config.ssh_port.filter(|_| !is_ssh_config),
            passwd: password.or_else(|| config.ssh_passwd.clone()).filter(|password| !password.is_empty()),
            key: self.ssh.key.clone().or_else(key).filter(|key| !key.is_empty()),
            priv_passwd: self.ssh.priv_passwd.clone().or_else(|| config.ssh_priv_passwd.clone()),
            sudo: self.ssh.sudo || config.ssh_sudo,
            sudo_user: config.ssh_sudo_user.clone().filter(|user| !user.is_empty()),
            identities_only: self.ssh.identities_only || config.ssh_identities_only,
            nodegroups: brine_ssh::nodegroups(config),
            opts: config.opts.clone(),
            directory: config.roster_dir.clone(),
            domain: config.roster_domain.clone(),
            known_hosts: config.ssh_known_hosts_file.clone(),
            scan: (
                scan_ports(&self.scan_ports.as_deref().map_or_else(|| config.ssh_scan_ports.clone(), Value::from)),
                seconds::within(0.001..=60.0, self.scan_timeout.unwrap_or(config.ssh_scan_timeout)),
            ),
            range_server: config.range_server.clone(),
            cached: std::collections::HashMap::new(),
        }
    }

    /// Returns the settings of `ssh` for all hosts.
    pub fn ssh_options(&self, config: &MasterConfig) -> Options {
        let forwards = self.ssh.remote_port_forwards.iter().flat_map(|all| all.split(','));
        let forwards = forwards.map(|one| {
            format!("RemoteForward={}", one.trim().replacen(':', " ", usize::from(one.matches(':').count() == 2)))
        });
        // As in Salt, a file that does not exist is not named; ssh itself would read no other.
        let known_hosts = config.known_hosts_file.as_deref().filter(|file| file.is_file() && !self.ssh.no_host_keys);
        let known_hosts = known_hosts.map(|file| format!("UserKnownHostsFile={}", file.display()));
        let unsigned = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
        let keepalive = if self.ssh.disable_keepalive || !config.ssh_keepalive {
            Some(0)
        } else {
            unsigned(self.ssh.keepalive_interval).or(config.ssh_keepalive_interval)
        };
        Options {
            ignore_host_keys: self.ssh.ignore_host_keys || config.ignore_host_keys,
            no_host_keys: self.ssh.no_host_keys,
            connect_timeout: self.timeout.unwrap_or_else(|| config.ssh_timeout.whole_seconds()),
            keepalive,
            keepalive_count: unsigned(self.ssh.keepalive_count_max).or(config.ssh_keepalive_count_max),
            ssh_options: self
                .ssh
                .options
                .iter()
                .chain(&config.ssh_options)
                .cloned()
                .chain(known_hosts)
                .chain(forwards)
                .collect(),
        }
    }

    /// Returns the number of hosts that are called at the same time.
    pub fn at_once(&self, config: &MasterConfig) -> usize {
        self.max_procs.unwrap_or(config.ssh_max_procs).max(1)
    }

    /// Returns options of the minions on the hosts.
    pub fn minion_opts(config: &MasterConfig) -> Map {
        let mut opts = config.ssh_minion_opts.clone();
        for name in ["saltenv", "pillarenv", "test", "state_output", "state_verbose", "hash_type", "mine_functions"] {
            if let (false, Some(value)) = (opts.contains_key(name), config.opts.get(name)) {
                opts.insert(name.into(), value.clone());
            }
        }
        opts
    }
}

/// Returns the path of a file in the directory of `ssh` of the caller.
fn in_home(name: &str) -> Option<PathBuf> {
    std::env::home_dir().map(|home| home.join(".ssh").join(name))
}

/// Returns the ports of `ssh_scan_ports`; invalid entries are skipped.
fn scan_ports(option: &Value) -> Vec<u16> {
    match option {
        Value::List(ports) => ports.iter().filter_map(|port| port.to_string().parse().ok()).collect(),
        other => other.to_string().split(',').filter_map(|port| port.trim().parse().ok()).collect(),
    }
}

#[cfg(test)]
mod tests;
