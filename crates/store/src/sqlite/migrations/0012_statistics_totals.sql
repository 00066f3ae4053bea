-- Sums over the statistics, which have a row for each tool and day: a summary would read all of them.
CREATE TABLE day_totals (
    day       INTEGER PRIMARY KEY,    -- days since 1970
    successes INTEGER NOT NULL,
    failures  INTEGER NOT NULL
) STRICT;
INSERT INTO day_totals SELECT day, sum(successes), sum(failures) FROM statistics GROUP BY day;

CREATE TABLE latency_totals (
    step  INTEGER PRIMARY KEY,
    count INTEGER NOT NULL
) STRICT;
INSERT INTO latency_totals SELECT step, sum(count) FROM latencies GROUP BY step;

ALTER TABLE last_uses ADD COLUMN uses INTEGER NOT NULL DEFAULT 0;  -- successes and failures on all days
UPDATE last_uses SET uses = coalesce((
    SELECT sum(successes) + sum(failures) FROM statistics
    WHERE statistics.source = last_uses.source AND statistics.tool = last_uses.tool), 0);
