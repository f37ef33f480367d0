//! `minion`: terminates and restarts this minion.

use std::path::Path;
use std::time::Duration;

use brine_context::Context;
use brine_context::programs::run;
use brine_function::{Args, CallError, CallResult, function};
use brine_value::{Map, Value, list, map};
use nix::sys::signal::{Signal, kill as send_signal};
use nix::unistd::Pid;

/// The service of the minion.
const SERVICE: &str = "salt-minion";
/// The directory that exists if systemd is the init system.
const SYSTEMD: &str = "/run/systemd/system";
/// The grace period for the return of this job before the minion is terminated. A return that is not sent in time is
/// sent after a restart.
const RETURN_GRACE_PERIOD: Duration = Duration::from_secs(1);

/// Terminate the minion. An init system may start it again.
///
/// CLI Example:
///
///     salt '*' minion.kill
#[function]
pub fn kill(
    context: &Context,
    /// Accepted for compatibility with Salt, without effect.
    #[default(15)]
    timeout: u64,
) -> CallResult {
    let _ = timeout;
    Ok(killed(daemon(context), |pid| {
        // The daemon shuts down gracefully on SIGTERM.
        std::thread::spawn(move || {
            std::thread::sleep(RETURN_GRACE_PERIOD);
            _ = send_signal(pid, Signal::SIGTERM);
        });
    })
    .into())
}

/// Returns the PID of the daemon: this process in a job of the master, the process of the PID file in `salt-call`.
fn daemon(context: &Context) -> Option<Pid> {
    if context.job.load.contains_key("tgt_type") {
        return Some(Pid::this());
    }
    let text = std::fs::read_to_string(&context.config().pidfile).ok()?;
    let pid = text.trim().parse::<i32>().ok().filter(|pid| *pid > 1).map(Pid::from_raw)?;
    send_signal(pid, None).is_ok().then_some(pid)
}

fn killed(pid: Option<Pid>, end: impl FnOnce(Pid)) -> Map {
    let Some(pid) = pid else {
        return map! {"killed" => Value::Nil, "retcode" => 70, "comment" => list!["the minion does not run: its PID file names no process"]};
    };
    end(pid);
    map! {"killed" => pid.as_raw(), "retcode" => 0}
}

/// Restart the minion: by the option `minion_restart_command`, by systemd, or else terminate it for an init system to
/// start it again.
///
/// CLI Example:
///
///     salt '*' minion.restart
#[function]
pub fn restart(
    context: &Context,
    /// Whether systemd restarts it (True).
    #[default(true)]
    systemd: bool,
    /// Accepted for compatibility with Salt, without effect.
    #[default(true)]
    win_service: bool,
    /// Whether systemd starts it `retry_delay` seconds (180) later if it did not come back.
    #[default(false)]
    schedule_retry: bool,
    /// Seconds after which systemd starts it, with `schedule_retry`.
    #[default(180)]
    retry_delay: u32,
) -> CallResult {
    let _ = win_service;
    let command = brine_config::opts::modules::minion_restart_command(&context.opts());
    if !command.is_empty() {
        return Ok(restart_by_command(context, &command)?.into());
    }
    if systemd && Path::new(SYSTEMD).is_dir() {
        return Ok(restart_by_systemd(context, schedule_retry.then_some(retry_delay)).into());
    }
    let mut comment = vec![Value::from("Not running in daemon mode - will not restart process after killing")];
    let result = kill(context, 0)?;
    comment.extend(result.get("comment").and_then(Value::as_list).unwrap_or_default().iter().cloned());
    let field = |name: &str| result.get(name).cloned().unwrap_or_default();
    let (killed, retcode) = (field("killed"), field("retcode"));
    Ok(map! {
        "killed" => killed, "restart" => map! {}, "service_restart" => map! {}, "retcode" => retcode, "comment" => comment,
    }
    .into())
}

/// Runs the command of the configuration.
fn restart_by_command(context: &Context, command: &[String]) -> Result<Map, CallError> {
    let mut comment = vec!["Using configuration minion_restart_command:".to_owned()];
    comment.extend(command.iter().map(|word| format!("    {word}")));
    let output = run(context, command, &[])?;
    if output.retcode != 0 {
        comment.push("Restart failed".to_owned());
    }
    Ok(map! {
        "killed" => Value::Nil,
        "restart" => map! {"stdout" => output.stdout, "stderr" => output.stderr},
        "service_restart" => map! {},
        "retcode" => output.retcode,
        "comment" => comment,
    })
}

fn restart_by_systemd(context: &Context, retry: Option<u32>) -> Map {
    let mut comment = vec!["Using systemctl to restart salt-minion".to_owned()];
    let mut service = Map::new();
    let scheduled = retry.map_or(Ok(()), |seconds| {
        let words =
            ["systemd-run", &format!("--on-active={seconds}"), "systemctl", "start", SERVICE].map(str::to_owned);
        let output = run(context, &words, &[]).map_err(CallError::message)?;
        if output.retcode != 0 {
            return Err(output.stderr);
        }
        service.insert("schedule_retry".into(), map! {"detail" => output.stderr, "delay" => seconds}.into());
        comment.push(format!("Scheduled retry for minion restart in {seconds} seconds"));
        Ok(())
    });
    let result = scheduled.map_err(|error| ("Adding scheduled retry failed", error)).and_then(|()| {
        let args = Args { positional: vec![SERVICE.into()], keyword: map! {"no_block" => true} };
        let result = context.call("service.restart", args);
        result.map_err(|error| ("Service restart failed", error.message()))
    });
    let retcode = match result {
        Ok(result) => {
            service.insert("result".into(), result);
            comment.push("Service restart successful".to_owned());
            0
        }
        Err((what, error)) => {
            service.extend(map! {"result" => false, "stderr" => error});
            comment.push(what.to_owned());
            70
        }
    };
    map! {
        "killed" => Value::Nil, "restart" => map! {}, "service_restart" => service, "retcode" => retcode, "comment" => comment,
    }
}

#[cfg(test)]
mod tests;
