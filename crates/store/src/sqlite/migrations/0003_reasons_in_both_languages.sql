-- A reason outlives the run that met it, and the next run may speak the other language. Rows from before have none in
-- Chinese, and say it as they have it. In `skipped`, each text is from now on a pair: English, Chinese.
ALTER TABLE tool_lists ADD COLUMN failure_zh TEXT;
