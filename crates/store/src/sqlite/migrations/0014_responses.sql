-- Responses of the agent to clients of the OpenAI-compatible endpoint. Times are microseconds since 1970. The texts are
-- the last columns, so that the others are read without them.
CREATE TABLE responses (
    id         TEXT NOT NULL PRIMARY KEY,
    principal  TEXT NOT NULL,
    previous   TEXT,              -- the response that it continues
    status     TEXT NOT NULL,
    owner      INTEGER NOT NULL,  -- the hub that works on it
    adopted    INTEGER NOT NULL,  -- 1 if the owner took it over from a dead hub and has not written it since
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,  -- of the texts below
    request    TEXT NOT NULL,     -- JSON, as are the others
    input      TEXT NOT NULL,
    body       TEXT NOT NULL
) STRICT;
CREATE INDEX responses_by_expiry ON responses (expires_at);
-- Has all that is needed to sum sizes and to find the oldest final responses.
CREATE INDEX responses_by_age ON responses (created_at, id, status, bytes);
CREATE INDEX responses_unfinished ON responses (owner) WHERE status IN ('queued', 'in_progress');

-- Calls that wait for the approval of a client.
CREATE TABLE response_approvals (
    id         TEXT NOT NULL PRIMARY KEY,
    principal  TEXT NOT NULL,
    call       TEXT NOT NULL,     -- JSON
    expires_at INTEGER NOT NULL,
    claim      TEXT               -- the key of the caller that takes it, which then deletes it
) STRICT;
CREATE INDEX response_approvals_by_expiry ON response_approvals (expires_at);
