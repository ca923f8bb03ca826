"""Two agents trained by Co-RL and by two TRL trainers on the same work (`vs_trl.py`)."""
