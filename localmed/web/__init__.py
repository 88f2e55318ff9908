"""The ward's window: server-rendered pages on a session. It renders views of ``presentation`` and decides nothing.

Rules, for every page:

- **One module a page**, with a ``router`` that ``application.ROUTERS`` lists and templates of its own that extend
  ``layout.html``. What it can do is in ``Session``, its neighbours in ``site/`` and
  ``presentation/``; nothing else is imported.
- **A right a page**: a parameter ``visit: Asking`` (``Librarian``, ``Safety``, ``Models``, ``Accounts``, see
  ``visits.py``) signs the visitor in, checks the right, and for anything but GET the form's token.
  ``visit.session`` is the visitor's; its changes are audited as theirs. A page for everybody takes ``Anybody``.
- **What people type goes by POST**, never into an address: addresses stand in histories and logs. A change answers with
  ``pages.redirect(path, notice=...)``, so that reloading repeats nothing.
- **Every sentence is a message**: ``{{ text("web.ask.title") }}`` in a template. Text of documents and people is filled
  in as it is: the templates escape and neutralise it. ``| safe`` is not used.
- **Without JavaScript first**: a link or a form does the work, ``localmed.js`` makes it quicker. No inline script or
  style, no ``on...`` attribute: the policy (``protection.py``) forbids them.
- **Errors are raised**: any ``LocalmedError`` becomes a page of one line with what to do (``failures.py``).
- Handlers are plain ``def``: they run in threads, each request has a session of its own.
"""
