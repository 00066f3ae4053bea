//! The schema of `[cluster]` and `[worker]`.

use serde_json::{Value, json};

use super::{count, duration, one_of, table, text, texts};

pub(super) fn cluster() -> Value {
    let nats = json!({
        "description": "NATS servers: one URL or several (`nats://` or `tls://`); `${VAR}` is replaced from the environment",
        "anyOf": [{"type": "string"}, texts("URLs")],
    });
    table(
        "Several machines; needs a shared `[store] url`",
        [
            ("nats", nats),
            ("prefix", text("First part of all subjects in NATS (default: toolhub)")),
            (
                "credentials",
                text("File with the credentials for NATS: JWT and NKey seed, or an NKey seed alone"),
            ),
            (
                "authorities",
                text(
                    "File with the certificates of the authorities of the NATS servers (default: the system's)",
                ),
            ),
            (
                "session_keys",
                texts(
                    "Keys of session ids, 256 bits each in base64; the first seals, all open; without them a key is made and kept in the store",
                ),
            ),
            (
                "scripts",
                one_of(
                    &["auto", "workers", "replica"],
                    "Where scripts run: on workers, and on the replica if no worker takes one (auto, the default); on workers alone; on the replica alone",
                ),
            ),
            (
                "skills",
                one_of(
                    &["auto", "workers", "replica"],
                    "Where scripts of skills run that are programs: on workers, and on the replica if no worker takes one or files are granted (auto, the default); on workers alone; on the replica alone",
                ),
            ),
            ("lease", duration("How long a worker holds a server without a sign of life (default: 15s)")),
        ],
    )
}

pub(super) fn worker() -> Value {
    table(
        "What `toolhub work` on this machine offers",
        [
            ("labels", texts("Labels that servers may ask for")),
            ("capacity", count(1, "How many programs run at once (default: 200)")),
            ("scripts", count(0, "How many scripts run at once (default: 32); 0 for none")),
            ("skills", count(0, "How many scripts of skills run at once (default: 8); 0 for none")),
        ],
    )
}
