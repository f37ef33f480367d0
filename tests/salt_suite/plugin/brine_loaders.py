"""Brine behind the fixtures `loaders`, `modules`, `states` and the like of Salt's functional tests.

Each call of a function is a run of `salt-call --local` with the configuration that the test has written. A command line
carries text alone: arguments are written as YAML, results are read as literals of Python (`--out=raw`), and values that
cannot be written, such as bytes, are refused. A failure is raised with the message that the program prints. The class
of Salt's exception is not visible from outside, so the raised one counts as each of those that Salt's functions raise.
What the program logs as deprecated is a warning of Python.
"""

import ast
import collections.abc
import copy
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import typing
import warnings

import saltfactories.utils.functional as functional
import yaml
from salt.exceptions import CommandExecutionError, SaltInvocationError, SaltRenderError
from salt.utils.args import yamlify_arg

# `state.` functions whose results the tests get as objects, as saltfactories does for Salt.
ONE_STATE = {"state.low", "state.single", "state.sls_id"}
STATES = {f"state.{name}" for name in "apply high highstate sls template template_str test top".split()}
KINDS_OF_FAILURE = [
    r"Error running '[^']*': ",
    r"Passed invalid arguments: ",
    r"The minion function caused an exception: ",
]


# The lines that Brine adds to Salt's messages: the place, the lines around it, what to do.
ADVICE = re.compile(r"\n +--> .*(?:\n *\d* \| .*)*|\n +hint: .*")


class Calls:
    """Counts the calls of Brine."""

    count = 0


CALLS = Calls()


class BrineError(CommandExecutionError, SaltInvocationError, SaltRenderError, ValueError, TypeError, KeyError):
    """A function failed."""

    def __str__(self) -> str:
        return str(self.args[0])


class BrineFileError(CommandExecutionError, SaltInvocationError, OSError):
    """A function failed for a file."""


