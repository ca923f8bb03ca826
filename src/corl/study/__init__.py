"""Studies: methods x settings x seeds over one base recipe, measured alike.

A study only calls what `corl train` and `corl resume` call; each cell is an ordinary run. Layout
and file formats: docs/study.md.
"""

from corl.study.config import StudyConfig, load_study, parse_study

__all__ = ["StudyConfig", "load_study", "parse_study"]
