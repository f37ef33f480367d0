"""The release of Salt whose tests are run: taken from PyPI once, and kept below `target/salt-suite`."""

import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

VERSION = "3008.5"
# The files of the release that name what Salt and its tests need.
REQUIREMENTS = ["base", "crypto", "zeromq", "pytest"]
# Some mirrors of PyPI lack the release of certifi that Salt asks for, which no test needs.
ANY_RELEASE = ["certifi"]


class Unavailable(Exception):
    """The release cannot be had."""


class Release:
    """The unpacked source and an environment with the packages that it needs."""

    def __init__(self, repository: pathlib.Path) -> None:
        # Without links, which would lead out of the sandbox.
        self.directory = (repository / "target").resolve() / "salt-suite"
        self.source = self.directory / f"salt-{VERSION}"
        self.environment = self.directory / f"venv-{VERSION}"
        self.python = self.environment / "bin/python"

    def is_complete(self) -> bool:
        """Returns whether nothing has to be fetched."""
        return all((at / "complete").exists() for at in [self.source, self.environment])

    def prepare(self) -> None:
        """Fetches what is missing. What is incomplete is made again."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if not (self.source / "complete").exists():
            print(f"taking the source of Salt {VERSION} from PyPI", flush=True)
            self._unpack()
        if not (self.environment / "complete").exists():
            print(f"setting up {self.environment} from PyPI, which takes some minutes", flush=True)
            self._install()

    def _unpack(self) -> None:
        shutil.rmtree(self.source, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        run([*pip, "--no-deps", "--no-binary", "salt", "--dest", str(self.directory), f"salt=={VERSION}"])
        archive = self.directory / f"salt-{VERSION}.tar.gz"
        with tarfile.open(archive) as packed:
            packed.extractall(self.directory, filter="data")
        archive.unlink()
        (self.source / "complete").touch()

    def _install(self) -> None:
        run([sys.executable, "-m", "venv", "--clear", str(self.environment)])
        wanted = self.environment / "requirements.txt"
        wanted.write_text("\n".join(self._requirements()) + "\n")
        run([str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(wanted)])
        # Programs that the tests start import Salt from its source.
        [packages] = self.environment.glob("lib/python3*/site-packages")
        (packages / "salt.pth").write_text(f"{self.source}\n")
        (self.environment / "complete").touch()

    def _requirements(self) -> list[str]:
        lines = []
        for name in REQUIREMENTS:
            for line in (self.source / "requirements" / f"{name}.txt").read_text().splitlines():
                package = re.match(r"[\w.-]+", line)
                if package and not line.startswith("-"):
                    lines.append(package[0] if package[0] in ANY_RELEASE else line)
        return lines


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(command[:6])} ... failed: {done.stderr.strip()[-1000:]}")
