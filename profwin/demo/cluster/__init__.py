"""The demo on a Ray cluster of its own: several raylets here, each as if it were the only one of its host.

``raylets`` is the process that has them, ``cluster`` the driver's side of it. The loops are the demo's own: a ``group``
of engine actors stands for its engine, and one of trainer actors for its trainer; only the fully async loop
(``fully_async``) is led in another way. What the actors are stands in ``actors``, how a driver asks one in ``member``.
"""
