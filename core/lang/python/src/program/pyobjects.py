"""The renderer `pyobjects`: `with Pkg.installed("nginx"): Service.running("nginx")` becomes data of states."""

import re

import brine_renderers as renderers

ONE_WAY = ("listen", "onchanges", "onfail", "require", "watch", "use", "prereq")
REQUISITES = frozenset(ONE_WAY) | {"%s_in" % name for name in ONE_WAY}
FROM = re.compile(r"^\s*from\s+(salt://\S+)\s+import\s+(.+?)\s*$")
IMPORT = re.compile(r"^\s*import\s+(salt://\S+)\s*$")


class Document:
    """What a file has declared so far."""

    def __init__(self):
        self.states = {}
        self.extended = {}
        self.includes = []
        self.around = []
        self.is_active = True

    def add(self, state, is_extension):
        """Adds a state, with the requisites of the blocks around it."""
        if not self.is_active:
            return
        known = (self.extended if is_extension else self.states).setdefault(state.id, {})
        if state.function in known:
            raise ValueError("the state '%s' has %s twice" % (state.id, state.function))
        for requisite in self.around:
            state.arguments.setdefault(requisite.kind, []).append(requisite)
        known[state.function] = state

    def include(self, *names):
        """Includes other SLS files."""
        if self.is_active:
            self.includes.extend(names)

    def data(self):
        """Returns the data of all declarations."""
        data = {name: described(states) for name, states in self.states.items()}
        if self.includes:
            data["include"] = self.includes
        if self.extended:
            data["extend"] = {name: described(states) for name, states in self.extended.items()}
        return data


def described(states):
    """Returns the data of the states of an id."""
    return {function: state.described() for function, state in states.items()}


class Extended:
    """The id of a state of another file."""

    def __init__(self, name):
        self.name = name


class Requisite:
    """A state that others depend on, alone or around a block."""

    def __init__(self, document, kind, module, name):
        self.document, self.kind, self.module, self.name = document, kind, module, name

    def described(self):
        """Returns the requisite as data."""
        return {self.module: self.name}

    def __enter__(self):
        if self.document.is_active:
            self.document.around.append(self)
        return self

    def __exit__(self, *_error):
        if self.document.is_active:
            self.document.around.pop()


class State:
    """A declared state; as a block, what is declared in it requires it."""

    def __init__(self, document, module, function, name, arguments):
        is_extension = isinstance(name, Extended)
        self.id = name.name if is_extension else name
        self.function = "%s.%s" % (module, function)
        self.arguments = {
            key: as_list(value) if key in REQUISITES else value for key, value in arguments.items()
        }
        self.requisite = Requisite(document, "require", module, self.id)
        document.add(self, is_extension)

    def described(self):
        """Returns the arguments as data, sorted by name."""
        def plain(key, value):
            if key not in REQUISITES:
                return value
            return [one.described() if isinstance(one, Requisite) else one for one in value]

        return [{key: plain(key, self.arguments[key])} for key in sorted(self.arguments)]

    def __enter__(self):
        self.requisite.__enter__()
        return self

    def __exit__(self, *error):
        self.requisite.__exit__(*error)


def as_list(value):
    """Returns a single requisite as a list of one."""
    if isinstance(value, State):
        return [value.requisite]
    if isinstance(value, (Requisite, str, dict)):
        return [value]
    return [one.requisite if isinstance(one, State) else one for one in value]


class StateModule:
    """The functions of a state module, such as `File.managed`; called, it names a state: `File("/etc/motd")`."""

    def __init__(self, document, module, functions):
        self._document, self._module, self._functions = document, module, functions

    def __call__(self, name, requisite="require"):
        return Requisite(self._document, requisite, self._module, name)

    def __getattr__(self, function):
        if function not in self._functions:
            raise AttributeError("the state module '%s' has no function '%s'" % (self._module, function))

        def declare(state_id, /, **arguments):
            return State(self._document, self._module, function, state_id, arguments)

        return declare


def map_class(space):
    """Returns the class `Map`, whose subclasses choose their attributes by grains."""
    class Chooser(type):
        """Sets the attributes when a subclass is made."""

        def __init__(cls, name, bases, attributes):
            super().__init__(name, bases, attributes)
            choices = []
            for label, choice in attributes.items():
                if isinstance(choice, type) and not label.startswith("_"):
                    values = {key: value for key, value in vars(choice).items() if not key.startswith("_")}
                    grain = getattr(choice, "__grain__", "os_family")
                    choices.append((grain, getattr(choice, "__match__", label), values))
            order = list(attributes.get("priority", ()))
            # What has no priority comes last, so it takes precedence.
            choices.sort(key=lambda choice: order.index(choice[0]) if choice[0] in order else len(order))
            chosen = {}
            for grain, value, values in choices:
                if space["__grains__"].get(grain) == value:
                    chosen.update(values)
            if "merge" in attributes:
                chosen.update(space["__salt__"]["pillar.get"](attributes["merge"]) or {})
            for key, value in chosen.items():
                setattr(cls, key, value)

    return Chooser("Map", (), {})


class Imported:
    """A file that was imported by `import salt://...`."""

    def __init__(self, values):
        self.__dict__.update(values)


def render(loader, source, space, path):
    """Runs a file and returns the data of its states."""
    document = Document()
    salt = space["__salt__"]
    space = dict(space)
    space.update({
        "include": document.include, "extend": Extended, "Map": map_class(space), "salt": salt,
        "pillar": salt["pillar.get"], "grains": salt["grains.get"], "mine": salt["mine.get"],
        "config": salt["config.get"],
    })
    names = list(loader.spaces["states"])
    if loader.fallback is not None:
        names.extend(loader.fallback.functions("states", None))
    modules = {}
    for name in names:
        module, _, function = name.partition(".")
        modules.setdefault(module, set()).add(function)
    for module, functions in modules.items():
        label = "".join(part.capitalize() for part in module.split("_"))
        space[label] = StateModule(document, module, functions)
    document.is_active = False
    source, space = with_imports(loader, source, space)
    document.is_active = True
    exec(compile(source, path, "exec"), space)
    return document.data()


def with_imports(loader, source, space, depth=0):
    """Carries out the imports of `salt://` files; returns the source without them, and the variables with theirs."""
    if depth > 20:
        raise ImportError("the imports of salt:// files are nested more than 20 times")
    space, lines = dict(space), []
    for line in source.split("\n"):
        found = FROM.match(line) or IMPORT.match(line)
        if found is None:
            lines.append(line)
            continue
        lines.append("")
        url = found.group(1)
        text = renderers.read(loader, url, space["saltenv"])
        text, values = with_imports(loader, text, space, depth + 1)
        exec(compile(text, url, "exec"), values)
        if found.re is IMPORT:
            label = url.rpartition("/")[2].rpartition(".")[0] or url.rpartition("/")[2]
            space[label] = Imported(values)
            continue
        for name in found.group(2).split(","):
            name, _, alias = (part.strip() for part in name.partition(" as "))
            if name not in values:
                raise ImportError("'%s' is not in %s" % (name, url))
            space[alias or name] = values[name]
    return "\n".join(lines), space
