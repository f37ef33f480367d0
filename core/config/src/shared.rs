//! The options of serving files and rendering pillar, which the master and masterless minions have in common.

use std::path::PathBuf;

use super::Roots;

/// Declares a configuration as `options!` does, with these options added.
macro_rules! rendering_options {
    ($($own:tt)*) => { $crate::options::options! {
        $($own)*

        /// The directories of state and other files, by environment.
        file_roots: Roots = $crate::rendering::roots("/srv/salt"),
        /// The directories of pillar files, by environment.
        pillar_roots: Roots = $crate::rendering::roots("/srv/pillar"),
        /// Globs of file names that are not served.
        file_ignore_glob: Vec<String> = Vec::new(),
        /// Regular expressions of file names that are not served.
        file_ignore_regex: Vec<String> = Vec::new(),
        /// Whether symbolic links may point outside their file root, and are followed in listings.
        fileserver_followsymlinks: bool = true,
        /// Whether listings omit symbolic links.
        fileserver_ignoresymlinks: bool = false,
        /// The render pipe of SLS files without a `#!` line.
        renderer: String = "jinja|yaml".into(),
        /// The number of steps that a render may take: one per instruction and one per 64 bytes processed. 0 for no
        /// limit.
        template_fuel: u64 = 200_000_000,
        /// The number of bytes of memory that a render may hold at a time. 0 for no limit.
        template_memory: u64 = 64 << 20,
        /// The number of bytes that a template may render to. 0 for no limit.
        template_output: u64 = 64 << 20,
        /// External pillar sources: a list of one-key mappings of module to arguments.
        ext_pillar: Value = Value::List(Vec::new()),
        /// Whether pillar files override the external pillar and can read it while they render. By default the
        /// external pillar overrides pillar files.
        ext_pillar_first: bool = false,
        /// How several sources of pillar are merged: smart, recurse, overwrite, aggregate or none.
        pillar_source_merging_strategy: String = "smart".into(),
        /// Whether lists of several pillar sources are concatenated instead of replaced.
        pillar_merge_lists: bool = false,
        /// Whether included pillar files override the file that includes them.
        pillar_includes_override_sls: bool = false,
        /// Whether minions are told only that rendering a pillar file failed, without the error.
        pillar_safe_render_error: bool = true,
        /// Pillar paths whose values are decrypted: a list of paths, or a mapping of path to renderer (`gpg`).
        decrypt_pillar: Value = Value::List(Vec::new()),
        /// The separator of the keys in a `decrypt_pillar` path.
        decrypt_pillar_delimiter: String = ":".into(),
        /// The GnuPG home directory for encrypted values; by default `gpgkeys` in the configuration directory.
        gpg_keydir: Option<PathBuf> = None,
        /// Whether a value that cannot be decrypted is an error. Otherwise it stays encrypted.
        gpg_decrypt_must_succeed: bool = true,
        /// Whether decrypted values are cached in memory.
        gpg_cache: bool = false,
        /// The number of seconds for which decrypted values are cached.
        gpg_cache_ttl: u64 = 86400,
    } };
}

pub(super) use rendering_options;

/// Returns roots with one directory for `base`.
pub(super) fn roots(folder: &str) -> Roots {
    Roots::from([("base".to_owned(), vec![PathBuf::from(folder)])])
}
