-- State that the replicas of a hub share. Times are microseconds since 1970.
CREATE TABLE shared_state (
    kind       TEXT NOT NULL,  -- such as held-call
    id         TEXT NOT NULL,
    scope      TEXT NOT NULL,  -- the principal; empty if it belongs to the hub
    slot       TEXT,           -- at most one entry of a kind is in a slot
    value      TEXT NOT NULL,              -- JSON
    revision   TEXT NOT NULL,  -- differs after each change
    removed    INTEGER NOT NULL,            -- 1 if a caller has taken it, which then deletes it
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT;
CREATE UNIQUE INDEX shared_state_slots ON shared_state (kind, slot) WHERE slot IS NOT NULL;
CREATE INDEX shared_state_by_scope ON shared_state (kind, scope, created_at);
CREATE INDEX shared_state_by_age ON shared_state (kind, created_at);
CREATE INDEX shared_state_by_expiry ON shared_state (expires_at);

-- Counters with a limit, such as the calls of a key on a day.
CREATE TABLE shared_counts (
    name       TEXT PRIMARY KEY,
    total      INTEGER NOT NULL,
    revision   TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX shared_counts_by_expiry ON shared_counts (expires_at);

-- The version of each part of a hub that replicas must read again when it changes.
CREATE TABLE changes (
    part    TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) STRICT;
