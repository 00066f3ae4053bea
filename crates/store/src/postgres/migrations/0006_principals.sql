-- Who made a call, and what allowed it. Calls from before were made by the local user.
ALTER TABLE calls ADD COLUMN principal TEXT COLLATE "C" NOT NULL DEFAULT 'local';
ALTER TABLE calls ADD COLUMN rule TEXT;
ALTER TABLE calls ADD COLUMN approver TEXT;
-- Partial: on a machine with one user it is empty and costs nothing.
CREATE INDEX calls_by_principal ON calls (principal, record) WHERE principal <> 'local';
-- As `tools`; NULL also for blocks from before, which are scanned.
ALTER TABLE call_blocks ADD COLUMN principals TEXT;
