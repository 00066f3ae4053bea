//! A tamper-evident audit log: records chained by hash, with signed checkpoints. Pure: storage is behind a trait.
