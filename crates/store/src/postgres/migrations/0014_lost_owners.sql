-- Stores that hold no advisory lock, since when that was noticed, and under which start of the server. A store that returns
-- removes its row; one that is closed leaves a row that says so. All times are of the database.
CREATE TABLE lost_owners (
    id BIGINT PRIMARY KEY,
    since TIMESTAMPTZ NOT NULL,
    server TIMESTAMPTZ NOT NULL,
    closed BOOLEAN NOT NULL DEFAULT FALSE
);
CREATE INDEX lost_owners_by_age ON lost_owners (since);
-- Since when no store had to connect again to this server, as far as is known.
CREATE TABLE steady_since (
    single BOOLEAN PRIMARY KEY CHECK (single),
    server TIMESTAMPTZ NOT NULL,
    since TIMESTAMPTZ NOT NULL
);
INSERT INTO steady_since VALUES (TRUE, pg_postmaster_start_time(), '-infinity');
