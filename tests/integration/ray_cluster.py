"""Run as a script: a Ray cluster of several raylets, until standard input ends.

Arguments: a short directory for Ray, and the names of the nodes. Each has 100 of a resource of its name; each but the
first has one GPU that is not there, or as many as ``NAME=4`` says. With ``--hosts`` before them, each is as if on a
host of its own: with a boot id and a lock directory of its own. Prints the cluster's address, then does what each line
of input asks for, and repeats the line: ``kill NAME`` kills that node's raylet, ``dead NAME`` waits until Ray takes a
killed node for dead, ``add NAME`` adds a node.
"""

from __future__ import annotations

import sys
import time

from ray.cluster_utils import Cluster


def main(temporary, *names):
    """Start the cluster, do what is asked, and stop it."""
    hosts = names[0] == "--hosts"
    # Nobody scales this cluster or reads its logs: each process that Ray does without starts it earlier.
    options = {"include_dashboard": False, "no_monitor": True, "include_log_monitor": False}
    options |= {"num_cpus": 1, "object_store_memory": 80 * 2**20}
    cluster, nodes, killed = Cluster(), {}, {}

    def add(name):
        name, _, cards = name.partition("=")
        own = {"resources": {name: 100}}
        if nodes:
            own["num_gpus"] = int(cards or 1)
        else:
            own["temp_dir"] = temporary
        if hosts:
            own["env_vars"] = {"PROFWIN_PRETEND_HOST": name}
        nodes[name] = cluster.add_node(**options, **own)

    def kill(name):
        killed[name] = nodes.pop(name)
        cluster.remove_node(killed[name], allow_graceful=False)

    def dead(name):
        number = killed[name].node_id
        while any(each["Alive"] for each in cluster.global_state.node_table() if each["NodeID"] == number):
            time.sleep(0.02)

    for name in names[hosts:]:
        add(name)
    print(cluster.address, flush=True)
    for line in sys.stdin:
        what, name = line.split()
        {"kill": kill, "dead": dead, "add": add}[what](name)
        print(line, end="", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
