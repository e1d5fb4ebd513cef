"""verl's real fully async trainer and rollouter on fakes that log which collectors record on which device.

Run it in an environment that has verl (``tests/clients/README.md``), from the repository's root::

    PYTHONPATH=tests/clients python -m fully_async_driver              # the table: bare, and with the plan
    PYTHONPATH=tests/clients python -m fully_async_driver --only dynamic --log
"""
