-- State that the replicas of a hub share. Times are microseconds since 1970.
CREATE TABLE shared_state (
    kind       TEXT COLLATE "C" NOT NULL,  -- such as held-call
    id         TEXT COLLATE "C" NOT NULL,
    scope      TEXT COLLATE "C" NOT NULL,  -- the principal; empty if it belongs to the hub
    slot       TEXT COLLATE "C",           -- at most one entry of a kind is in a slot
    value      TEXT NOT NULL,              -- JSON
    revision   TEXT COLLATE "C" NOT NULL,  -- differs after each change
    removed    BIGINT NOT NULL,            -- 1 if a caller has taken it, which then deletes it
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (kind, id)
);
CREATE UNIQUE INDEX shared_state_slots ON shared_state (kind, slot) WHERE slot IS NOT NULL;
CREATE INDEX shared_state_by_scope ON shared_state (kind, scope, created_at);
CREATE INDEX shared_state_by_age ON shared_state (kind, created_at);
CREATE INDEX shared_state_by_expiry ON shared_state (expires_at);

-- Counters with a limit, such as the calls of a key on a day.
CREATE TABLE shared_counts (
    name       TEXT COLLATE "C" PRIMARY KEY,
    total      BIGINT NOT NULL,
    revision   TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX shared_counts_by_expiry ON shared_counts (expires_at);

-- The version of each part of a hub that replicas must read again when it changes.
CREATE TABLE changes (
    part    TEXT COLLATE "C" PRIMARY KEY,
    version BIGINT NOT NULL
);
