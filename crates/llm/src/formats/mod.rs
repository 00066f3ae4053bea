//! Tool calls that a model wrote as text: one file per format, and the one door to all of them.
