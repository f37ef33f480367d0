"""Loads custom modules and gives them what Salt's loader gives: `__salt__`, `__opts__`, `__grains__`, ..."""

import collections.abc
import functools
import importlib.machinery
import importlib.util
import inspect
import logging
import operator
import os
import sys
import threading
import time
import traceback

import brine_function_tokens as function_tokens
import brine_renderers as renderers
import brine_shim as shim

_current = threading.local()
_last = None
# The kinds whose functions take those of the offered keyword arguments that they name.
OFFERED = ("auth", "output", "matchers")
# The names of the kinds in the names of modules, where they differ.
TAGS = {"modules": "module", "renderers": "render", "tops": "top", "returners": "returner", "executors": "executor"}
EXTENSIONS = (".py",) + tuple(importlib.machinery.EXTENSION_SUFFIXES)


def enter(call):
    """Makes a call the current one of this thread."""
    global _last
    _current.call = _last = call


def leave():
    """Ends the current call of this thread."""
    _current.call = None


def current_call():
    """Returns the call of this thread, or of a thread that a function started, the newest one."""
    return getattr(_current, "call", None) or _last


def exception(name):
    """Returns Salt's exception of this name; unknown ones are CommandExecutionError."""
    found = getattr(sys.modules.get("salt.exceptions", shim.exceptions), name, None)
    return found if isinstance(found, type) and issubclass(found, Exception) else shim.exceptions.CommandExecutionError


def place_of(error):
    """Returns the file and line of the innermost frame that is neither Brine's nor Python's; empty without one."""
    library = os.path.dirname(os.__file__)
    for frame in reversed(traceback.extract_tb(error.__traceback__, limit=-50)):
        is_of_library = frame.filename.startswith(library) or "-packages" + os.sep in frame.filename
        if os.path.isabs(frame.filename) and not is_of_library:
            return " (%s:%s, in %s)" % (os.path.basename(frame.filename), frame.lineno, frame.name)
    return ""


def describe_error(error, names_place=False):
    """Returns the class, message and traceback of an exception, as fields of a frame. The message of one that is no
    exception of Salt names its place in the file of its author, if wanted."""
    kinds = ("CommandExecutionError", "SaltInvocationError", "CommandNotFoundError", "SaltRenderError")
    kind = type(error).__name__
    for name in kinds:
        if isinstance(error, exception(name)):
            kind = name
    if isinstance(error, SystemExit):
        message = "the function ended Python with the status %s" % (error.code,)
    else:
        message = str(error)
        if names_place and kind not in kinds:
            message += place_of(error)
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__, limit=-50))
    return {"class": kind, "message": message[:65536], "traceback": trace[-65536:]}


class Current(collections.abc.MutableMapping):
    """A mapping of the current call, such as `__pillar__`."""

    def __init__(self, name):
        self.name = name

    def value(self):
        call = current_call()
        return call.data.setdefault(self.name, {}) if call is not None else {}

    def __getitem__(self, key):
        return self.value()[key]

    def __setitem__(self, key, value):
        # Calls share what Brine sent: a change is for the own call alone.
        own = dict(self.value())
        own[key] = value
        current_call().data[self.name] = own

    def __delitem__(self, key):
        own = dict(self.value())
        del own[key]
        current_call().data[self.name] = own

    def __iter__(self):
        return iter(self.value())

    def __len__(self):
        return len(self.value())

    def __repr__(self):
        return repr(self.value())

    def copy(self):
        """Returns a dictionary with the same entries."""
        return dict(self.value())


def enforce_dependencies(functions, kind, stem):
    """Removes or replaces those functions of a module whose `salt.utils.decorators.depends` is not met."""
    decorators = sys.modules.get("salt.utils.decorators")
    if decorators is not None:
        decorators.Depends.enforce_dependencies(functions, TAGS.get(kind, kind), stem)


class Context(dict):
    """`__context__`: kept between calls, except for `retcode`, which belongs to the call that sets it."""

    def __setitem__(self, key, value):
        call = current_call()
        if key == "retcode" and call is not None:
            call.retcode = value
        super().__setitem__(key, value)

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *args, **kwargs):
        for key, value in dict(*args, **kwargs).items():
            self[key] = value


def retcode(call):
    """Returns the retcode that the function of a call has set, as an integer."""
    value = call.retcode
    return int(value) if isinstance(value, int) else int(bool(value))


