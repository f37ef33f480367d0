//! What minions ask of the file server, and the options that go with it.

use brine_ids::MinionId;
use brine_value::{Map, Value, list, map};
use brine_wire::{ListKind, MinionCommand};

use crate::Shared;
use crate::disk::Disk;

impl Shared {
    pub(super) fn master_opts(&self, disk: &Disk, env_only: bool) -> Value {
        let config = &self.config;
        // Environments without their folders, which are nobody else's business.
        let roots: Map = disk.files.envs().into_iter().map(|env| (env.into(), Value::List(Vec::new()))).collect();
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

    /// Tells of a request for what is out of the file roots. It is answered like one for what is not there.
    fn tell_leading_out(&self, disk: &Disk, id: &MinionId, command: &MinionCommand) {
        let (path, saltenv) = match command {
            MinionCommand::ServeFile { path, saltenv, .. }
            | MinionCommand::FileHash { path, saltenv, .. }
            | MinionCommand::FileFind { path, saltenv } => (path.as_str(), saltenv),
            MinionCommand::FileList { prefix, saltenv, .. } => (prefix.trim_matches('/'), saltenv),
            _ => return,
        };
        if disk.files.leads_out(path, saltenv) {
            brine_wire::metrics::REQUESTS_REFUSED.add(1);
            tracing::warn!(minion = %id, ?path, ?saltenv, "a minion asks for what is out of the file roots");
        }
    }

    pub(super) fn file_command(&self, disk: &Disk, id: &MinionId, command: MinionCommand) -> Value {
        let failed = |error: &dyn std::error::Error| {
            tracing::warn!(minion = %id, %error, "a file cannot be served");
            Value::map()
        };
        self.tell_leading_out(disk, id, &command);
        match command {
            MinionCommand::ServeFile { path, saltenv, loc } => {
                let empty = |dest: &str| map! {"data" => Vec::<u8>::new(), "dest" => dest};
                match disk.files.read_chunk(&path, &saltenv, loc, brine_fileserver::BUFFER_SIZE) {
                    Ok(Some(chunk)) => map! {"data" => chunk.data, "dest" => chunk.relative}.into(),
                    Ok(None) => empty("").into(),
                    Err(error) => failed(&error),
                }
            }
            MinionCommand::FileHash { path, saltenv, stat } => match disk.files.hash(&path, &saltenv) {
                Ok(Some(hash)) => {
                    let hash = Value::from(map! {"hsum" => hash, "hash_type" => disk.files.hash_kind().name()});
                    if stat {
                        let found = disk.files.find(&path, &saltenv);
                        list![hash, found.map(|found| found.stat().into_iter().collect::<Value>())]
                    } else {
                        hash
                    }
                }
                Ok(None) if stat => list!["", Value::Nil],
                Ok(None) => "".into(),
                Err(error) => failed(&error),
            },
            MinionCommand::FileFind { path, saltenv } => match disk.files.find(&path, &saltenv) {
                Some(found) => {
                    let stat: Value = found.stat().into_iter().collect();
                    map! {"path" => found.path, "rel" => found.relative, "stat" => stat, "back" => "roots"}.into()
                }
                None => map! {"rel" => "", "path" => ""}.into(),
            },
            MinionCommand::FileList { kind, saltenv, prefix } => match kind {
                ListKind::Files => disk.files.file_list(&saltenv, &prefix).into(),
                ListKind::Folders => disk.files.dir_list(&saltenv, &prefix).into(),
                ListKind::EmptyFolders => disk.files.empty_dirs(&saltenv, &prefix).into(),
                ListKind::Links => {
                    let links = disk.files.symlink_list(&saltenv, &prefix);
                    Value::Map(links.into_iter().map(|(link, target)| (link.into(), target.into())).collect())
                }
            },
            MinionCommand::FileEnvs => disk.files.envs().into(),
            // The others do not read files and have been answered.
            _ => Value::Nil,
        }
    }
}
