"""The model host: one process that owns the models of a data folder and serves commands over a Unix socket.

::

    command -- Remote (client.py) == lines of JSON (protocol.py) == Host (server.py) -- Worker (queue.py) -- model
               a port over the socket                                               one owner, fair turns

Only processes of the same user are answered. Each model has one owner thread that takes requests in fair turns;
low-priority requests (imports) run when nobody else waits. A command uses the host only for models that its own
settings would choose (``choice.choices``) and loads the others itself. No text that is sent is logged, reported or
counted.
"""
