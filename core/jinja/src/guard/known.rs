//! What is known of the engine's and the host's names: what comes out of them depends on nothing but what goes in.

/// The body of a call block, as the macro that is called sees it.
pub(super) const CALLER: &str = "caller";

/// Filters whose output is one YAML node whatever they are given.
pub(super) const ENCODERS: [&str; 4] = ["yaml", "yaml_encode", "yaml_dquote", "yaml_squote"];

/// The same of JSON, which YAML reads nearly as it is.
pub(super) const JSON_ENCODERS: [&str; 2] = ["json", "tojson"];

/// Functions of the engine that give nothing but what they are given.
pub(super) const FUNCTIONS: [&str; 8] = ["range", "dict", "namespace", "cycler", "joiner", "lipsum", "raise", "ifelse"];

/// The same for what operators and literals are rewritten to.
pub(super) const OPERATORS: [&str; 15] = [
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
];

/// What comparisons are rewritten to: a truth value is none of the text that is compared.
pub(super) const COMPARISONS: [&str; 6] = ["__lt__", "__gt__", "__le__", "__ge__", "__in__", "__chain__"];

/// Methods that leave what they are called on as it is. Others may put their arguments into it.
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
