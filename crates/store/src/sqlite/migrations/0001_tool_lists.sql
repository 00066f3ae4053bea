-- A server's id means another server in another project, so a list belongs to its configuration too.
CREATE TABLE tool_lists (
    server      TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    era         TEXT NOT NULL,
    peer        TEXT NOT NULL,
    listed_at   INTEGER,          -- milliseconds since 1970; NULL where it was never listed
    ttl_ms      INTEGER,
    skipped     TEXT NOT NULL,    -- JSON list of texts
    failed_at   INTEGER,
    failure     TEXT,
    PRIMARY KEY (server, fingerprint)
) STRICT;

CREATE TABLE listed_tools (
    server      TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    position    INTEGER NOT NULL,
    definition  TEXT NOT NULL,    -- as the server gave it
    PRIMARY KEY (server, fingerprint, position),
    FOREIGN KEY (server, fingerprint) REFERENCES tool_lists (server, fingerprint) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
