//! File requests of minions, and their requests for the master's options.

use brine_config::MasterConfig;
use brine_fileserver::Roots;
use brine_ids::MinionId;
use brine_value::{Map, Value, list, map};
use brine_wire::{ListKind, MinionCommand};

/// Returns the master's options for minions: those about environments, or all that states need.
pub fn master_opts(config: &MasterConfig, files: &Roots, env_only: bool) -> Value {
    // Environments without their directories, which minions need not know.
    let roots: Map = files.envs().into_iter().map(|env| (env.into(), Value::List(Vec::new()))).collect();
    let mut opts = map! {
        "file_roots" => roots,
        "top_file_merging_strategy" => &config.top_file_merging_strategy,
        "env_order" => config.env_order.clone(),
        "default_top" => &config.default_top,
    };
    if !env_only {
        opts.extend(map! {
            "renderer" => &config.renderer,
            "failhard" => config.failhard,
            "state_top" => &config.state_top,
            "state_top_saltenv" => config.state_top_saltenv.clone(),
            "nodegroups" => config.nodegroups.clone(),
            "state_auto_order" => config.state_auto_order,
            "state_events" => config.state_events,
            "state_aggregate" => config.state_aggregate.clone(),
            "jinja_env" => config.jinja_env.clone(),
            "jinja_sls_env" => config.jinja_sls_env.clone(),
            "jinja_lstrip_blocks" => config.jinja_lstrip_blocks,
            "jinja_trim_blocks" => config.jinja_trim_blocks,
        });
    }
    opts.into()
}

/// Logs a request for a path outside of the file roots. It is answered as one for a missing file.
fn log_path_outside(files: &Roots, id: &MinionId, command: &MinionCommand) {
    let (path, saltenv) = match command {
        MinionCommand::ServeFile { path, saltenv, .. }
        | MinionCommand::FileHash { path, saltenv, .. }
        | MinionCommand::FileFind { path, saltenv } => (path.as_str(), saltenv),
        MinionCommand::FileList { prefix, saltenv, .. } => (prefix.trim_matches('/'), saltenv),
        _ => return,
    };
    if files.leads_out(path, saltenv) {
        brine_wire::metrics::REQUESTS_REFUSED.add(1);
        tracing::warn!(minion = %id, ?path, ?saltenv, "requested path is outside of the file roots");
    }
}

/// Answers a file request of a minion; nil for other commands. Blocks.
pub fn answer(files: &Roots, id: &MinionId, command: MinionCommand) -> Value {
    let failed = |error: &dyn std::error::Error| {
        tracing::warn!(minion = %id, %error, "serving a file failed");
        Value::map()
    };
    log_path_outside(files, id, &command);
    match command {
        MinionCommand::ServeFile { path, saltenv, loc } => {
            let empty = |dest: &str| map! {"data" => Vec::<u8>::new(), "dest" => dest};
            match files.read_chunk(&path, &saltenv, loc, brine_fileserver::BUFFER_SIZE) {
                Ok(Some(chunk)) => map! {"data" => chunk.data, "dest" => chunk.relative}.into(),
                Ok(None) => empty("").into(),
                Err(error) => failed(&error),
            }
        }
        MinionCommand::FileHash { path, saltenv, stat } => match files.hash(&path, &saltenv) {
            Ok(Some(hash)) => {
                let hash = Value::from(map! {"hsum" => hash, "hash_type" => files.hash_kind().name()});
                if stat {
                    let file = files.find(&path, &saltenv);
                    list![hash, file.map(|file| file.stat().into_iter().collect::<Value>())]
                } else {
                    hash
                }
            }
            Ok(None) if stat => list!["", Value::Nil],
            Ok(None) => "".into(),
            Err(error) => failed(&error),
        },
        MinionCommand::FileFind { path, saltenv } => match files.find(&path, &saltenv) {
            Some(file) => {
                let stat: Value = file.stat().into_iter().collect();
                map! {"path" => file.path, "rel" => file.relative, "stat" => stat, "back" => "roots"}.into()
            }
            None => map! {"rel" => "", "path" => ""}.into(),
        },
        MinionCommand::FileList { kind, saltenv, prefix } => match kind {
            ListKind::Files => files.file_list(&saltenv, &prefix).into(),
            ListKind::Directories => files.dir_list(&saltenv, &prefix).into(),
            ListKind::EmptyDirectories => files.empty_dirs(&saltenv, &prefix).into(),
            ListKind::Links => {
                let links = files.symlink_list(&saltenv, &prefix);
                Value::Map(links.into_iter().map(|(link, target)| (link.into(), target.into())).collect())
            }
        },
        MinionCommand::FileEnvs => files.envs().into(),
        // Other commands are answered elsewhere.
        _ => Value::Nil,
    }
}
