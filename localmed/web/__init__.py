"""The ward's window: server-rendered pages on a session. Pages render views of ``presentation`` and decide nothing.

Rules for every page:

- **One module a page**, with a ``router`` in ``application.ROUTERS`` and templates that extend ``layout.html``.
  It imports ``site/``, ``presentation/`` and their neighbours only.
- **One right a page**: a parameter ``visit: Asking`` (``Librarian``, ``Safety``, ``Models``, ``Accounts``, see
  ``visits.py``) signs the visitor in, checks the right and, except for GET, the form's token. Changes of
  ``visit.session`` are audited under the visitor's name. A page for everybody takes ``Anybody``.
- **Typed text goes by POST**, never into an address: histories and logs record addresses. A change ends with
  ``pages.redirect(path, notice=...)``, so that reloading repeats nothing.
- **Every sentence is a message**: ``{{ text("web.ask.title") }}``. Templates escape and neutralise the text of
  documents and people. ``| safe`` is not used.
- **JavaScript is optional**: links and forms work without it, ``localmed.js`` makes them quicker. The policy
  (``protection.py``) forbids inline scripts, inline styles and ``on...`` attributes.
- **Errors are raised**: ``failures.py`` turns a ``LocalmedError`` into a page with one line on what to do.
- Handlers are plain ``def``: they run in threads, and each request has its own session.
"""
