"""The base of every model that is written as a YAML mapping: topologies, studies, drills."""

from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from wanlat.topologies.findings import Finding, path_text

# The context of a validation whose cross-checks run outside of it, once.
CHECKED_BY_LOADER = {"checked": "by the loader"}


class YamlModel(BaseModel):
    """A mapping in a YAML file: frozen, every key known, dumped with the keys of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)

    # Whether the cross-checks of this model include those of every model in it.
    checks_all_within: ClassVar[bool] = False

    # What to say about a key that is not one of the model's, where it has a meaning elsewhere.
    key_hints: ClassVar[dict[str, str]] = {}

    @classmethod
    def cross_checks(cls, raw: Any) -> list[Finding]:  # noqa: ARG003
        """What is wrong between the fields of a mapping, besides their types.

        `raw` is the mapping as the file has it, whose types may be wrong in part: the checks run
        all the same, so that every mistake is told in one go. Check only what has the right
        type; the types are pydantic's business. For a model made in code, `raw` is its dump:
        defaults filled in, quantities parsed. The loader calls the checks of the outermost model,
        which calls those of the models in it.
        """
        return []

    @model_validator(mode="after")
    def _holds_together(self, info: ValidationInfo) -> Self:
        if info.context is CHECKED_BY_LOADER:
            return self
        findings = self.cross_checks(self.model_dump())
        if findings:
            lines = (f"{path_text(found.path)}: {found.text}" for found in findings)
            raise PydanticCustomError(
                "cross_checks", "{text}", {"text": "\n".join(lines), "findings": findings}
            )
        return self

    def to_dict(self) -> dict[str, Any]:
        """The model as plain YAML and JSON values that load to an equal model."""
        return self.model_dump(mode="json", exclude_none=True)
