"""Run as a script: a Ray cluster of two raylets, until standard input ends. Argument: a short directory for Ray.

The node ``second`` has one GPU that is not there. Prints the cluster's address.
"""

from __future__ import annotations

import sys

from ray.cluster_utils import Cluster


def main(temporary):
    """Start the cluster, wait, and stop it."""
    options = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 * 2**20}
    head = {**options, "temp_dir": temporary, "resources": {"first": 100}}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    cluster.add_node(**options, num_gpus=1, resources={"second": 100})
    print(cluster.address, flush=True)
    sys.stdin.read()
    cluster.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
