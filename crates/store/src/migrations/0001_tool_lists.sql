CREATE TABLE tool_lists (
    server      TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    era         TEXT NOT NULL,
    peer        TEXT NOT NULL,
    listed_at   INTEGER,          -- milliseconds since 1970; NULL where it was never listed
    ttl_ms      INTEGER,
    skipped     TEXT NOT NULL,    -- JSON list of texts
    failed_at   INTEGER,
    failure     TEXT
) STRICT;

CREATE TABLE listed_tools (
    server     TEXT NOT NULL REFERENCES tool_lists (server) ON DELETE CASCADE,
    position   INTEGER NOT NULL,
    definition TEXT NOT NULL,     -- as the server gave it
    PRIMARY KEY (server, position)
) STRICT, WITHOUT ROWID;
