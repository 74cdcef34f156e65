"""What pyproject.toml cannot say of a wheel: it holds three programs, built by cargo.

WANLAT_TARGET names another machine, and the oldest glibc that it may have, as cargo-zigbuild does:
x86_64-unknown-linux-gnu.2.28. Such a wheel is tagged manylinux_2_28_x86_64.
"""

import os
import shutil
import subprocess
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

PROGRAMS = ("wire", "oneshot", "quorum")
TRIPLE, _, GLIBC = os.environ.get("WANLAT_TARGET", "").partition(".")
SHARE = Path("share")  # made by `make share`


class Build(build_py):
    """The packages, and in `wanlat/bin` the programs. An editable install has cargo's own."""

    def run(self) -> None:
        """Copy the packages, build the programs, copy these."""
        super().run()
        if self.editable_mode:
            return
        build = ["zigbuild", "--target", f"{TRIPLE}.{GLIBC}"] if TRIPLE else ["build"]
        subprocess.run(["cargo", *build, "--release", "--locked"], check=True)
        target = Path(os.environ.get("CARGO_TARGET_DIR", "target"), TRIPLE)
        directory = Path(self.build_lib, "wanlat", "bin")
        directory.mkdir(parents=True, exist_ok=True)
        for name in PROGRAMS:
            shutil.copy(target / "release" / name, directory / name)


class Wheel(bdist_wheel):
    """A wheel for any Python 3 on one kind of machine."""

    def finalize_options(self) -> None:
        """Say that it is of one platform."""
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self) -> tuple[str, str, str]:
        """Return its tag: of the platform, not of one version of Python."""
        machine, glibc = TRIPLE.split("-")[0], GLIBC.replace(".", "_")
        return ("py3", "none", f"manylinux_{glibc}_{machine}" if TRIPLE else super().get_tag()[2])


class Binary(Distribution):
    """Installed where packages of one platform belong."""

    def has_ext_modules(self) -> bool:
        """Tell that it is of one platform."""
        return True


shared = [path for path in SHARE.rglob("*") if path.is_file()]
setup(
    cmdclass={"build_py": Build, "bdist_wheel": Wheel},
    distclass=Binary,
    data_files=[(str(path.parent), [str(path)]) for path in shared],
)
