//! The names of secret arguments.

use brine_text::glob::{Glob, GlobError};

/// The default of `masked_names`.
pub const MASKED_NAMES: &[&str] = &[
    "*password*",
    "*passwd*",
    "*passphrase*",
    "pass",
    "*_pass",
    "pwd",
    "*_pwd",
    "*secret*",
    "*token*",
    "*credential*",
    "creds",
    "*_creds",
    "auth",
    "basic_auth",
    "http_auth",
    "proxy_auth",
    "authorization",
    "cookie",
    "cookies",
    "key",
    "*_key",
    "*_keys",
    "*accesskey",
    "*apikey",
    "*authkey",
    "*privatekey",
    "*privkey",
    "*sshkey",
    "psk",
    "*_psk",
    "priv",
    "pillar",
    "ret_kwargs",
    "cmd.*:stdin",
    "config.apply:value",
    "config.update_config:yaml_contents",
    "gpg.import_key:text",
    "http.*:data",
    "nacl.*:data",
    "nacl.*:sk",
    "pillar_roots.write:data",
    "sdb.set:value",
];

/// The default of `unmasked_names`: public keys, and functions whose argument `key` is a path into data.
pub const UNMASKED_NAMES: &[&str] = &[
    "pub_key",
    "*public_key",
    "*public_keys",
    "authorized_keys",
    "host_key",
    "known_host_key",
    "primary_key",
    "foreign_key",
    "routing_key",
    "sort_key",
    "*_by_key",
    "config.*:key",
    "grains.*:key",
    "pillar.*:key",
    "defaults.*:key",
    "data.*:key",
    "environ.*:key",
    "cache.*:key",
    "reg.*:key",
    "redis.*:key",
    "memcached.*:key",
    "etcd.*:key",
    "consul.*:key",
    "gnome.*:key",
    "macdefaults.*:key",
    "ssh.*:key",
];

/// The compiled names of secret arguments.
///
/// Names are short and so are these lists: the globs are tried one by one, and need no tables in each daemon and tool.
#[derive(Default)]
struct Patterns {
    everywhere: Vec<Glob>,
    /// Names in some functions alone: globs of functions and of names.
    by_function: Vec<(Glob, Glob)>,
}

/// The names of secret arguments.
pub(crate) struct Names {
    masked: Patterns,
    unmasked: Patterns,
}

impl Default for Names {
    fn default() -> Self {
        // A test compiles the defaults.
        Self::new(MASKED_NAMES, UNMASKED_NAMES)
            .unwrap_or_else(|_| Names { masked: Patterns::default(), unmasked: Patterns::default() })
    }
}

impl Names {
    /// Compiles the patterns.
    pub(crate) fn new<S: AsRef<str>>(masked: &[S], unmasked: &[S]) -> Result<Self, GlobError> {
        Ok(Names { masked: Patterns::new(masked)?, unmasked: Patterns::new(unmasked)? })
    }

    /// Whether an argument of this name is secret in calls of this function.
    pub(crate) fn is_secret(&self, function: &str, name: &str) -> bool {
        let name = normal(name);
        self.masked.is_match(function, &name) && !self.unmasked.is_match(function, &name)
    }
}

impl Patterns {
    fn new<S: AsRef<str>>(patterns: &[S]) -> Result<Self, GlobError> {
        let (limited, everywhere): (Vec<&str>, Vec<&str>) =
            patterns.iter().map(AsRef::as_ref).partition(|pattern| pattern.contains(':'));
        let by_function = limited.into_iter().filter_map(|pattern| pattern.rsplit_once(':'));
        let by_function = by_function.map(|(function, name)| Ok((Glob::new(function)?, Glob::new(&normal(name))?)));
        Ok(Patterns {
            everywhere: everywhere.into_iter().map(|name| Glob::new(&normal(name))).collect::<Result<_, _>>()?,
            by_function: by_function.collect::<Result<_, GlobError>>()?,
        })
    }

    /// Whether a normal name matches in calls of a function.
    fn is_match(&self, function: &str, name: &str) -> bool {
        let is_of_function = |(functions, names): &(Glob, Glob)| names.is_match(name) && functions.is_match(function);
        self.everywhere.iter().any(|names| names.is_match(name)) || self.by_function.iter().any(is_of_function)
    }
}

/// Returns a name in lower case with words joined by `_`: `apiKey`, `API-Key` and `api_key` are one name.
fn normal(name: &str) -> String {
    let mut normal = String::with_capacity(name.len() + 2);
    let mut after_lower = false;
    for c in name.chars() {
        if c.is_uppercase() && after_lower {
            normal.push('_');
        }
        after_lower = c.is_lowercase() || c.is_ascii_digit();
        match c {
            '-' | '.' | ' ' => normal.push('_'),
            c => normal.extend(c.to_lowercase()),
        }
    }
    normal
}
