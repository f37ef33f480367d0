//! Functions of the engine and the host whose results depend only on their arguments.

/// The name of a call block's body inside the called macro.
pub(super) const CALLER: &str = "caller";

/// Filters whose output is one YAML node, whatever the input.
pub(super) const ENCODERS: [&str; 4] = ["yaml", "yaml_encode", "yaml_dquote", "yaml_squote"];

/// Filters whose output is JSON, which is nearly a subset of YAML.
pub(super) const JSON_ENCODERS: [&str; 2] = ["json", "tojson"];

/// Functions of the engine whose results contain only their arguments.
pub(super) const FUNCTIONS: [&str; 8] = ["range", "dict", "namespace", "cycler", "joiner", "lipsum", "raise", "ifelse"];

/// The functions of rewritten operators and literals.
pub(super) const OPERATORS: [&str; 17] = [
    "__add__",
    "__sub__",
    "__mul__",
    "__div__",
    "__floordiv__",
    "__mod__",
    "__pow__",
    "__neg__",
    "__pos__",
    "__each__",
    "__each_of__",
    "__own__",
    "__list__",
    "__dict__",
    "__unpack__",
    "__tested__",
    "__tested_item__",
];

/// The functions of rewritten comparisons: their boolean contains no compared text.
pub(super) const COMPARISONS: [&str; 6] = ["__lt__", "__gt__", "__le__", "__ge__", "__in__", "__chain__"];

/// Methods that do not change their object. Others may add their arguments to it.
pub(super) const READ_ONLY: [&str; 47] = [
    "get",
    "keys",
    "values",
    "items",
    "copy",
    "startswith",
    "endswith",
    "split",
    "rsplit",
    "splitlines",
    "join",
    "format",
    "replace",
    "strip",
    "lstrip",
    "rstrip",
    "lower",
    "upper",
    "title",
    "capitalize",
    "swapcase",
    "casefold",
    "index",
    "rindex",
    "count",
    "find",
    "rfind",
    "partition",
    "rpartition",
    "zfill",
    "ljust",
    "rjust",
    "center",
    "removeprefix",
    "removesuffix",
    "expandtabs",
    "encode",
    "decode",
    "isdigit",
    "isdecimal",
    "isalpha",
    "isalnum",
    "islower",
    "isupper",
    "isspace",
    "isnumeric",
    "isidentifier",
];
