"""Brine behind the daemons and command lines of saltfactories: its programs take the place of Salt's scripts.

saltfactories learns that a daemon has started from a custom engine of its own, in Python, which Brine's daemons run.
The engine imports Salt's package, so the daemons get the interpreter of the tests as `python_host`.
"""

import pathlib
import sys

import saltfactories.bases as bases
import saltfactories.manager as manager


class Calls:
    """Counts the runs of Brine's programs."""

    count = 0


CALLS = Calls()


def install(tools: pathlib.Path) -> None:
    """Makes saltfactories start the programs in this directory."""
    prepare = manager.FactoriesManager.__attrs_post_init__

    def prepared(self: manager.FactoriesManager) -> None:
        self.scripts_dir = tools
        prepare(self)

    manager.FactoriesManager.__attrs_post_init__ = prepared
    tweak = manager.FactoriesManager.final_common_config_tweaks

    def tweaked(self: manager.FactoriesManager, config: dict, role: str) -> None:
        tweak(self, config, role)
        config.setdefault("python_host", {"path": sys.executable})
        # Salt's tests expect success from tools that have done nothing.
        config.setdefault("salt_exit_status", True)

    manager.FactoriesManager.final_common_config_tweaks = tweaked
    for factory in [bases.SaltCli, bases.SaltDaemon]:
        counted(factory)


def counted(factory: type) -> None:
    command_line = factory.cmdline

    def counting(self: bases.SaltMixin, *words: str, **keywords: str) -> list[str]:
        CALLS.count += 1
        return command_line(self, *words, **keywords)

    factory.cmdline = counting
