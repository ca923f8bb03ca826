"""A Ray cluster of several nodes on this machine, and who of it to kill."""

import contextlib
import os
import signal
import time

import psutil

QUICK_TO_NOTICE = {
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 2000,
    "health_check_failure_threshold": 3,
}


class TwoNodes:
    """A head with room for `left`'s agent, and a second node with room for `right`'s."""

    def __init__(self):
        from ray.cluster_utils import Cluster

        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        self.cluster = Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 1,
                "resources": {"left": 1},
                "include_dashboard": False,
                "_system_config": QUICK_TO_NOTICE,
                "object_store_memory": 80 * 2**20,
            },
        )
        self.second = None
        self.add_second()

    @property
    def address(self):
        return self.cluster.address

    def add_second(self):
        """Start the second node, or another in its place."""
        self.second = self.cluster.add_node(
            num_cpus=1, resources={"right": 1}, object_store_memory=80 * 2**20
        )

    def kill_second(self):
        """What a power cut does: every process of the node is gone at once."""
        raylet = psutil.Process(self.second.all_processes["raylet"][0].process.pid)
        for process in [raylet, *raylet.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        self.cluster.remove_node(self.second, allow_graceful=False)

    def actor_pid(self, kind):
        """The process of the newest actor whose name begins so: agent-NAME or ballots."""
        title = {"ballots": "ray::BallotBox"}.get(kind, "ray::_AgentActor")
        return [p.pid for p in psutil.process_iter() if p.name().startswith(title)]

    def shutdown(self):
        self.cluster.shutdown()


if __name__ == "__main__":
    two = TwoNodes()
    print(two.address, flush=True)
    try:
        while True:
            time.sleep(1)
    except KeyboardInterrupt:
        two.shutdown()
