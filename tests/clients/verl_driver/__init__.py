"""Real verl trainers and workers, driven over 48 scenarios, on fakes that log which collectors record on which device.

Run it in an environment that has verl (``tests/clients/README.md``), from the repository's root::

    PYTHONPATH=tests/clients python -m verl_driver              # both tables: bare, and with the plan
    PYTHONPATH=tests/clients python -m verl_driver --how bare --json
"""
