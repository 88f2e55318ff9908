"""Migrations of ``site.sqlite``, numbered as in ``migrations.py``. Rows that give rights have checksums."""

from __future__ import annotations

from collections.abc import Sequence

from localmed.library.journal import TABLE


def _with_checksums(table: str, key: str, others: Sequence[str], unsummed: Sequence[str] = ()) -> str:
    """Return SQL that adds checksums of these columns to ``table``, and the view ``sound_...``, which fails on altered
    rows.

    The check is in the columns, not in a condition, where SQLite may substitute a constant first. Updates of an altered
    row fail too, so that its new checksum cannot hide the alteration.
    """
    columns = ", ".join((key, *others))
    new, old = (columns_of.replace(", ", f", {side}.") for side, columns_of in (("NEW", columns), ("OLD", columns)))
    store = f"UPDATE {table} SET sum = checksum(NEW.{new}) WHERE {key} = NEW.{key}"  # noqa: S608  (names of ours)
    shown = ", ".join([key, *unsummed, *(f"iif(sound(sum, {columns}), {name}, NULL) AS {name}" for name in others)])
    return f"""
    ALTER TABLE {table} ADD COLUMN sum INTEGER;
    UPDATE {table} SET sum = checksum({columns});
    CREATE TRIGGER {table}_made AFTER INSERT ON {table} BEGIN {store}; END;
    CREATE TRIGGER {table}_compared BEFORE UPDATE OF {columns} ON {table} BEGIN SELECT sound(OLD.sum, OLD.{old}); END;
    CREATE TRIGGER {table}_changed AFTER UPDATE OF {columns} ON {table} BEGIN {store}; END;
    CREATE VIEW sound_{table} AS SELECT {shown} FROM {table};
    """  # noqa: S608


