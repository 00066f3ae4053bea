-- How long a call that needed a server waited for it in vain.
ALTER TABLE tool_lists ADD COLUMN late_after_ms BIGINT;
