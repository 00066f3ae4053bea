-- Members of a cluster, and which worker runs which instance of a server. All times are of the database.
CREATE TABLE members (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    address TEXT NOT NULL,
    labels TEXT NOT NULL,
    capacity BIGINT NOT NULL,
    load BIGINT NOT NULL,
    version TEXT NOT NULL,
    draining BIGINT NOT NULL,
    beat TIMESTAMPTZ NOT NULL
);
-- No two placements have the same epoch, also after a row is removed.
CREATE SEQUENCE placement_epochs;
CREATE TABLE placements (
    server TEXT NOT NULL,
    instance TEXT NOT NULL,
    worker TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    until TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (server, instance)
);
CREATE INDEX placements_by_worker ON placements (worker);
CREATE INDEX placements_by_until ON placements (until);