STATE: tuple[str, ...] = (
    """
    CREATE TABLE imports (
        id INTEGER PRIMARY KEY, started TEXT NOT NULL, finished TEXT NOT NULL DEFAULT '', collection TEXT NOT NULL,
        outcome TEXT NOT NULL DEFAULT 'interrupted', generation INTEGER NOT NULL DEFAULT 0,
        counts TEXT NOT NULL DEFAULT '{}'
    );
    CREATE TABLE quarantine (
        collection TEXT NOT NULL, path TEXT NOT NULL, place TEXT NOT NULL, sha256 TEXT NOT NULL, recipe TEXT NOT NULL,
        reason TEXT NOT NULL, time TEXT NOT NULL,
        PRIMARY KEY (collection, path, place)
    );
    """,
    """
    CREATE TABLE accounts (
        user TEXT PRIMARY KEY, role TEXT NOT NULL, groups TEXT NOT NULL DEFAULT '[]', source TEXT NOT NULL,
        password TEXT NOT NULL DEFAULT '', disabled INTEGER NOT NULL DEFAULT 0, created TEXT NOT NULL,
        failures INTEGER NOT NULL DEFAULT 0, locked_until REAL NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE TABLE logins (
        token TEXT PRIMARY KEY, user TEXT NOT NULL, created REAL NOT NULL, seen REAL NOT NULL, form TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX logins_user ON logins (user);
    CREATE TABLE first_code (only INTEGER PRIMARY KEY CHECK (only = 1), digest TEXT NOT NULL, wrong INTEGER NOT NULL);
    CREATE TABLE answers (
        id TEXT PRIMARY KEY, user TEXT NOT NULL, login TEXT NOT NULL, time REAL NOT NULL, workflow TEXT NOT NULL,
        sealed BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX answers_user ON answers (user, time);
    CREATE TABLE cited (
        document TEXT NOT NULL, answer TEXT NOT NULL, PRIMARY KEY (document, answer)
    ) WITHOUT ROWID;
    CREATE TABLE feedback (
        answer TEXT NOT NULL, user TEXT NOT NULL, time REAL NOT NULL, verdict TEXT NOT NULL, sealed BLOB NOT NULL,
        PRIMARY KEY (answer, user)
    ) WITHOUT ROWID;
    CREATE TABLE jobs (
        id TEXT PRIMARY KEY, kind TEXT NOT NULL, user TEXT NOT NULL, started REAL NOT NULL, seen REAL NOT NULL,
        done REAL NOT NULL DEFAULT 0, total REAL NOT NULL DEFAULT 0, name TEXT NOT NULL DEFAULT '',
        cancelled INTEGER NOT NULL DEFAULT 0, outcome TEXT NOT NULL DEFAULT ''
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE uploads (
        id TEXT PRIMARY KEY, collection TEXT NOT NULL, name TEXT NOT NULL, bytes INTEGER NOT NULL, user TEXT NOT NULL,
        time REAL NOT NULL, look TEXT NOT NULL DEFAULT '', reads INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE TABLE stops (
        kind TEXT NOT NULL, name TEXT NOT NULL, reason TEXT NOT NULL, user TEXT NOT NULL, time TEXT NOT NULL,
        PRIMARY KEY (kind, name)
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE tokens (
        digest TEXT PRIMARY KEY, id TEXT NOT NULL UNIQUE, user TEXT NOT NULL, name TEXT NOT NULL, created REAL NOT NULL,
        expires REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX tokens_user ON tokens (user);
    """,
    """
    CREATE TABLE holds (
        collection TEXT NOT NULL, path TEXT NOT NULL, sha256 TEXT NOT NULL, reason TEXT NOT NULL, user TEXT NOT NULL,
        time TEXT NOT NULL, PRIMARY KEY (collection, path, sha256)
    ) WITHOUT ROWID;
    CREATE TABLE refreshes (
        id INTEGER PRIMARY KEY, started TEXT NOT NULL, finished TEXT NOT NULL DEFAULT '',
        outcome TEXT NOT NULL DEFAULT 'interrupted', report TEXT NOT NULL DEFAULT ''
    );
    CREATE TABLE alerts (kind TEXT PRIMARY KEY, time TEXT NOT NULL, text TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE accepted (
        canary TEXT PRIMARY KEY, reason TEXT NOT NULL, user TEXT NOT NULL, time TEXT NOT NULL
    ) WITHOUT ROWID;
    """,
    """
    ALTER TABLE accounts ADD COLUMN subject TEXT NOT NULL DEFAULT '';
    ALTER TABLE accounts ADD COLUMN signed_in REAL NOT NULL DEFAULT 0;
    CREATE TABLE sign_ons (
        state TEXT PRIMARY KEY, browser TEXT NOT NULL, nonce TEXT NOT NULL, verifier TEXT NOT NULL,
        callback TEXT NOT NULL, path TEXT NOT NULL, begun REAL NOT NULL
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE tries (
        user TEXT NOT NULL, address TEXT NOT NULL, count INTEGER NOT NULL, until REAL NOT NULL,
        PRIMARY KEY (user, address)
    ) WITHOUT ROWID;
    ALTER TABLE accounts DROP COLUMN failures;
    ALTER TABLE accounts DROP COLUMN locked_until;
    """,
    """
    CREATE TABLE stops_sum (only INTEGER PRIMARY KEY CHECK (only = 1), sum INTEGER NOT NULL);
    CREATE VIEW stops_now AS SELECT checksum(coalesce((SELECT group_concat(line) FROM (
        SELECT json_array(kind, name, reason, user, time) AS line FROM stops ORDER BY kind, name
    )), '')) AS sum;
    INSERT INTO stops_sum SELECT 1, sum FROM stops_now;
    CREATE TRIGGER stops_compared BEFORE INSERT ON stops BEGIN
        SELECT RAISE(ABORT, 'not as stored') WHERE (SELECT sum FROM stops_sum) IS NOT (SELECT sum FROM stops_now);
    END;
    CREATE TRIGGER stops_kept BEFORE DELETE ON stops BEGIN
        SELECT RAISE(ABORT, 'not as stored') WHERE (SELECT sum FROM stops_sum) IS NOT (SELECT sum FROM stops_now);
    END;
    CREATE TRIGGER stops_made AFTER INSERT ON stops BEGIN
        UPDATE stops_sum SET sum = (SELECT sum FROM stops_now);
    END;
    CREATE TRIGGER stops_lifted AFTER DELETE ON stops BEGIN
        UPDATE stops_sum SET sum = (SELECT sum FROM stops_now);
    END;
    """,
    _with_checksums(
        "accounts", "user", ("role", "groups", "source", "password", "disabled", "subject"), ("signed_in",)
    ),
    _with_checksums("logins", "token", ("user", "created", "form"), ("seen",)),
    _with_checksums("tokens", "digest", ("id", "user", "expires"), ("name", "created")),
    """
    ALTER TABLE stops_sum ADD COLUMN changes INTEGER NOT NULL DEFAULT 0;
    CREATE TRIGGER stops_counted AFTER INSERT ON stops BEGIN UPDATE stops_sum SET changes = changes + 1; END;
    CREATE TRIGGER stops_counted_down AFTER DELETE ON stops BEGIN UPDATE stops_sum SET changes = changes + 1; END;
    """,
    """
    CREATE TABLE accounts_sum (only INTEGER PRIMARY KEY CHECK (only = 1), changes INTEGER NOT NULL);
    INSERT INTO accounts_sum VALUES (1, 0);
    CREATE TRIGGER accounts_counted_made AFTER INSERT ON accounts BEGIN
        UPDATE accounts_sum SET changes = changes + 1;
    END;
    CREATE TRIGGER accounts_counted_gone AFTER DELETE ON accounts BEGIN
        UPDATE accounts_sum SET changes = changes + 1;
    END;
    CREATE TRIGGER accounts_counted AFTER UPDATE OF user, role, groups, source, password, disabled, subject ON accounts
    BEGIN UPDATE accounts_sum SET changes = changes + 1; END;
    """,
    """
    CREATE TABLE reviews (
        id TEXT PRIMARY KEY, user TEXT NOT NULL, time REAL NOT NULL, reviewers TEXT NOT NULL,
        closed INTEGER NOT NULL DEFAULT 0, sealed BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE review_ratings (
        review TEXT NOT NULL, reviewer TEXT NOT NULL, code TEXT NOT NULL, dimension TEXT NOT NULL,
        value INTEGER NOT NULL, PRIMARY KEY (review, code, dimension)
    ) WITHOUT ROWID;
    """,
    """
    ALTER TABLE jobs ADD COLUMN back TEXT NOT NULL DEFAULT '/';
    ALTER TABLE jobs ADD COLUMN same TEXT NOT NULL DEFAULT '';
    """,
    """
    CREATE TABLE remarks (
        passage TEXT PRIMARY KEY, document TEXT NOT NULL, text TEXT NOT NULL, planted TEXT NOT NULL,
        off INTEGER NOT NULL, note TEXT NOT NULL, user TEXT NOT NULL, time TEXT NOT NULL
    ) WITHOUT ROWID;
    """,
    _with_checksums("remarks", "passage", ("document", "text", "planted", "off", "note"), ("user", "time")),
    "ALTER TABLE accounts ADD COLUMN temporary INTEGER NOT NULL DEFAULT 0",
    f"""
    DROP TRIGGER accounts_counted_made;
    DROP TRIGGER accounts_counted_gone;
    DROP TRIGGER accounts_counted;
    DROP TABLE accounts_sum;
    DROP TABLE stops;
    DROP VIEW stops_now;
    DROP TABLE stops_sum;
    {TABLE}
    """,
    """
    ALTER TABLE feedback ADD COLUMN seen_by TEXT NOT NULL DEFAULT '';
    ALTER TABLE feedback ADD COLUMN seen REAL NOT NULL DEFAULT 0;
    """,
    "ALTER TABLE uploads ADD COLUMN proposed TEXT NOT NULL DEFAULT '{}'",
    "DROP TABLE imports",
)
BEFORE_JOURNAL = len(STATE) - 4  # the last schema of ``state.sqlite`` (see ``older.py``)
