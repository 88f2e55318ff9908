"""The installation as one value: the site, a caller's session, and every change that a session makes."""
