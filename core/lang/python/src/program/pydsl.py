"""The renderer `pydsl`: `state("web").service.running().require(pkg="nginx")` becomes data of states."""

import os
import types
import uuid

import brine_renderers as renderers

REQUISITES = frozenset((
    "listen", "listen_in", "require", "require_in", "watch", "watch_in", "prereq", "prereq_in", "use", "use_in",
    "onchanges", "onchanges_in", "onfail", "onfail_in",
))


class DslError(Exception):
    """A declaration that makes no sense."""


class Document:
    """What a file has declared so far; `__pydsl__` in it."""

    def __init__(self, loader, space):
        self.loader, self.space = loader, space
        self.ids = {}
        self.extended = []
        self.includes = []
        self.options = {}
        self.order = []

    def set(self, **options):
        """Sets options: with `ordered` each state requires the one that was declared before it."""
        self.options.update(options)

    def state(self, name=None):
        """Returns the state with an id, or a new one."""
        name = name or ".%s" % uuid.uuid4()
        if name not in self.ids:
            self.ids[name] = Id(self, name)
        return self.ids[name]

    def extend(self, *functions):
        """Extends states of other files by these declarations."""
        if self.options.get("ordered"):
            raise DslError("extend() is not possible after the option 'ordered' was set")
        for function in functions:
            self.extended.append(self.ids.pop(function.module.id.name))

    def include(self, *names, **options):
        """Includes other files. One in pydsl is run at once, and its module is the result."""
        saltenv = options.get("saltenv", self.space["saltenv"])
        modules = []
        for name in names:
            found = None if options.get("delayed") else self.source(name, saltenv)
            if found is None:
                self.includes.append({saltenv: name})
                modules.append(None)
            else:
                modules.append(self.run(found[0], found[1], dict(self.space, sls=name, __sls__=name)))
        return modules[0] if len(modules) == 1 else modules

    def source(self, name, saltenv):
        """Returns the text and the path of an SLS in pydsl, or nothing for others."""
        for path in ("%s.sls" % name.replace(".", "/"), "%s/init.sls" % name.replace(".", "/")):
            try:
                text = renderers.read(self.loader, "salt://" + path, saltenv)
            except ImportError:
                continue
            return (text, path) if text.startswith("#!pydsl") else None
        return None

    def run(self, source, path, space):
        """Runs a file whose declarations become part of this document."""
        module = types.ModuleType(os.path.basename(path))
        module.__dict__.update(space)
        module.__dict__.update(
            __pydsl__=self, state=self.state, include=self.include, extend=self.extend, __file__=path,
        )
        exec(compile(source, path, "exec"), module.__dict__)
        return module

    def load_highstate(self, data):
        """Declares the states of such data."""
        for name, modules in data.items():
            for function, arguments in modules.items():
                module, _, function = function.partition(".")
                arguments = list(arguments)
                if not function:
                    function = next(one for one in arguments if isinstance(one, str))
                    arguments.remove(function)
                named = {key: value for one in arguments if isinstance(one, dict) for key, value in one.items()}
                getattr(self.state(name), module)(function, **named)

    def data(self):
        """Returns the data of all declarations."""
        data = {}
        if self.includes:
            data["include"] = self.includes
        if self.extended:
            data["extend"] = {one.name: one.described(True) for one in self.extended}
        data.update((one.name, one.described(False)) for one in self.ids.values())
        return data


class Id:
    """An id with its state modules."""

    def __init__(self, document, name):
        self.document, self.name, self.modules = document, name, {}

    def __getattr__(self, module):
        if module.startswith("__"):
            raise AttributeError(module)
        return self.modules.setdefault(module, Module(self, module))

    __getitem__ = __getattr__

    def __str__(self):
        return self.name

    def described(self, is_extension):
        """Returns the states of the id as data."""
        return {name: module.function.described(is_extension) for name, module in self.modules.items()}

    def __call__(self, check=True):
        """Executes the states now, and removes them from the file."""
        document = self.document
        for module in self.modules.values():
            function = module.function
            if document.order and function in document.order and document.order[-1] is not function:
                raise DslError("the state '%s' cannot be executed now: a later one requires it" % self.name)
            if function in document.order:
                document.order.remove(function)
            function.drop_order()
        document.ids.pop(self.name, None)
        result = document.space["__salt__"]["state.high"]({self.name: self.described(False)})
        if not isinstance(result, dict):
            raise DslError("executing '%s' failed: %s" % (self.name, "; ".join(map(str, result))))
        result = sorted(result.items(), key=lambda item: item[1].get("__run_num__", 0))
        failed = [item for item in result if check and not item[1].get("result")]
        if failed:
            raise DslError("executing '%s' failed: %s" % (self.name, failed[0][1].get("comment", "")))
        return result


class Module:
    """A state module of an id, with its one function."""

    def __init__(self, parent, name):
        self.id, self.name = parent, name
        self._function = None

    @property
    def function(self):
        """Returns the function; one without a name holds requisites."""
        if self._function is None:
            self._function = Function(self)
        return self._function

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in REQUISITES:
            return getattr(self.function, name)
        function = self.function
        if function.name not in (None, name):
            message = "the id '%s' has two functions of %s: %s and %s"
            raise DslError(message % (self.id, self.name, function.name, name))
        function.name = name
        return function

    def __call__(self, function, *args, **kwargs):
        return getattr(self, function)(*args, **kwargs)

    def __str__(self):
        return self.name


class Function:
    """A state function with its arguments."""

    def __init__(self, module):
        self.module, self.name, self.arguments = module, None, []
        self.ordered = None
        document = module.id.document
        if document.options.get("ordered"):
            if document.order:
                before = document.order[-1].module
                self.ordered = {"require": [{before.name: before.id.name}]}
                self.arguments.append(self.ordered)
            document.order.append(self)

    def drop_order(self):
        """Removes the requisite of the order."""
        if self.ordered is not None:
            self.arguments.remove(self.ordered)
            self.ordered = None

    def __call__(self, *args, **kwargs):
        if self.module.name == "cmd" and self.name in ("call", "wait_call") and args and callable(args[0]):
            name = getattr(args[0], "__name__", str(args[0]))
            args, kwargs = (name,), {"func": args[0], "args": list(args[1:]), "kws": kwargs}
        for index, value in enumerate(args):
            if callable(value):
                raise DslError("a Python function cannot be an argument of a state: write a state module")
            self.arguments.append({"name": value} if index == 0 else value)
        self.arguments.extend({key: value} for key, value in kwargs.items())
        return self

    def __getattr__(self, name):
        if name not in REQUISITES:
            raise AttributeError(name)

        def requisite(*modules, **named):
            pairs = [(module.name, module.id.name) for module in modules] + list(named.items())
            self.arguments.extend({name: [{module: str(reference)}]} for module, reference in pairs)
            return self

        return requisite

    def described(self, is_extension):
        """Returns the function as data; only an extension may have no name."""
        if self.name is None and not is_extension:
            raise DslError("the id '%s' has no function of %s" % (self.module.id, self.module.name))
        return ([] if self.name is None else [self.name]) + self.arguments


def render(loader, source, space, path):
    """Runs a file and returns the data of its states."""
    document = Document(loader, space)
    document.run(source, path, space)
    return document.data()
