-- The id of the call that made this one, if a tool did.
ALTER TABLE calls ADD COLUMN parent TEXT;
-- Partial: without tools that call other tools it is empty and costs nothing.
CREATE INDEX calls_by_parent ON calls (parent, record) WHERE parent IS NOT NULL;
-- As `tools`. Blocks from before have none, and are not scanned.
ALTER TABLE call_blocks ADD COLUMN parents TEXT DEFAULT '';
