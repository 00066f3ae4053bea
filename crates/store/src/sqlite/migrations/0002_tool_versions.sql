-- Every definition a server ever gave for a tool, so that a change can be shown.
CREATE TABLE tool_versions (
    server     TEXT NOT NULL,
    name       TEXT NOT NULL,
    version    TEXT NOT NULL,
    definition TEXT NOT NULL,
    first_seen INTEGER NOT NULL,  -- milliseconds since 1970
    last_seen  INTEGER NOT NULL,
    PRIMARY KEY (server, name, version)
) STRICT, WITHOUT ROWID;
