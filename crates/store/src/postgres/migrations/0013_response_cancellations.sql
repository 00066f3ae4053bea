-- Cancellations of responses are requested by any hub and carried out by the owner. Responses are purged by principal.
ALTER TABLE responses ADD COLUMN cancel_requested BIGINT NOT NULL DEFAULT 0;
DROP INDEX responses_by_age;
-- Has all that is needed to sum sizes and to find the oldest responses of each principal.
CREATE INDEX responses_by_age ON responses (principal, created_at, id, status, bytes);
