-- Whether a server is left alone outlives the run that met it, too; and whether it was too slow for a call.
ALTER TABLE tool_lists ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tool_lists ADD COLUMN late_at INTEGER;
