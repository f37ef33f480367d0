//! The configuration file of `mdadm`, which names the arrays that are assembled at boot.

use std::path::PathBuf;

use brine_context::Context;
use brine_context::programs::run;
use brine_function::{Args, CallError, CallResult, function};
use brine_host::process::Program;
use brine_host::programs::program;
use brine_value::{Map, Value, map};

use super::words;

/// Save the active arrays to the configuration of mdadm, and return the output of the program that updates the initial
/// RAM disk; nothing on systems other than Debian's and Red Hat's.
///
/// CLI Example:
///
///     salt '*' raid.save_config
#[function]
pub fn save_config(context: &Context) -> CallResult {
    let output = run(context, &words(&["mdadm", "--detail", "--scan"]), &[])?;
    if output.retcode != 0 {
        return Err(CallError::Execution(format!("listing arrays failed: {}", output.stderr)));
    }
    let is_ubuntu = context.grains().get("os").and_then(Value::as_str) == Some("Ubuntu");
    let lines: Vec<String> = output.stdout.lines().filter_map(|line| entry(line, is_ubuntu)).collect();
    let path = path(context);
    if path.exists() {
        for line in &lines {
            let device = line.split_whitespace().nth(1).unwrap_or_default();
            replace(context, device, line, map! {"append_if_not_found" => true})?;
        }
    } else {
        let keyword = map! {"args" => lines.into_iter().map(Value::from).collect::<Value>()};
        context.call("file.write", Args { positional: vec![path.into()], keyword })?;
    }
    let update = match context.os_family().as_str() {
        "Debian" => ["update-initramfs", "-u"],
        "RedHat" => ["dracut", "--force"],
        _ => return Ok(Value::Nil),
    };
    let program = Program { merge: true, ..program(&words(&update), &[]) };
    let output = context.run_program(&program).map_err(CallError::execution)?;
    if output.retcode != 0 {
        context.set_retcode(output.retcode);
        tracing::error!(jid = context.job.jid, "{} failed: {}", program.command, output.stdout);
    }
    Ok(output.stdout.into())
}

/// Removes an array from the configuration.
pub(super) fn forget(context: &Context, device: &str) -> Result<(), CallError> {
    if path(context).exists() {
        replace(context, device, "", map! {})?;
    }
    Ok(())
}

/// Replaces the line of an array.
fn replace(context: &Context, device: &str, line: &str, more: Map) -> Result<(), CallError> {
    let pattern = format!(r"^ARRAY\s+{}\s+.*$", regex::escape(device));
    let mut keyword = map! {"pattern" => pattern, "repl" => line, "backslash_literal" => true};
    keyword.extend(more);
    context.call("file.replace", Args { positional: vec![path(context).into()], keyword })?;
    Ok(())
}

/// Returns the configuration line of an array. On Ubuntu it has neither metadata nor name: with them, arrays get other
/// device names at boot.
fn entry(line: &str, is_ubuntu: bool) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.len() < 2 || words.first() != Some(&"ARRAY") {
        return None;
    }
    let is_kept = |word: &&str| {
        let name = word.split_once('=').map(|(name, _)| name.to_ascii_lowercase());
        !(is_ubuntu && matches!(name.as_deref(), Some("name" | "metadata")))
    };
    Some(words.into_iter().filter(is_kept).collect::<Vec<_>>().join(" "))
}

/// Returns the path of the configuration.
fn path(context: &Context) -> PathBuf {
    // Tests leave the configuration of the host alone.
    #[cfg(test)]
    if let Some(path) = super::tests::configuration() {
        return path;
    }
    match context.os_family().as_str() {
        "Debian" => "/etc/mdadm/mdadm.conf".into(),
        _ => "/etc/mdadm.conf".into(),
    }
}
