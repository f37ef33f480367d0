"""The parts of the package `salt` that custom modules import most, for hosts that do not have it."""

import copy
import functools
import importlib.util
import json
import os
import platform
import shutil
import sys
import types


def _module(name, **content):
    module = types.ModuleType(name)
    module.__dict__.update(content)
    return module


exceptions = types.ModuleType("salt.exceptions")


class SaltException(Exception):
    """The class above Salt's exceptions: a message, and data about the failure."""

    __module__ = "salt.exceptions"

    def __init__(self, message="", info=None):
        super().__init__(message)
        self.message, self.info = str(message), info


def _exceptions():
    base = exceptions.SaltException = SaltException
    above = {
        "CommandExecutionError": base, "SaltInvocationError": base, "CommandNotFoundError": base, "SaltRenderError": base,
        "MinionError": base, "FileserverConfigError": base, "SaltConfigurationError": base, "LoaderError": base,
        "SaltReqTimeoutError": base, "TimedProcTimeoutError": base, "AuthenticationError": base,
        "AuthorizationError": base, "EauthAuthenticationError": base, "PkgParseError": base, "FileLockError": base,
        "SaltSystemExit": SystemExit, "TemplateError": base, "ArgumentValueError": base, "InvalidKwargError": base,
        "CheckError": base, "TimeoutError": base, "GitLockError": base, "NotImplemented": base,
    }
    for name, parent in above.items():
        setattr(exceptions, name, type(name, (parent,), {"__module__": "salt.exceptions"}))


_exceptions()


def fopen(path, mode="r", **kwargs):
    """Opens a file; text is UTF-8."""
    if "b" not in mode:
        kwargs.setdefault("encoding", "utf-8")
    return open(path, mode, **kwargs)  # pylint: disable=consider-using-with


def makedirs(path, mode=0o755):
    """Creates a directory and those above it."""
    os.makedirs(path, mode=mode, exist_ok=True)


