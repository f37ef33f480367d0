//! The options of who serves files and renders pillar: the master, and a minion that works without one.

use std::path::PathBuf;

use super::Roots;

/// As `options!`, with these options behind the others.
macro_rules! rendering_options {
    ($($own:tt)*) => { $crate::options::options! {
        $($own)*

        /// Where state and other files are, by environment.
        file_roots: Roots = $crate::rendering::roots("/srv/salt"),
        /// Where pillar files are, by environment.
        pillar_roots: Roots = $crate::rendering::roots("/srv/pillar"),
        /// Globs of file names that are not served.
        file_ignore_glob: Vec<String> = Vec::new(),
        /// Regular expressions of file names that are not served.
        file_ignore_regex: Vec<String> = Vec::new(),
        /// Whether links may lead out of their file root, and are walked in lists.
        fileserver_followsymlinks: bool = true,
        /// Whether lists of files leave links out.
        fileserver_ignoresymlinks: bool = false,
        /// The renderers of SLS files that do not say.
        renderer: String = "jinja|yaml".into(),
        /// How many steps a template may take: instructions, and one for each 64 bytes that it works on. 0 for no limit.
        template_fuel: u64 = brine_jinja::limits::DEFAULT_FUEL,
        /// How many bytes of memory a template may hold at a time. 0 for no limit.
        template_memory: u64 = brine_jinja::limits::DEFAULT_MEMORY,
        /// How many bytes a template may render to. 0 for no limit.
        template_output: u64 = brine_jinja::limits::DEFAULT_OUTPUT,
        /// Pillar from elsewhere: a list of one-key maps, a module with its arguments each.
        ext_pillar: Value = Value::List(Vec::new()),
        /// Whether pillar files go over what `ext_pillar` brings, and see it.
        ext_pillar_first: bool = false,
        /// How pillar that comes later goes over the earlier: smart, recurse, overwrite, aggregate, none.
        pillar_source_merging_strategy: String = "smart".into(),
        /// Whether lists of pillar are put together instead of replaced.
        pillar_merge_lists: bool = false,
        /// Whether what a pillar file includes goes over the file.
        pillar_includes_override_sls: bool = false,
        /// Whether minions are not told what is wrong with a pillar file, only that something is.
        pillar_safe_render_error: bool = true,
        /// Paths in the pillar at which values are opened that are sealed: a list, or a mapping to `gpg`.
        decrypt_pillar: Value = Value::List(Vec::new()),
        /// What is between the keys of such a path.
        decrypt_pillar_delimiter: String = ":".into(),
        /// The folder of the keys for values that are sealed with PGP; `gpgkeys` beside the configuration otherwise.
        gpg_keydir: Option<PathBuf> = None,
        /// Whether a value that cannot be opened is an error. It stays sealed otherwise.
        gpg_decrypt_must_succeed: bool = true,
        /// Whether opened values are kept in memory.
        gpg_cache: bool = false,
        /// For how many seconds.
        gpg_cache_ttl: u64 = 86400,
    } };
}

pub(super) use rendering_options;

/// The roots of `base` alone.
pub(super) fn roots(folder: &str) -> Roots {
    Roots::from([("base".to_owned(), vec![PathBuf::from(folder)])])
}
