//! Calls of hosts for the master: the runner function `ssh.cmd`, and with it the client `ssh` of the REST API.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use brine_config::{MasterConfig, opts};
use brine_event::{STAMP, stamp};
use brine_ids::Jid;
use brine_master_custom::SshCall;
use brine_ssh::roster;
use brine_ssh::{Call, MasterData};
use brine_value::{Map, Value, map, msgpack};
use clap::CommandFactory;
use tokio::sync::Semaphore;

use super::super::host::MasterHost;
use super::super::runtime;
use super::super::usage;
use super::arguments::Arguments;
use super::{EXIT_TIMEOUT, NAME, Run, USAGE, cached, caller, mask, shown};

/// The maximum size of all results together, in bytes: hosts send them, and the master holds them in memory.
const MAX_RESULT_BYTES: usize = 256 << 20;

/// The number of concurrent calls, and the maximum duration of one: a hanging host must not block the calls of others.
static CALL_SLOTS: Semaphore = Semaphore::const_new(8);
const CALL_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// Calls hosts with the settings of the configuration, and returns their returns by id. Blocks.
///
/// # Errors
/// The roster or the target is invalid, a file cannot be read, or too many calls run already.
pub(in super::super) fn call(config: &Arc<MasterConfig>, host: Arc<MasterHost>, call: &SshCall) -> anyhow::Result<Map> {
    let Ok(_permit) = CALL_SLOTS.try_acquire() else {
        anyhow::bail!("too many calls by ssh run at the same time: wait until one of them has ended (jobs.active)");
    };
    let arguments: Arguments = usage::parse(NAME, USAGE, Arguments::command(), Vec::new())
        .map_err(|_| anyhow::anyhow!("parsing the default options of salt-ssh failed"))?;
    let default_roster = opts::modules::conf_file(&config.opts).with_file_name("roster");
    let runtime = runtime::multi_thread(Some(2))?;
    let mut options = arguments.roster_options(config, None, default_roster);
    if options.roster == "cache" {
        options.cached = runtime::block_on(&runtime, cached(config))?;
    }
    let master_data = Arc::new(MasterData::open(Arc::clone(config), host)?);
    let hosts = roster::hosts(&options, &call.tgt, call.tgt_type.parse()?, &master_data.functions(None))?;
    let jid = Jid::new();
    let called = if call.is_raw {
        let words = call.arg.iter().map(ToString::to_string);
        Call::Raw([call.fun.clone()].into_iter().chain(words).collect::<Vec<_>>().join(" "))
    } else {
        Call::Function {
            fun: call.fun.clone(),
            args: call.arg.clone(),
            jid: jid.to_string(),
            opts: Arguments::minion_opts(config),
        }
    };
    let within = runtime.enter();
    let mut caller = caller(&arguments, config, master_data, &options)?;
    if let Some(timeout) = call.timeout {
        caller.options.connect_timeout = timeout;
    }
    let (user, at_once, mask) = (call.user.clone(), arguments.at_once(config), mask(config)?);
    let run = Run { config, jid, call: called, caller: Arc::new(caller), user, at_once, mask, planning: None };
    let mut returns = Map::new();
    let mut size = 0;
    let called = run.each(hosts, None, |id, reply| {
        let (fun, args) = run.named();
        let mut value = shown(reply.value);
        size += msgpack::pack(&value).len();
        if size > MAX_RESULT_BYTES {
            value = Value::from(format!(
                "the result is left out: those of all hosts exceed {} MiB",
                MAX_RESULT_BYTES >> 20
            ));
        }
        let returned = map! {
            "fun" => fun,
            "fun_args" => args,
            "id" => id,
            "jid" => &run.jid,
            "retcode" => reply.retcode,
            "return" => value,
            STAMP => stamp(),
        };
        returns.insert(id.as_str().into(), returned.into());
        Ok(())
    });
    // The call of each host has a limit (`ssh_call_timeout`); one that is dropped kills its `ssh`.
    let called = runtime::block_on(&runtime, async { tokio::time::timeout(CALL_TIMEOUT, called).await });
    drop(within);
    runtime.shutdown_timeout(EXIT_TIMEOUT);
    called.with_context(|| format!("hosts have not answered within {} hours", CALL_TIMEOUT.as_secs() / 3600))??;
    Ok(returns)
}
