"""The model host: one process that owns the models of a data folder, and answers commands over a Unix socket.

::

    command -- Remote (client.py) == lines of JSON (protocol.py) == Host (server.py) -- Worker (queue.py) -- model
               a port over the socket                                               one owner, fair turns

Rules: only processes of the same user are answered, and nothing but the socket is opened. Each model has one owner, a
thread that takes requests in fair turns; what is asked at low priority (imports) comes when nobody else waits. A
command uses the host only for the models that its own settings would choose (``choice.choices``), and loads the others
itself. No text that is sent gets into a log, an error or the status.
"""