class Functions(collections.abc.Mapping):
    """The functions of a kind by full name: the own ones, and below them Brine's."""

    def __init__(self, loader, kind, names):
        self.loader, self.kind, self.names = loader, kind, names

    def __getitem__(self, name):
        own = self.loader.find(self.kind, name)
        if own is None and name not in self.names and self.loader.fallback is not None:
            own = self.loader.fallback.find(self.kind, name)
        if own is not None:
            return own
        if name not in self.names:
            raise KeyError(name)

        def remote(*args, **kwargs):
            return self.loader.ask(self.kind, name, args, kwargs)

        remote.__name__ = remote.__qualname__ = name.rpartition(".")[2]
        return remote

    def __contains__(self, name):
        try:
            return self[name] is not None
        except KeyError:
            return False

    def __iter__(self):
        own = self.loader.functions(self.kind)
        return iter(list(own) + [name for name in sorted(self.names) if name not in own])

    def __len__(self):
        return sum(1 for _ in self)

    def __getattr__(self, module):
        if module.startswith("__"):
            raise AttributeError(module)
        return Module(self, module)


class Module:
    """The functions of a module as attributes: `__salt__.cmd.run`."""

    def __init__(self, functions, module):
        self._functions, self._module = functions, module

    def __getattr__(self, name):
        try:
            return self._functions["%s.%s" % (self._module, name)]
        except KeyError:
            raise AttributeError("%s.%s" % (self._module, name)) from None


class JobEvents:
    """The events of a runner call, such as `salt/run/JID/progress`."""

    def __init__(self, loader):
        self.loader = loader

    def fire_event(self, data, tag):
        """Publishes an event below the tag of the call."""
        above = current_call().data.get("load", {}).get("tag", "salt/run")
        return self.loader.ask("events", "event.fire", [data, "%s/%s" % (above, tag)], {})


