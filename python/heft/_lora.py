"""Adapters (LoRA) that are merged into a model."""
from __future__ import annotations

import os

from typing import TYPE_CHECKING, Any

from ._commands import convert

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ._commands import Converted


def merge_lora(base: str | os.PathLike[str],
               adapters: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
               | Mapping[str, float], target: str | os.PathLike[str],
               **options: Any) -> Converted | None:
    """Write a model with adapters merged into its weights, in one pass and constant memory.

    adapters: a path, several in the order in which they are merged, or {path: factor}. An adapter is a
    folder of PEFT, or a file of kohya's scripts, ComfyUI or diffusers. options: those of
    heft.convert(), such as cast, quantize, dry_run, force and progress."""
    return convert(base, target, lora=adapters, **options)