def rm_rf(path):
    """Removes a file or a directory with all below it."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.remove(path)


def which(name=None):
    """Returns the path of a program, or nothing."""
    return shutil.which(name) if name else None


def which_bin(names):
    """Returns the path of the first program that is there."""
    return next(filter(None, map(which, names)), None)


def traverse_dict(data, key, default=None, delimiter=":"):
    """Returns the value at a path of keys in nested mappings."""
    for part in str(key).split(delimiter):
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return default
    return data


def traverse_dict_and_list(data, key, default=None, delimiter=":"):
    """Returns the value at a path of keys and positions in nested mappings and lists."""
    for part in str(key).split(delimiter):
        if isinstance(data, (list, tuple)):
            if part.lstrip("-").isdigit():
                try:
                    data = data[int(part)]
                    continue
                except IndexError:
                    return default
            data = next((entry[part] for entry in data if isinstance(entry, dict) and part in entry), default)
            if data is default:
                return default
        else:
            try:
                data = data[part]
            except (KeyError, TypeError):
                return default
    return data


def is_true(value=None):
    """Returns whether a value, or its text, stands for truth."""
    if isinstance(value, str):
        text = value.strip().lower()
        return text == "true" or text.lstrip("-").replace(".", "", 1).isdigit() and float(text) > 0
    return bool(value) and (not isinstance(value, (int, float)) or value > 0)


def update(dest, upd, recursive_update=True, merge_lists=False):
    """Merges a mapping into another one, in place."""
    for key, value in upd.items():
        old = dest.get(key)
        if recursive_update and isinstance(old, dict) and isinstance(value, dict):
            update(old, value, True, merge_lists)
        elif merge_lists and isinstance(old, list) and isinstance(value, list):
            dest[key] = old + [entry for entry in value if entry not in old]
        else:
            dest[key] = value
    return dest


def merge_recurse(first, second, merge_lists=False):
    """Returns both mappings merged."""
    return update(copy.deepcopy(first), second, True, merge_lists)


def compare_dicts(old=None, new=None):
    """Returns the keys whose values differ, with both values."""
    old, new, changed = old or {}, new or {}, {}
    for key in list(new) + [key for key in old if key not in new]:
        if key not in old or key not in new or old[key] != new[key]:
            changed[key] = {"old": old.get(key, ""), "new": new.get(key, "")}
    return changed


def to_text(value, encoding="utf-8", errors="strict", **_):
    """Returns text, decoded if it is bytes."""
    return bytes(value).decode(encoding or "utf-8", errors) if isinstance(value, (bytes, bytearray)) else str(value)


def to_bytes(value, encoding="utf-8", errors="strict"):
    """Returns bytes, encoded if it is text."""
    return value.encode(encoding or "utf-8", errors) if isinstance(value, str) else bytes(value)


def clean_kwargs(**kwargs):
    """Returns the arguments without those that Salt adds."""
    return {key: value for key, value in kwargs.items() if not key.startswith("__")}


def split_input(value, mapper=None):
    """Returns a list: of text its parts between commas."""
    parts = value if isinstance(value, (list, tuple)) else str(value).split(",")
    return [(mapper or (lambda entry: str(entry).strip()))(part) for part in parts]


def warn_until(*_args, **_kwargs):
    """Does nothing: warnings about versions of Salt do not concern Brine."""


def depends(*_dependencies, **_kwargs):
    """Decorates a function that is left out if a module that it needs is missing."""
    def decorate(function):
        missing = [name for name in _dependencies if isinstance(name, str) and importlib.util.find_spec(name) is None]
        if not missing:
            return function

        @functools.wraps(function)
        def refuse(*_args, **_kwargs):
            raise exceptions.CommandExecutionError("%s needs %s" % (function.__name__, ", ".join(missing)))

        return refuse
    return decorate


def memoize(function):
    """Decorates a function whose results are kept."""
    return functools.lru_cache(maxsize=1024)(function)


def _yaml():
    """Returns `salt.utils.yaml`, which imports PyYAML when it is used."""
    def find(name):
        import yaml  # pylint: disable=import-outside-toplevel

        def dump(data, stream=None, **kwargs):
            return yaml.safe_dump(data, stream, **kwargs)

        def load(stream, Loader=None):  # pylint: disable=invalid-name,unused-argument
            return yaml.safe_load(stream)

        content = {"load": load, "safe_load": load, "dump": dump, "safe_dump": dump, "YAMLError": yaml.YAMLError}
        if name not in content:
            raise AttributeError("salt.utils.yaml has no '%s' in Brine" % name)
        return content[name]

    return _module("salt.utils.yaml", __getattr__=find)


def install():
    """Puts the modules where `import salt...` finds them, unless the package is installed."""
    if importlib.util.find_spec("salt") is not None:
        return
    system = platform.system()
    is_system = {"is_" + name.lower(): functools.partial(lambda name: system == name, name) for name in (
        "Linux", "Windows", "Darwin", "FreeBSD", "OpenBSD", "NetBSD", "SunOS", "AIX")}
    utils = {
        "files": _module("", fopen=fopen, makedirs=makedirs, rm_rf=rm_rf),
        "data": _module("", traverse_dict=traverse_dict, traverse_dict_and_list=traverse_dict_and_list,
                        is_true=is_true, compare_dicts=compare_dicts, recursive_diff=compare_dicts,
                        decode=lambda value, *_, **__: value, encode=lambda value, *_, **__: value),
        "dictupdate": _module("", update=update, merge_recurse=merge_recurse,
                              merge=lambda a, b, *_, merge_lists=False, **__: merge_recurse(a, b, merge_lists)),
        "json": _module("", loads=json.loads, load=json.load, dumps=json.dumps, dump=json.dump,
                        JSONDecodeError=json.JSONDecodeError),
        "path": _module("", which=which, which_bin=which_bin, join=os.path.join, islink=os.path.islink,
                        readlink=os.readlink, os_walk=os.walk, sanitize_win_path=lambda path: path),
        "platform": _module("", **is_system),
        "stringutils": _module("", to_str=to_text, to_unicode=to_text, to_bytes=to_bytes, is_hex=lambda text: all(
            letter in "0123456789abcdefABCDEF" for letter in text)),
        "args": _module("", clean_kwargs=clean_kwargs, split_input=split_input),
        "versions": _module("", warn_until=warn_until),
        "decorators": _module("", depends=depends, memoize=memoize),
    }
    if importlib.util.find_spec("yaml") is not None:
        utils["yaml"] = _yaml()
    salt = _module("salt", __path__=[], exceptions=exceptions, __version__="3008.3")
    above = _module("salt.utils", __path__=[])
    salt.utils = above
    sys.modules.update({"salt": salt, "salt.utils": above, "salt.exceptions": exceptions})
    for name, module in utils.items():
        module.__name__ = "salt.utils." + name
        setattr(above, name, module)
        sys.modules[module.__name__] = module
    # `salt.utils.decorators.path.which` guards functions by a program.
    decorators = utils["decorators"]
    decorators.__path__ = []
    guard = _module("salt.utils.decorators.path", which=lambda name: lambda function: function)
    decorators.path = sys.modules[guard.__name__] = guard
