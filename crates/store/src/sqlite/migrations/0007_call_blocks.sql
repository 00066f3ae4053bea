-- Finished calls in blocks, see `blocks`. A name in `tools`, `sources` and `conversations` stands between two separators;
-- NULL means that there are too many names to list.
CREATE TABLE call_blocks (
    id            INTEGER PRIMARY KEY,
    first         TEXT NOT NULL UNIQUE,  -- the smallest record id
    last          TEXT NOT NULL,         -- the largest record id
    began_first   INTEGER NOT NULL,      -- microseconds since 1970
    began_last    INTEGER NOT NULL,
    statuses      INTEGER NOT NULL,      -- one bit for each status that occurs
    tools         TEXT,
    sources       TEXT,
    conversations TEXT,
    calls         INTEGER NOT NULL,
    owner         INTEGER NOT NULL,      -- the hub that ran them
    segment       INTEGER,               -- where they were in its journal; NULL if they were journaled as intents
    segment_start INTEGER,
    segment_end   INTEGER,
    bytes         INTEGER NOT NULL,
    entries       BLOB NOT NULL
) STRICT;
CREATE INDEX call_blocks_by_last ON call_blocks (last, id);
CREATE INDEX call_blocks_by_owner ON call_blocks (owner, segment);

CREATE TABLE block_outputs (
    id      INTEGER PRIMARY KEY,         -- of the block
    began   INTEGER NOT NULL,            -- when the last call of the block began
    bytes   INTEGER NOT NULL,
    outputs BLOB NOT NULL
) STRICT;
