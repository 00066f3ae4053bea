-- Lists of prompts and resources, one per server, configuration and kind.
CREATE TABLE offers (
    server      TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    kind        TEXT NOT NULL,
    listed_at   BIGINT NOT NULL,
    items       TEXT NOT NULL,
    PRIMARY KEY (server, fingerprint, kind)
);