def without_advice(value: typing.Any) -> typing.Any:
    """Returns a result without the lines that Brine adds to Salt's messages."""
    if isinstance(value, dict):
        return {key: without_advice(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_advice(item) for item in value]
    return ADVICE.sub("", value) if isinstance(value, str) else value


def install(tools: pathlib.Path) -> None:
    """Makes the tests use Brine's programs in this directory."""
    functional.Loaders = functools.partial(BrineLoaders, tools)


def written(value: typing.Any, key: str = "") -> str:
    """Returns an argument as a word of the command line that Salt's own parser reads as this value."""
    value = plain(value)
    candidates = [json.dumps(value), yaml.safe_dump(value, default_flow_style=True, width=float("inf")).strip()]
    # A text with `#` is taken as it is, quotes included.
    for word in [*candidates, value] if isinstance(value, str) else candidates:
        # A word of several lines has no key.
        if yamlify_arg(word) == value and not (key and "\n" in word):
            return f"{key}={word}" if key else word
    raise TypeError(f"a command line cannot carry {value!r}")


def plain(value: typing.Any) -> typing.Any:
    """Returns a value in types that YAML has."""
    if isinstance(value, collections.abc.Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    raise TypeError(f"a command line cannot carry a value of {type(value).__name__}")


def failure(program: subprocess.CompletedProcess) -> Exception:
    """Returns what the program's message says as an exception."""
    text = (program.stderr or program.stdout).strip()
    for kind in KINDS_OF_FAILURE:
        found = re.search(kind, text)
        if found:
            # The text of a failed call of Python ends with the function's documentation.
            text, *documentation = re.split(r"\n+Usage:", text[found.end() :])
            text = text.removesuffix(".") if documentation else text
            break
    return (BrineFileError if "No such file or directory" in text else BrineError)(text)


class Functions(collections.abc.Mapping):
    """Execution functions by name, and as attributes of their modules."""

    def __init__(self, loaders: "BrineLoaders") -> None:
        self._loaders = loaders

    @functools.cached_property
    def _names(self) -> list[str]:
        return self._loaders.call("sys.list_functions", [], {})

    def __getitem__(self, name: str) -> typing.Callable:
        if name not in self._names:
            raise KeyError(name)
        return functools.partial(self._called, name)

    def __iter__(self) -> typing.Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __getattr__(self, module: str) -> "Module":
        if module.startswith("__"):
            raise AttributeError(module)
        return Module(self, module)

    def _called(self, name: str, /, *arguments: typing.Any, **keywords: typing.Any) -> typing.Any:
        result = self._loaders.call(name, arguments, keywords)
        if name in ONE_STATE:
            return functional.StateResult(result)
        return functional.MultiStateResult(result) if name in STATES else result


class StateFunctions(Functions):
    """State functions, called by `state.single`."""

    @functools.cached_property
    def _names(self) -> list[str]:
        return self._loaders.call("sys.list_state_functions", [], {})

    def _called(self, name: str, /, *arguments: typing.Any, **keywords: typing.Any) -> typing.Any:
        return self._loaders.modules.state.single(name, *arguments, **keywords)


class Module:
    """The functions of a module."""

    def __init__(self, functions: Functions, name: str) -> None:
        self._functions, self._name = functions, name

    def __getattr__(self, function: str) -> typing.Callable:
        if function.startswith("__"):
            raise AttributeError(function)
        # Names that are words of Python have an underscore in Salt's files.
        return functools.partial(self._functions._called, f"{self._name}.{function.removesuffix('_')}")


class BrineLoaders:
    """What saltfactories gives the tests as `loaders`, with Brine behind it."""

    def __init__(self, tools: pathlib.Path, opts: dict, loaded_base_name: str | None = None) -> None:
        self._tools = tools
        self._given = copy.deepcopy(dict(opts))
        self.opts = copy.deepcopy(dict(opts))
        self.context: dict = {}
        # The markers of saltfactories add to it.
        self._reload_all_funcs: list[typing.Callable] = []
        self._configuration = pathlib.Path(opts["conf_file"])
        # Salt keeps custom modules outside of the cache that tests clear.
        written_by_test = yaml.safe_load(self._configuration.read_text(encoding="utf-8"))
        self._base = {"extension_modules": opts["extension_modules"], **written_by_test}
        self.reload_all()
        self.modules.saltutil.sync_all()

    def reset_state(self) -> None:
        self.context.clear()
        cache = pathlib.Path(self.opts["cachedir"])
        shutil.rmtree(cache, ignore_errors=True)
        cache.mkdir(exist_ok=True, parents=True)

    def reload_all(self) -> None:
        self.reset_state()
        for function in self._reload_all_funcs:
            function()
        for name in ["grains", "modules", "states", "pillar"]:
            self.__dict__.pop(name, None)
        self.opts = copy.deepcopy(self._given)

    def refresh_pillar(self) -> None:
        self.__dict__.pop("pillar", None)

    @functools.cached_property
    def modules(self) -> Functions:
        return Functions(self)

    @functools.cached_property
    def states(self) -> StateFunctions:
        return StateFunctions(self)

    @functools.cached_property
    def grains(self) -> dict:
        return self.call("grains.items", [], {})

    @functools.cached_property
    def pillar(self) -> dict:
        return self.call("pillar.items", [], {})

    def call(self, name: str, arguments: typing.Sequence, keywords: typing.Mapping) -> typing.Any:
        """Calls a function and returns its result."""
        words = [written(value) for value in arguments]
        words += [written(value, key) for key, value in keywords.items()]
        self._configure()
        command = [str(self._tools / "salt-call"), "--local", f"--config-dir={self._configuration.parent}"]
        log = self._configuration.parent / "brine.log"
        log.unlink(missing_ok=True)
        command += ["--log-level=quiet", f"--log-file={log}", "--log-file-level=warning", "--out=raw", name, *words]
        CALLS.count += 1
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=False
        )
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []:
            if " is deprecated" in line:
                warnings.warn(line.partition("[WARNING ]")[2], DeprecationWarning, stacklevel=2)
        if not done.stdout.startswith("{"):
            raise failure(done)
        return without_advice(ast.literal_eval(done.stdout)["local"])

    def _configure(self) -> None:
        """Writes the options that the test has changed into the configuration."""
        changed = {}
        for key, value in self.opts.items():
            if key not in ["grains", "pillar"] and self._given.get(key) != value:
                changed[key] = plain(value)
        text = yaml.safe_dump({**self._base, **changed}, default_flow_style=False)
        if self._configuration.read_text(encoding="utf-8") != text:
            self._configuration.write_text(text, encoding="utf-8")