class Loader:
    """All files of the directories, loaded when a function of theirs is looked for."""

    def __init__(self, setup, ask, fallback):
        self.ask = ask
        self.files = setup["files"]
        self.lock = threading.RLock()
        self.loaded = {}
        self.errors = {}
        self.loading = set()
        names = setup.get("functions", {})
        self.spaces = {kind: Functions(self, kind, frozenset(names.get(kind, ()))) for kind in (
            "modules", "states", "utils", "grains", "renderers", "pillar", "tops", "runners", "wheel", "beacons",
            "returners", "engines", "auth", "roster", "sdb", "output", "executors", "matchers", "serializers", "fileserver",
            "tokens", "cache")}
        self.contexts = {kind: Context() for kind in self.spaces}
        self.fallback = fallback() if setup.get("fallback") else None
        self.make_fallback = fallback
        self.function_tokens = function_tokens.FunctionTokens()
        shim.install(ask, self.spaces, Current, setup.get("events", ""))

    def execute(self, frame):
        """Carries out one call of Brine."""
        kind = frame["kind"]
        self.contexts.get(kind, {}).pop("retcode", None)
        if kind == "describe":
            return self.describe(frame["args"][0])
        if kind == "fallback":
            return self.describe_fallback(*frame["args"])
        if kind == "grains":
            return self.grains()
        if kind == "render":
            data = renderers.render(self, *frame["args"])
            return self.function_tokens.replace(data) if frame["args"][0] in renderers.PROGRAMS else data
        if kind == "evaluate":
            return self.evaluate(*frame["args"])
        if kind == "kept":
            return self.function_tokens.find(frame["fun"])(*frame["args"], **frame["kwargs"])
        function = self.find(kind, frame["fun"])
        if function is None and kind == "engines":
            function = self.make_fallback().engine(frame["fun"])
        elif function is None and self.fallback is not None:
            function = self.fallback.find(kind, frame["fun"])
        if function is None:
            raise shim.exceptions.CommandNotFoundError("'%s' is not available." % frame["fun"])
        if kind == "states":
            low = current_call().data.get("low", {})
            self.set_globals(function, {
                "__low__": low, "__env__": low.get("__env__", "base"), "__sls__": low.get("__sls__", ""),
                "__instance_id__": low.get("__id__", ""), "__lowstate__": low, "__reqs__": low.get("__reqs__", {}),
            })
        elif "load" in current_call().data:
            load = current_call().data["load"]
            self.set_globals(function, {"__%s__" % name: load.get(name, "") for name in ("jid", "user", "tag")})
        if kind == "executors" and frame["fun"].endswith(".execute"):
            value = self.run_executor(function, *frame["args"])
        else:
            if kind == "matchers":
                data = {"grains": dict(Current("grains")), "pillar": dict(Current("pillar"))}
                frame["kwargs"]["opts"] = dict(Current("opts"), **data)
            kwargs = accepted(function, frame["kwargs"]) if kind in OFFERED else frame["kwargs"]
            value = function(*frame["args"], **kwargs)
        if kind == "serializers" and frame["fun"].endswith(".serialize"):
            return {"content": value, "binary": isinstance(value, (bytes, bytearray))}
        return list(value) if inspect.isgenerator(value) else value

    def run_executor(self, execute, data, name, args, kwargs):
        """Calls an executor with the function of a job, or its name if there is none."""
        functions = self.spaces["modules"]
        function = functions[name] if name in functions else name
        return execute(dict(Current("opts")), data, function, args, kwargs)

    def evaluate(self, expression, variables):
        """Returns whether an expression is true, such as a condition of `loop.until`."""
        space = self.dunders("states")
        space.update(operator=operator, sys=sys, time=time, logging=logging, log=logging.getLogger("loop"))
        space.update(variables)
        return bool(eval(expression, space))  # pylint: disable=eval-used

    def set_globals(self, function, about):
        """Updates the globals of the module of a function."""
        module = inspect.unwrap(function)
        if hasattr(module, "__globals__"):
            module.__globals__.update(about)

    def find(self, kind, name):
        """Returns the custom function of this full name, or nothing."""
        return self.functions(kind).get(name) if isinstance(name, str) else None

    def functions(self, kind):
        """Returns the custom functions of a kind by full name."""
        with self.lock:
            if kind in self.loaded:
                return self.loaded[kind]
            found, errors = {}, self.errors.setdefault(kind, {})
            # Modules look for each other while they are loaded: they see those before them.
            self.loaded[kind] = found
            for path in self.files.get(kind, ()):
                stem = os.path.basename(path).split(".")[0]
                try:
                    module = self.load(kind, stem, path)
                    public = self.public(kind, stem, module)
                    enforce_dependencies(public, kind, stem)
                    for name, function in public.items():
                        found.setdefault(name, function)
                except BaseException as error:  # pylint: disable=broad-except
                    if type(error).__name__ == "Cancelled":
                        del self.loaded[kind]
                        raise
                    about = describe_error(error)
                    # What these say is clear without the name of the class.
                    is_clear = isinstance(error, (VirtualFalse, ImportError))
                    errors[stem] = about["message"] if is_clear else "%s: %s" % (about["class"], about["message"])
                    logging.getLogger(__name__).debug("%s is not loaded", path, exc_info=True)
            return found

    def dunders(self, kind):
        empty = {name: {} for name in ("__ret__", "__events__", "__proxy__", "__sdb__")}
        empty.update({"__%s__" % name: Current(name) for name in ("opts", "grains", "pillar")})
        empty.update({
            "__salt__": self.spaces["runners" if kind == "runners" else "modules"],
            "__runner__": self.spaces["runners"], "__runners__": self.spaces["runners"],
            "__jid_event__": JobEvents(self), "__states__": self.spaces["states"],
            "__utils__": self.spaces["utils"], "__serializers__": self.spaces["serializers"], "__context__": self.contexts[kind],
            "__env__": "base", "__sls__": "", "__lowstate__": {}, "__instance_id__": "", "__low__": {},
        })
        return empty

    def load(self, kind, stem, path):
        # As in Salt, whose decorators take the kind and the file from the name.
        name = "salt.loaded.ext.%s.%s" % (TAGS.get(kind, kind), stem)
        package = None
        if os.path.isdir(path):
            package, path = [path], os.path.join(path, "__init__.py")
        spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=package)
        module = importlib.util.module_from_spec(spec)
        module.__dict__.update(self.dunders(kind))
        sys.modules[name] = module
        # While it is loaded, a module can import the files beside it and those of `_utils` by their names.
        beside = [os.path.dirname(one) for one in [path, *self.files.get("utils", ())]]
        sys.path.extend(beside)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            sys.modules.pop(name, None)
            raise
        finally:
            for directory in beside:
                sys.path.remove(directory)
        return module

    def public(self, kind, stem, module):
        virtual = stem
        if inspect.isfunction(getattr(module, "__virtual__", None)):
            answer = module.__virtual__()
            reason = None
            if isinstance(answer, tuple):
                answer, reason = answer[0], answer[1] if len(answer) > 1 else None
            if not answer:
                raise VirtualFalse(reason)
            virtual = answer if isinstance(answer, str) else getattr(module, "__virtualname__", stem)
        if hasattr(module, "__init__") and inspect.isfunction(module.__init__):
            module.__init__(module.__opts__)
        aliases = getattr(module, "__func_alias__", {})
        modules = [virtual, *getattr(module, "__virtual_aliases__", ())]
        functions = {}
        for name in getattr(module, "__load__", getattr(module, "__all__", dir(module))):
            function = getattr(module, name, None)
            if name.startswith("_") or not (inspect.isfunction(function) or isinstance(function, functools.partial)):
                continue
            # As in Salt, what a module imports is none of its functions: `from subprocess import run` in a module
            # with the virtual name `cmd` would replace `cmd.run`.
            if kind != "utils" and not str(function.__module__).startswith("salt.loaded."):
                continue
            for one in modules:
                functions["%s.%s" % (one, aliases.get(name, name))] = function
        return functions

    def describe(self, kinds):
        """Returns the functions of these kinds with their parameters, and the errors of files."""
        return {
            kind: {
                "functions": {name: signature(function) for name, function in self.functions(kind).items()},
                "errors": dict(self.errors.get(kind, {})),
            }
            for kind in kinds
        }

    def describe_fallback(self, kind, module):
        """Returns Salt's functions of a kind, of a module or of all, with their parameters."""
        found = self.fallback.functions(kind, module) if self.fallback is not None else {}
        return {kind: {"functions": {name: signature(function) for name, function in found.items()}, "errors": {}}}

    def grains(self):
        """Returns the grains of all functions, and the errors of those that fail."""
        grains, errors = {}, {}
        combine = merge if Current("opts").get("grains_deep_merge") is True else dict.update
        for name, function in self.functions("grains").items():
            try:
                takes = inspect.signature(function).parameters
                value = function(**({"grains": dict(Current("grains"))} if "grains" in takes else {}))
                if isinstance(value, dict):
                    combine(grains, value)
            except Exception as error:  # pylint: disable=broad-except
                errors[name] = "%s: %s" % (type(error).__name__, error)
        return {"grains": grains, "errors": dict(self.errors["grains"], **errors)}


