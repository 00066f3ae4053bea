-- Times are microseconds since 1970 (milliseconds in the tables of tool lists), durations microseconds. Names are
-- compared byte by byte, so that every server sorts them alike.
CREATE TABLE tool_lists (
    server      TEXT COLLATE "C" NOT NULL,
    fingerprint TEXT COLLATE "C" NOT NULL,
    era         TEXT NOT NULL,
    peer        TEXT NOT NULL,
    listed_at   BIGINT,
    ttl_ms      BIGINT,
    skipped     TEXT NOT NULL,    -- JSON list of texts
    failed_at   BIGINT,
    failure     TEXT,             -- JSON
    tools       TEXT[] NOT NULL,  -- as the server gave them
    PRIMARY KEY (server, fingerprint)
);

CREATE TABLE tool_versions (
    server     TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    version    TEXT COLLATE "C" NOT NULL,
    definition TEXT NOT NULL,
    first_seen BIGINT NOT NULL,
    last_seen  BIGINT NOT NULL,
    PRIMARY KEY (server, name, version)
);

CREATE TABLE calls (
    record         TEXT COLLATE "C" PRIMARY KEY,
    call           TEXT NOT NULL,
    tool           TEXT COLLATE "C" NOT NULL,
    arguments      TEXT NOT NULL,    -- as they were given
    arguments_hash BIGINT NOT NULL,  -- of the canonical arguments
    unescaped      TEXT,             -- the arguments as they are searched, where they were given with \u escapes
    conversation   TEXT COLLATE "C",
    request        TEXT,
    strategy       TEXT NOT NULL,
    candidates     TEXT NOT NULL,    -- JSON list of sources
    may_change     BIGINT NOT NULL,
    began          BIGINT NOT NULL,
    owner          BIGINT NOT NULL,  -- the hub that ran it
    status         TEXT NOT NULL,
    took           BIGINT,           -- NULL until it ended
    error_kind     TEXT,
    error          TEXT,             -- JSON, in both languages
    sources        TEXT NOT NULL,    -- JSON list of sources
    attempts       TEXT NOT NULL,    -- JSON list, see `rows`
    places         TEXT NOT NULL     -- what a filter by source looks into
);
CREATE INDEX calls_by_tool ON calls (tool, record, arguments_hash);
CREATE INDEX calls_by_conversation ON calls (conversation, record) WHERE conversation IS NOT NULL;
CREATE INDEX calls_running ON calls (owner) WHERE status = 'running';

CREATE TABLE results (
    record TEXT COLLATE "C" PRIMARY KEY,
    began  BIGINT NOT NULL,
    bytes  BIGINT NOT NULL,
    output TEXT NOT NULL
);

CREATE TABLE statistics (
    source    TEXT COLLATE "C" NOT NULL,
    tool      TEXT COLLATE "C" NOT NULL,
    day       BIGINT NOT NULL,       -- days since 1970
    successes BIGINT NOT NULL,
    failures  BIGINT NOT NULL,
    PRIMARY KEY (source, tool, day)
);

CREATE TABLE latencies (
    source TEXT COLLATE "C" NOT NULL,
    tool   TEXT COLLATE "C" NOT NULL,
    step   BIGINT NOT NULL,
    count  BIGINT NOT NULL,
    PRIMARY KEY (source, tool, step)
);

CREATE TABLE last_uses (
    source       TEXT COLLATE "C" NOT NULL,
    tool         TEXT COLLATE "C" NOT NULL,
    last_success BIGINT,
    last_failure BIGINT,
    PRIMARY KEY (source, tool)
);

CREATE TABLE turns (
    key          TEXT COLLATE "C" PRIMARY KEY,
    conversation TEXT COLLATE "C" NOT NULL,
    role         TEXT NOT NULL,
    text         TEXT NOT NULL,
    at           BIGINT NOT NULL
);
CREATE INDEX turns_by_conversation ON turns (conversation, at, key);

CREATE TABLE approvals (
    source     TEXT COLLATE "C" NOT NULL,
    tool       TEXT COLLATE "C" NOT NULL,
    version    TEXT NOT NULL,
    definition TEXT NOT NULL,        -- as it was given
    at         BIGINT NOT NULL,
    PRIMARY KEY (source, tool)
);

CREATE TABLE housekeeping (
    name  TEXT PRIMARY KEY,
    value BIGINT NOT NULL
);
