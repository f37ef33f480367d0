//! The execution functions that work by themselves: they read grains, pillar, options, files under `salt://`, or only
//! their arguments.

/// Modules all of whose functions are pure, except for those of [`EXCEPT`].
const MODULES: [&str; 9] = ["config", "defaults", "grains", "jinja", "match", "pillar", "saltcheck", "slsutil", "sys"];

/// Functions of these modules that are not pure.
const EXCEPT: [&str; 11] = [
    "config.gather_bootstrap_script",
    "grains.append",
    "grains.delkey",
    "grains.delval",
    "grains.remove",
    "grains.set",
    "grains.setval",
    "grains.setvals",
    "pillar.ext",
    "slsutil.renderer",
    "sys.reload_modules",
];

/// Pure functions of other modules, by module.
const FUNCTIONS: [(&str, &[&str]); 6] = [
    ("cp", &["envs", "list_master", "list_master_dirs", "list_master_symlinks", "list_states"]),
    ("file", &["basename", "dirname", "join", "normpath", "pardir"]),
    (
        "hashutil",
        &[
            "base64_b64decode",
            "base64_b64encode",
            "base64_decodestring",
            "base64_encodestring",
            "digest",
            "github_signature",
            "hmac_compute",
            "hmac_signature",
            "md5_digest",
            "sha256_digest",
            "sha512_digest",
        ],
    ),
    ("network", &["calc_net", "convert_cidr", "ip_in_subnet", "iphexval", "is_loopback", "is_private", "reverse_ip"]),
    (
        "state",
        &[
            "apply",
            "graph",
            "graph_highstate",
            "high",
            "highstate",
            "id_exists",
            "low",
            "show_highstate",
            "show_low_sls",
            "show_lowstate",
            "show_sls",
            "show_state_usage",
            "show_states",
            "show_top",
            "single",
            "sls",
            "sls_exists",
            "sls_id",
            "template_str",
            "top",
        ],
    ),
    (
        "test",
        &[
            "arg",
            "arg_clean",
            "arg_repr",
            "arg_type",
            "assertion",
            "collatz",
            "conf_test",
            "echo",
            "exception",
            "false",
            "get_opts",
            "kwarg",
            "outputter",
            "ping",
            "provider",
            "providers",
            "raise_exception",
            "retcode",
            "true",
            "try",
            "version",
            "versions",
            "versions_information",
            "versions_report",
        ],
    ),
];

/// Functions of `file` that examine the files of the test: their first argument is `path`.
const OF_FILES: [&str; 13] = [
    "access",
    "check_hash",
    "contains",
    "contains_glob",
    "contains_regex",
    "directory_exists",
    "file_exists",
    "get_hash",
    "get_mode",
    "get_sum",
    "path_exists_glob",
    "read",
    "readdir",
];

/// Functions that are pure if their path, the first argument, is below `salt://`.
const OF_SERVED: [&str; 3] = ["cp.get_file_str", "cp.hash_file", "slsutil.renderer"];

/// Whether a function works by itself.
pub fn is_pure(module: &str, name: &str) -> bool {
    if MODULES.contains(&module) {
        return !EXCEPT.iter().any(|full| full.split_once('.') == Some((module, name)));
    }
    FUNCTIONS.iter().any(|(other, names)| *other == module && names.contains(&name))
}

/// Whether a function examines files of the host.
pub fn examines_files(function: &str) -> bool {
    function.strip_prefix("file.").is_some_and(|name| OF_FILES.contains(&name))
}

/// Whether a function is pure if its path is below `salt://`.
pub fn reads_served(function: &str) -> bool {
    OF_SERVED.contains(&function)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Library;

    #[test]
    fn all_named_functions_exist() {
        let library = Library::new(brine_modules::MODULES);
        let others =
            FUNCTIONS.iter().flat_map(|(module, names)| names.iter().map(move |name| format!("{module}.{name}")));
        let of_files = OF_FILES.iter().map(|name| format!("file.{name}"));
        let named = EXCEPT.iter().chain(&OF_SERVED).map(|name| (*name).to_owned()).chain(others).chain(of_files);
        let missing: Vec<String> = named.filter(|name| library.functions.get(name).is_none()).collect();
        assert_eq!(missing, Vec::<String>::new());
    }

    #[test]
    fn functions_that_run_commands_are_not_pure() {
        for (module, name, expected) in [
            ("cmd", "run", false),
            ("pillar", "get", true),
            ("pillar", "ext", false),
            ("test", "ping", true),
            ("test", "random_hash", false),
            ("state", "apply", true),
            ("state", "pkg", false),
            ("file", "read", false),
        ] {
            assert_eq!(is_pure(module, name), expected, "{module}.{name}");
        }
    }
}
