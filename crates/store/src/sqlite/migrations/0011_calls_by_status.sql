-- The calls that did not succeed, by status: they are few, and a filter by status would read all others.
CREATE INDEX calls_by_status ON calls (status, record) WHERE status <> 'succeeded';
