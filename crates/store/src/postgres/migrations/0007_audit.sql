-- The audit log, see `audit`. Hashes are SHA-256, times microseconds since 1970.
CREATE TABLE audit_log (
    id             INTEGER PRIMARY KEY CHECK (id = 1),
    log            BYTEA NOT NULL,     -- the random id of the log
    seq            BIGINT NOT NULL,  -- of the last record
    hash           BYTEA NOT NULL,     -- of the last record
    checkpoint_seq BIGINT NOT NULL,
    checkpoint_at  BIGINT NOT NULL
);

CREATE TABLE audit_batches (
    first_seq     BIGINT PRIMARY KEY,
    last_seq      BIGINT NOT NULL,
    first_at      BIGINT NOT NULL,
    last_at       BIGINT NOT NULL,
    previous_hash BYTEA NOT NULL,
    last_hash     BYTEA NOT NULL,
    principals    TEXT,              -- each between two separators; NULL if there are too many to list
    entries       BYTEA NOT NULL
);

CREATE TABLE audit_checkpoints (
    seq       BIGINT NOT NULL,
    kind      TEXT NOT NULL,         -- `progress` or `base`
    log       BYTEA NOT NULL,
    hash      BYTEA NOT NULL,
    at        BIGINT NOT NULL,
    key       TEXT NOT NULL,
    signature BYTEA NOT NULL,
    PRIMARY KEY (seq, kind)
);

-- Whether the end of a call enters the audit log.
ALTER TABLE calls ADD COLUMN audit BIGINT NOT NULL DEFAULT 0;

-- Events that were appended lately: after a broken connection it is unknown whether an event was.
CREATE TABLE audit_keys (
    key TEXT COLLATE "C" PRIMARY KEY,
    at  BIGINT NOT NULL
);
