"""The formats that are made from the report document alone, by name; each module renders one and computes nothing."""

from __future__ import annotations

from collections.abc import Mapping

from . import github, junit, markdown, prometheus, sarif
from .setting import Renderer

RENDERERS: Mapping[str, Renderer] = {
    "junit": junit.render,
    "sarif": sarif.render,
    "github": github.render,
    "markdown": markdown.render,
    "prometheus": prometheus.render,
}
