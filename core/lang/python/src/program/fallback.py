"""The functions of the installed package `salt` that Brine lacks, through Salt's own loader (`python_fallback`)."""

import collections.abc
import threading

import brine_loader

# The options, grains and pillar for which Salt's modules stay loaded: a change makes others.
MAX_CACHED = 4


class Fallback:
    """Salt's execution and state functions. Without the package there are none."""

    def __init__(self):
        self.lock = threading.RLock()
        self.kept = {}

    def loaders(self):
        """Returns Salt's loaders for the data of the current call, by kind."""
        call = brine_loader.current_call()
        given = [call.data.get(name, {}) for name in ("opts", "grains", "pillar")]
        key = tuple(map(id, given))
        with self.lock:
            if key not in self.kept:
                while len(self.kept) >= MAX_CACHED:
                    del self.kept[next(iter(self.kept))]
                # With what the key was made of: an address is used again.
                self.kept[key] = load(*given), given
            return self.kept[key][0]

    def loader(self, kind):
        """Returns Salt's loader of a kind, or nothing."""
        with self.lock:
            loaders = self.loaders()
            if loaders and kind not in loaders:
                loaders[kind] = load_other(kind, loaders)
            return loaders.get(kind)

    def functions(self, kind, module):
        """Returns the functions of a module of Salt, or of all, by full name."""
        loader = self.loader(kind)
        if loader is None:
            return {}
        if isinstance(loader, Named):
            return {name: loader[name] for name in loader if module in (None, name.partition(".")[0])}
        if module is None:
            return {name: loader[name] for name in list(loader)}
        with self.lock:
            return {name: loader[name] for name in names_of(loader, module)}

    def engine(self, name):
        """Returns the function of an engine of Salt, or nothing."""
        loaders = self.loaders()
        if not loaders:
            return None
        opts = brine_loader.current_call().data.get("opts", {})
        import salt.loader  # pylint: disable=import-outside-toplevel

        runners = salt.loader.runner(loaders["opts"]) if opts.get("__role") == "master" else {}
        engines = salt.loader.engines(loaders["opts"], loaders["modules"], runners, loaders["utils"])
        return engines[name] if name in engines else None

    def find(self, kind, name):
        """Returns a function of Salt, or nothing."""
        loader = self.loader(kind)
        if loader is None or name not in loader:
            return None
        if kind == "states":
            low = brine_loader.current_call().data.get("low", {})
            loader.inject_globals = {
                "__low__": low, "__lowstate__": [low], "__running__": {}, "__instance_id__": low.get("__id__", ""),
                "__prerequired_states__": [], "__env__": low.get("__env__", "base"),
            }
        return loader[name]


def names_of(loader, module):
    """Returns the full names of the functions of a module, and loads no file behind the first that has some: asking the
    loader for a name that it lacks would load all of its files."""
    # pylint: disable=protected-access
    def names():
        return [name for name in list(loader._dict) if name.startswith(module + ".")]

    for file in loader._iter_files(module):
        if names():
            break
        if file not in loader.loaded_files:
            loader._load_module(file)
    return names()


def load(opts, grains, pillar):
    """Creates Salt's loaders for these options, grains and pillar."""
    try:
        import salt.config  # pylint: disable=import-outside-toplevel
        import salt.loader  # pylint: disable=import-outside-toplevel

        is_master = opts.get("__role") == "master"
        own = (salt.config.DEFAULT_MASTER_OPTS if is_master else salt.config.DEFAULT_MINION_OPTS).copy()
    except (ImportError, AttributeError):
        return {}
    own.update(opts)
    own.update(grains=grains, pillar=pillar, __role="master" if is_master else "minion")
    # Files of these directories are loaded by Brine.
    own.update(module_dirs=[], states_dirs=[], utils_dirs=[], extension_modules="")
    utils = salt.loader.utils(own)
    modules = salt.loader.minion_mods(own, utils=utils)
    states = salt.loader.states(own, modules, utils, salt.loader.serializers(own))
    return {"modules": modules, "states": states, "utils": utils, "opts": own}


class Named(collections.abc.Mapping):
    """A loader of Salt that has one function a module, by full names."""

    def __init__(self, loader, suffix):
        self.wrapped, self.suffix = loader, suffix

    def __getitem__(self, name):
        if not name.endswith(self.suffix):
            raise KeyError(name)
        return self.wrapped[name[:-len(self.suffix)]]

    def __iter__(self):
        return (name + self.suffix for name in list(self.wrapped))

    def __len__(self):
        return sum(1 for _ in self)


def load_other(kind, loaders):
    """Creates Salt's loader of a kind that few need, beside those of its functions."""
    import salt.loader  # pylint: disable=import-outside-toplevel

    opts, modules, utils = loaders["opts"], loaders["modules"], loaders["utils"]
    if kind == "beacons":
        return salt.loader.beacons(opts, modules)
    if kind == "pillar":
        return Named(salt.loader.pillars(opts, modules), ".ext_pillar")
    if kind == "tops":
        return Named(salt.loader.tops(opts), ".top")
    if kind == "returners":
        return salt.loader.returners(opts, modules)
    if kind == "runners":
        return salt.loader.runner(opts, utils=utils)
    if kind == "auth":
        return salt.loader.auth(opts)
    if kind == "sdb":
        return salt.loader.sdb(opts, modules, utils=utils)
    if kind == "output":
        # Its outputters carry the names of their modules alone.
        return Named(salt.loader.outputters(opts), ".output")
    if kind == "roster":
        return salt.loader.roster(opts, runner=salt.loader.runner(opts, utils=utils), utils=utils)
    if kind == "serializers":
        return salt.loader.serializers(opts)
    if kind == "fileserver":
        return salt.loader.fileserver(opts, None)
    if kind == "executors":
        return salt.loader.executors(opts, modules)
    if kind == "tokens":
        return salt.loader.eauth_tokens(opts)
    if kind == "cache":
        return salt.loader.cache(opts)
    return None
