"""Start and resume runs: where agents live, and what surrounds their loop."""

from corl.launch.start import Outcome, resume_run, start_run

__all__ = ["Outcome", "resume_run", "start_run"]
