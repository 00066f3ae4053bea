-- Finished calls in blocks, see `blocks`. A name in `tools`, `sources` and `conversations` stands between two separators;
-- NULL means that there are too many names to list.
CREATE TABLE call_blocks (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    first         TEXT COLLATE "C" NOT NULL UNIQUE,  -- the smallest record id
    last          TEXT COLLATE "C" NOT NULL,         -- the largest record id
    began_first   BIGINT NOT NULL,
    began_last    BIGINT NOT NULL,
    statuses      BIGINT NOT NULL,                   -- one bit for each status that occurs
    tools         TEXT,
    sources       TEXT,
    conversations TEXT,
    calls         BIGINT NOT NULL,
    owner         BIGINT NOT NULL,                   -- the hub that ran them
    segment       BIGINT,                            -- where they were in its journal
    segment_start BIGINT,
    segment_end   BIGINT,
    bytes         BIGINT NOT NULL,
    entries       BYTEA NOT NULL
);
CREATE INDEX call_blocks_by_last ON call_blocks (last, id);
CREATE INDEX call_blocks_by_owner ON call_blocks (owner, segment);

CREATE TABLE block_outputs (
    id      BIGINT PRIMARY KEY,                      -- of the block
    began   BIGINT NOT NULL,                         -- when the last call of the block began
    bytes   BIGINT NOT NULL,
    outputs BYTEA NOT NULL
);
