"""A Ray cluster of two nodes on this machine, and ways to lose parts of it."""

import contextlib
import os
import signal
import time

import psutil

MEMORY = 80 * 2**20
QUICK_TO_NOTICE = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 2000,
    "health_check_failure_threshold": 4,
}
ON_RAY = (
    "launch=ray",
    "agents.qwen3.resources={CPU: 1, first: 1}",
    "agents.gpt_neox.resources={CPU: 1, second: 1}",
)
"""Overrides that put an agent of the quickstart on each node."""


class TwoNodes:
    """A head with room for one agent, and a second node with room for the other."""

    def __init__(self):
        from ray.cluster_utils import Cluster

        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        self._cluster = Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 1,
                "resources": {"first": 1},
                "object_store_memory": MEMORY,
                "include_dashboard": False,
                "_system_config": QUICK_TO_NOTICE,
            },
        )
        self.environment = {"RAY_ADDRESS": self._cluster.address}
        self.add_second()

    def add_second(self):
        """Start the second node, or another in its place."""
        self._second = self._cluster.add_node(
            num_cpus=1, resources={"second": 1}, object_store_memory=MEMORY
        )

    def kill_second(self, *, is_whole=True):
        """SIGKILL every process of the second node, or its raylet alone."""
        raylet = psutil.Process(self._second.all_processes["raylet"][0].process.pid)
        below = raylet.children(recursive=True) if is_whole else []
        for process in [raylet, *below]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        self._cluster.remove_node(self._second, allow_graceful=False)

    def shutdown(self):
        """End all of it."""
        self._cluster.shutdown()


def ballot_box():
    """The process of the ballot box, once there is one."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.name() == "ray::BallotBox":
                    return process.pid
        time.sleep(0.1)
    raise AssertionError("no ballot box")
