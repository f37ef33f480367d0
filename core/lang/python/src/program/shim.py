"""The parts of the package `salt` that custom modules import most, for hosts that do not have it."""

import copy
import functools
import importlib.util
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import types

import brine_events


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


class Depends:
    """Decorates a function that a module only has if its dependencies are met: names in the module, or commands. Applied
    when the module is loaded."""

    decorated = {}

    def __init__(self, *dependencies, **params):
        self.dependencies, self.params = dependencies, params

    def __call__(self, function):
        module = sys._getframe(1).f_globals  # pylint: disable=protected-access
        self.decorated.setdefault(module["__name__"], []).append((function.__name__, module, self))
        return function

    def is_met(self, dependency, module):
        """Returns whether one dependency is met."""
        if "retcode" in self.params or "nonzero_retcode" in self.params:
            try:
                retcode = subprocess.run(
                    shlex.split(dependency), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode
            except OSError:
                retcode = -1
            wanted = self.params.get("retcode")
            return retcode == wanted if "retcode" in self.params else (retcode != 0) == bool(self.params["nonzero_retcode"])
        found = dependency is True or module.get(dependency)
        if found and "version" in self.params:
            numbers = lambda version: [int(number) for number in re.findall("[0-9]+", str(version))]
            return numbers(getattr(found, "__version__", "")) >= numbers(self.params["version"])
        return bool(found)

    @classmethod
    def enforce_dependencies(cls, functions, kind, tgt_mod):
        """Removes or replaces those functions of a module whose dependencies are not met."""
        for name, module, decorator in cls.decorated.get("salt.loaded.ext.%s.%s" % (kind, tgt_mod), []):
            key = "%s.%s" % (tgt_mod, module.get("__func_alias__", {}).get(name, name))
            if key not in functions or all(decorator.is_met(one, module) for one in decorator.dependencies):
                continue
            fallback = decorator.params.get("fallback_function")
            if fallback is None:
                del functions[key]
            else:
                functions[key] = fallback


def memoize(function):
    """Decorates a function whose results are kept. As in Salt, arguments are the same if their texts are."""
    kept = {}

    @functools.wraps(function)
    def remembered(*args, **kwargs):
        key = (tuple(map(str, args)), tuple(sorted((name, str(value)) for name, value in kwargs.items())))
        if key not in kept:
            if len(kept) >= 1024:
                kept.clear()
            kept[key] = function(*args, **kwargs)
        return kept[key]

    return remembered


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


def _clients(ask, spaces, current, path):
    """Returns the modules of `salt` that call functions of Brine."""

    class LocalClient:
        """Runs jobs on minions, through the runner function `salt.execute`."""

        def __init__(self, c_path=None, mopts=None, **_):
            self.opts = dict(current("opts"))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return False

        def cmd(self, tgt, fun, arg=(), timeout=None, tgt_type="glob", ret="", jid="", kwarg=None, **_):
            """Runs a function on minions and returns their results by minion."""
            given = {"arg": list(arg) if isinstance(arg, (list, tuple)) else [arg], "tgt_type": tgt_type}
            given.update({key: value for key, value in (
                ("timeout", timeout), ("ret", ret), ("jid", jid), ("kwarg", kwarg)) if value})
            return ask("runners", "salt.execute", [tgt, fun], given)

    class Called:
        """Calls functions of one kind: `Caller`, `RunnerClient` and `WheelClient`."""

        kind = "modules"

        def __init__(self, *_, **__):
            self.opts = dict(current("opts"))
            self.functions = spaces[self.kind]

        def cmd(self, fun, *args, **kwargs):
            """Calls a function with these arguments and returns its result."""
            return ask(self.kind, fun, list(args), kwargs)

        function = cmd

    class Client(Called):
        """The same with the arguments in a list and a mapping, as on the master."""

        def cmd(self, fun, arg=None, pub_data=None, kwarg=None, print_event=True, full_return=False):
            """Calls a function and returns its result."""
            return ask(self.kind, fun, list(arg or ()), dict(kwarg or {}))

        def call_func(self, fun, **kwargs):
            """Calls a function with keyword arguments."""
            return ask(self.kind, fun, [], kwargs)

    def client(kind):
        return type("Client", (Client,), {"kind": kind})

    def options(*_, **__):
        return dict(current("opts"))

    def tagify(suffix="", prefix="", base="salt"):
        parts = [base, prefix] + (list(suffix) if isinstance(suffix, (list, tuple)) else [suffix])
        return "/".join(str(part) for part in parts if part)

    def events(*_, **__):
        return brine_events.Events(ask, path)

    return {
        "client": _module("", LocalClient=LocalClient, Caller=Called, get_local_client=LocalClient),
        "runner": _module("", RunnerClient=client("runners"), Runner=client("runners")),
        "wheel": _module("", WheelClient=client("wheel"), Wheel=client("wheel")),
        "config": _module("", master_config=options, minion_config=options, client_config=options),
        "loader": _module("", minion_mods=lambda *_, **__: spaces["modules"], runner=lambda *_, **__: spaces["runners"],
                          states=lambda *_, **__: spaces["states"], utils=lambda *_, **__: spaces["utils"],
                          grains=lambda *_, **__: dict(current("grains"))),
    }, _module("", get_event=events, get_master_event=events, MasterEvent=events, MinionEvent=events, SaltEvent=events,
                  TAGEND="\n\n", tagify=tagify)


def install(ask, spaces, current, path):
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
        "decorators": _module("", depends=Depends, Depends=Depends, memoize=memoize),
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
    clients, event = _clients(ask, spaces, current, path)
    for name, module in dict(clients, **{"utils.event": event}).items():
        module.__name__ = "salt." + name
        setattr(above if module is event else salt, name.rpartition(".")[2], module)
        sys.modules[module.__name__] = module
    # `salt.utils.decorators.path.which` guards functions by a program.
    decorators = utils["decorators"]
    decorators.__path__ = []
    guard = _module("salt.utils.decorators.path", which=lambda name: lambda function: function)
    decorators.path = sys.modules[guard.__name__] = guard
