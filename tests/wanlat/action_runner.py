"""Runs the steps of action.yml as they stand, as GitHub does: inputs, environment, the files that
steps write to, and conditions of the form `inputs.X != ''`.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

CHECKOUT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((CHECKOUT / "action.yml").read_text("utf-8"))


@dataclass
class Job:
    """A job of somebody's, in a directory; `said` is what its steps printed."""

    directory: Path
    environment: Mapping[str, str]
    said: str = ""
    skipped: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """What steps said for the page of the job."""
        path = self.directory / "step-summary.md"
        return path.read_text("utf-8") if path.exists() else ""

    def uses(self, *, without: Collection[str] = (), **given: str) -> int:
        """Run the action; return the exit code of the first step that fails, or 0.

        Steps that use other actions, and those whose id is in `without`, are skipped.
        """
        unknown = {name.replace("_", "-") for name in given} - set(ACTION["inputs"])
        assert not unknown, unknown
        inputs = {
            name: given.get(name.replace("-", "_"), of.get("default"))
            for name, of in ACTION["inputs"].items()
        }
        assert None not in inputs.values(), "an input that is required is missing"
        for step in ACTION["runs"]["steps"]:
            if "uses" in step or step.get("id") in without:
                self.skipped.append(step["name"])
            elif self._applies(step.get("if"), inputs) and (code := self._run(step, inputs)):
                return code
        return 0

    def _applies(self, condition: str | None, inputs: Mapping[str, str]) -> bool:
        if condition is None:
            return True
        found = re.fullmatch(r"inputs\.([\w-]+) != ''", condition)
        assert found, condition
        return inputs[found[1]] != ""

    def _run(self, step: Mapping[str, Any], inputs: Mapping[str, str]) -> int:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], "an input belongs into env, where it is no program"
        known = {f"inputs.{name}": value for name, value in inputs.items()}
        known |= {"github.action_path": str(CHECKOUT), "runner.temp": str(self.directory / "temp")}
        own = {
            name: re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda found: known[found[1]], value)
            for name, value in step.get("env", {}).items()
        }
        files = {"GITHUB_PATH": "path", "GITHUB_STEP_SUMMARY": "step-summary.md"}
        paths = {name: str(self.directory / file) for name, file in files.items()}
        added = (self.directory / "path").read_text() if (self.directory / "path").exists() else ""
        path = ":".join([*reversed(added.splitlines()), self.environment["PATH"]])
        (self.directory / "temp").mkdir(exist_ok=True)
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=self.directory,
            env={**self.environment, **paths, **own, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        self.said += f"=== {step['name']}\n{done.stdout}"
        return done.returncode


def environment(**changes: str) -> dict[str, str]:
    """This process's, without what is the checkout's own."""
    ours = ("WANLAT_", "PYTEST_", "PYTHON", "VIRTUAL_ENV")
    return {k: v for k, v in os.environ.items() if not k.startswith(ours)} | changes
