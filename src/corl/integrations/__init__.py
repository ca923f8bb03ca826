"""Co-RL inside other trainers' scripts."""
