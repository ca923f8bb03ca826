"""Who should teach whom: error overlap, basins, pairing. Importing it imports no torch."""

from corl.diversity.intervals import Interval
from corl.diversity.overlap import Overlap, error_overlap

__all__ = ["Interval", "Overlap", "error_overlap"]
