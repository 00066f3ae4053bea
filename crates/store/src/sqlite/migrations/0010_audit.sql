-- The audit log, see `audit`. Hashes are SHA-256, times microseconds since 1970.
CREATE TABLE audit_log (
    id             INTEGER PRIMARY KEY CHECK (id = 1),
    log            BLOB NOT NULL,     -- the random id of the log
    seq            INTEGER NOT NULL,  -- of the last record
    hash           BLOB NOT NULL,     -- of the last record
    checkpoint_seq INTEGER NOT NULL,
    checkpoint_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE audit_batches (
    first_seq     INTEGER PRIMARY KEY,
    last_seq      INTEGER NOT NULL,
    first_at      INTEGER NOT NULL,
    last_at       INTEGER NOT NULL,
    previous_hash BLOB NOT NULL,
    last_hash     BLOB NOT NULL,
    principals    TEXT,              -- each between two separators; NULL if there are too many to list
    entries       BLOB NOT NULL
) STRICT;

CREATE TABLE audit_checkpoints (
    seq       INTEGER NOT NULL,
    kind      TEXT NOT NULL,         -- `progress` or `base`
    log       BLOB NOT NULL,
    hash      BLOB NOT NULL,
    at        INTEGER NOT NULL,
    key       TEXT NOT NULL,
    signature BLOB NOT NULL,
    PRIMARY KEY (seq, kind)
) STRICT;

-- Whether the end of a call enters the audit log.
ALTER TABLE calls ADD COLUMN audit INTEGER NOT NULL DEFAULT 0;