def merge(into, more):
    """Merges mappings at every depth; other values are replaced."""
    for key, value in more.items():
        if isinstance(into.get(key), dict) and isinstance(value, dict):
            into[key] = dict(into[key])
            merge(into[key], value)
        else:
            into[key] = value


def accepted(function, kwargs):
    """Returns those of the keyword arguments that a function has."""
    parameters = inspect.signature(function).parameters
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return kwargs
    return {name: value for name, value in kwargs.items() if name in parameters}


class VirtualFalse(Exception):
    """A file that does not want to be loaded."""

    def __init__(self, reason):
        super().__init__("__virtual__ returned False" + (": %s" % reason if reason else ""))


def signature(function):
    """Returns the documentation, outputter and parameters of a function."""
    about = {"doc": inspect.cleandoc(function.__doc__ or ""), "args": [], "defaults": [], "varargs": False, "kwargs": False}
    module = sys.modules.get(getattr(function, "__module__", None))
    out = getattr(module, "__outputter__", {}).get(getattr(function, "__name__", ""))
    if isinstance(out, str):
        about["out"] = out
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        about["varargs"] = about["kwargs"] = True
        return about
    for one in parameters:
        if one.kind is one.VAR_POSITIONAL:
            about["varargs"] = True
        elif one.kind is one.VAR_KEYWORD:
            about["kwargs"] = True
        else:
            about["args"].append(one.name)
            if one.default is not one.empty:
                plain = isinstance(one.default, (str, int, float, bool, type(None)))
                about["defaults"].append(one.default if plain else repr(one.default))
            elif about["defaults"]:
                about["defaults"].append(None)
    return about
