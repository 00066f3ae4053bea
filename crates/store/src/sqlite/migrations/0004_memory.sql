-- What is remembered of calls. Times are microseconds since 1970, durations microseconds.
CREATE TABLE calls (
    id             INTEGER PRIMARY KEY,
    record         TEXT NOT NULL UNIQUE,
    call           TEXT NOT NULL,
    tool           TEXT NOT NULL,
    arguments      TEXT NOT NULL,     -- as they were given
    arguments_hash INTEGER NOT NULL,  -- of the canonical arguments
    unescaped      TEXT,              -- the arguments as they are searched, where they were given with \u escapes
    conversation   TEXT,
    request        TEXT,
    strategy       TEXT NOT NULL,
    candidates     TEXT NOT NULL,     -- JSON list of sources
    may_change     INTEGER NOT NULL,
    began          INTEGER NOT NULL,
    status         TEXT NOT NULL,
    owner          INTEGER NOT NULL,  -- the hub that ran it
    took           INTEGER,           -- NULL until it ended
    error_kind     TEXT,
    error          TEXT,              -- JSON, in both languages
    sources        TEXT NOT NULL,     -- JSON list of sources
    attempts       TEXT NOT NULL,     -- JSON list, see `rows`
    places         TEXT NOT NULL      -- what a filter by source looks into
) STRICT;
-- The hash is in it so that a look for earlier calls with the same arguments reads the index alone.
CREATE INDEX calls_by_tool ON calls (tool, record, arguments_hash);
CREATE INDEX calls_by_conversation ON calls (conversation, record) WHERE conversation IS NOT NULL;
CREATE INDEX calls_running ON calls (owner) WHERE status = 'running';

CREATE TABLE results (
    id     INTEGER PRIMARY KEY,       -- of the call
    began  INTEGER NOT NULL,
    bytes  INTEGER NOT NULL,
    output TEXT NOT NULL
) STRICT;

CREATE TABLE statistics (
    source    TEXT NOT NULL,
    tool      TEXT NOT NULL,
    day       INTEGER NOT NULL,       -- days since 1970
    successes INTEGER NOT NULL,
    failures  INTEGER NOT NULL,
    PRIMARY KEY (source, tool, day)
) STRICT, WITHOUT ROWID;

CREATE TABLE latencies (
    source TEXT NOT NULL,
    tool   TEXT NOT NULL,
    step   INTEGER NOT NULL,
    count  INTEGER NOT NULL,
    PRIMARY KEY (source, tool, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE last_uses (
    source       TEXT NOT NULL,
    tool         TEXT NOT NULL,
    last_success INTEGER,
    last_failure INTEGER,
    PRIMARY KEY (source, tool)
) STRICT, WITHOUT ROWID;

CREATE TABLE turns (
    key          TEXT PRIMARY KEY,
    conversation TEXT NOT NULL,
    role         TEXT NOT NULL,
    text         TEXT NOT NULL,
    at           INTEGER NOT NULL
) STRICT;
CREATE INDEX turns_by_conversation ON turns (conversation, at, key);

CREATE TABLE approvals (
    source     TEXT NOT NULL,
    tool       TEXT NOT NULL,
    version    TEXT NOT NULL,
    definition TEXT NOT NULL,         -- as it was given
    at         INTEGER NOT NULL,
    PRIMARY KEY (source, tool)
) STRICT, WITHOUT ROWID;

-- What housekeeping needs to know without counting: `result_bytes`, `kept_house_at`.
CREATE TABLE housekeeping (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
