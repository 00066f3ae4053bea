-- Lists of prompts and resources, one per server, configuration and kind.
CREATE TABLE offers (
    server      TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    kind        TEXT NOT NULL,
    listed_at   INTEGER NOT NULL,    -- milliseconds since 1970
    items       TEXT NOT NULL,       -- JSON array, as the server gave it
    PRIMARY KEY (server, fingerprint, kind)
) STRICT;
