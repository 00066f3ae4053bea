-- Responses of the agent to clients of the OpenAI-compatible endpoint. Times are microseconds since 1970.
CREATE TABLE responses (
    id         TEXT COLLATE "C" PRIMARY KEY,
    principal  TEXT COLLATE "C" NOT NULL,
    previous   TEXT COLLATE "C",  -- the response that it continues
    status     TEXT COLLATE "C" NOT NULL,
    owner      BIGINT NOT NULL,   -- the hub that works on it
    adopted    BIGINT NOT NULL,   -- 1 if the owner took it over from a dead hub and has not written it since
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,   -- of the texts below
    request    TEXT NOT NULL,     -- JSON, as are the others
    input      TEXT NOT NULL,
    body       TEXT NOT NULL
);
CREATE INDEX responses_by_expiry ON responses (expires_at);
-- Has all that is needed to sum sizes and to find the oldest final responses.
CREATE INDEX responses_by_age ON responses (created_at, id, status, bytes);
CREATE INDEX responses_unfinished ON responses (owner) WHERE status IN ('queued', 'in_progress');

-- Calls that wait for the approval of a client.
CREATE TABLE response_approvals (
    id         TEXT COLLATE "C" PRIMARY KEY,
    principal  TEXT COLLATE "C" NOT NULL,
    call       TEXT NOT NULL,     -- JSON
    expires_at BIGINT NOT NULL,
    claim      TEXT COLLATE "C"   -- the key of the caller that takes it, which then deletes it
);
CREATE INDEX response_approvals_by_expiry ON response_approvals (expires_at);
