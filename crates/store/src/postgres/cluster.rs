//! Members and placements of a cluster, over a connection of their own: leases are not extended behind other queries. Only the
//! clock of the database decides when a lease ends.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};
use toolhub_core::cluster::{ClusterMember, ClusterStore, HeldPlacement, InstanceKey, MemberKind, Placement};
use toolhub_core::ports::StoreError;
use toolhub_core::{BoxFuture, Source};

use super::reader::{self, PendingQuery, Reader};
use super::session::{Address, Session};
use super::{MAX_QUEUED_READS, PgUrl, first_session, replace_nul, start_thread};
use crate::error::OpenError;

const BEAT: &str =
    "INSERT INTO members AS old (id, kind, address, labels, capacity, load, version, draining, beat)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, clock_timestamp())
    ON CONFLICT (id) DO UPDATE SET address = excluded.address, labels = excluded.labels,
        capacity = excluded.capacity, load = excluded.load, version = excluded.version,
        draining = excluded.draining, beat = excluded.beat
    RETURNING (extract(epoch FROM beat) * 1000)::bigint";

const MEMBERS: &str = "SELECT id, kind, address, labels, capacity, load, version, draining,
        greatest(0, extract(epoch FROM clock_timestamp() - beat) * 1000000)::bigint
    FROM members WHERE beat > clock_timestamp() - $1::bigint * interval '1 microsecond' ORDER BY kind, id";

/// Members of long ago, and placements that ended long ago. An epoch is never used again, so nothing is lost.
const FORGET: [&str; 2] = [
    "DELETE FROM members WHERE beat < clock_timestamp() - interval '1 hour'",
    "DELETE FROM placements WHERE until < clock_timestamp() - interval '1 hour'",
];

const PLACEMENTS: &str = "SELECT server, instance, worker, epoch,
        greatest(0, extract(epoch FROM until - clock_timestamp()) * 1000000)::bigint
    FROM placements WHERE until > clock_timestamp()";

/// A worker that claims its own instance again gets another epoch: what was sent under the former one is refused.
const CLAIM: &str = "INSERT INTO placements AS old (server, instance, worker, epoch, until)
    VALUES ($1, $2, $3, nextval('placement_epochs'), clock_timestamp() + $4::bigint * interval '1 microsecond')
    ON CONFLICT (server, instance) DO UPDATE
        SET worker = excluded.worker, epoch = excluded.epoch, until = excluded.until
        WHERE old.until <= clock_timestamp() OR old.worker = excluded.worker
    RETURNING epoch";

/// A lease that has ended is not extended, also if no other worker has taken the instance.
const RENEW: &str = "UPDATE placements SET until = clock_timestamp() + $1::bigint * interval '1 microsecond'
    WHERE worker = $2 AND epoch = ANY($3) AND until > clock_timestamp()
    RETURNING server, instance, epoch";

const RELEASE: &str = "UPDATE placements SET until = clock_timestamp()
    WHERE worker = $1 AND epoch = $2 AND until > clock_timestamp()";

/// A worker checks approvals itself. Definitions are not read.
const SKILL_APPROVALS: &str = "SELECT tool, version FROM approvals WHERE source = $1";

/// Members and placements in a PostgreSQL database.
#[derive(Debug)]
pub struct PgCluster {
    reads: Option<mpsc::Sender<Arc<dyn PendingQuery>>>,
    thread: Option<JoinHandle<()>>,
}

impl PgCluster {
    /// Connects, and creates the tables if necessary.
    pub async fn connect(url: &PgUrl) -> Result<Self, OpenError> {
        let location = url.to_string();
        let failed = |cause: String| OpenError::Postgres { location: location.clone(), cause };
        let address = Address::new(url).map_err(failed)?;
        let (reads, requests) = mpsc::channel(MAX_QUEUED_READS);
        let retry_sender = reads.downgrade();
        let (opened, ready) = oneshot::channel();
        let of_thread = location.clone();
        let thread = start_thread(async move {
            match first_session(&address, &of_thread).await {
                Ok(session) => drop(session),
                Err(error) => {
                    let _ = opened.send(Err(error));
                    return;
                }
            }
            if opened.send(Ok(())).is_ok() {
                Reader::new(address, requests, retry_sender).run().await;
            }
        })?;
        let store = Self { reads: Some(reads), thread: Some(thread) };
        match ready.await {
            Ok(opened) => opened.map(|()| store),
            Err(_) => Err(OpenError::Postgres { location, cause: "its thread has ended".to_owned() }),
        }
    }

    /// The approved digests of skills, by the keys of skills.
    pub async fn skill_approvals(&self) -> Result<Vec<(String, String)>, StoreError> {
        let rows = self.rows(SKILL_APPROVALS, vec![Bind::text(&Source::Skill.to_string())]).await?;
        let pair = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?));
        rows.iter().map(pair).collect::<Result<_, _>>().map_err(unreadable)
    }

    /// Executes a statement. It is repeated if the connection breaks, so it must be safe to execute twice.
    async fn ask<T, F, A>(&self, ask: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(Arc<Session>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<T, Error>> + Send + 'static,
    {
        reader::read(self.reads.as_ref(), ask).await
    }

    /// Executes a statement with these parameters, and returns its rows.
    async fn rows(&self, sql: &'static str, values: Vec<Bind>) -> Result<Vec<Row>, StoreError> {
        let values = Arc::new(values);
        self.ask(move |session| {
            let values = Arc::clone(&values);
            async move {
                let values: Vec<&(dyn ToSql + Sync)> = values
                    .iter()
                    .map(|value| match value {
                        Bind::Text(text) => text as &(dyn ToSql + Sync),
                        Bind::Int(number) => number,
                        Bind::Ints(numbers) => numbers,
                    })
                    .collect();
                session.client.query(sql, &values).await
            }
        })
        .await
    }
}

/// A parameter.
#[derive(Debug)]
enum Bind {
    Text(String),
    Int(i64),
    Ints(Vec<i64>),
}

impl Bind {
    fn text(text: &str) -> Self {
        Self::Text(replace_nul(text).into_owned())
    }

    fn micros(span: Duration) -> Self {
        Self::Int(i64::try_from(span.as_micros()).unwrap_or(i64::MAX))
    }
}

fn span(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}

#[expect(clippy::needless_pass_by_value, reason = "an argument of `map_err`")]
fn unreadable(error: Error) -> StoreError {
    StoreError(error.to_string().into())
}

fn member_of(row: &Row) -> Result<ClusterMember, Error> {
    let number = |column: usize| -> Result<u32, Error> {
        Ok(u32::try_from(row.try_get::<_, i64>(column)?).unwrap_or(u32::MAX))
    };
    let labels: String = row.try_get(3)?;
    Ok(ClusterMember {
        id: row.try_get(0)?,
        kind: match row.try_get::<_, String>(1)?.as_str() {
            "worker" => MemberKind::Worker,
            _ => MemberKind::Replica,
        },
        address: row.try_get(2)?,
        labels: labels.split('\n').filter(|label| !label.is_empty()).map(str::to_owned).collect(),
        capacity: number(4)?,
        load: number(5)?,
        version: row.try_get(6)?,
        draining: row.try_get::<_, i64>(7)? != 0,
        silent_for: span(row.try_get(8)?),
    })
}

fn placement_of(row: &Row) -> Result<Placement, Error> {
    Ok(Placement {
        key: InstanceKey { server: row.try_get(0)?, instance: row.try_get(1)? },
        worker: row.try_get(2)?,
        epoch: row.try_get(3)?,
        remaining_lease: span(row.try_get(4)?),
    })
}

impl ClusterStore for PgCluster {
    fn beat(&self, member: ClusterMember) -> BoxFuture<'_, Result<i64, StoreError>> {
        Box::pin(async move {
            let values = vec![
                Bind::text(&member.id),
                Bind::text(member.kind.name()),
                Bind::text(&member.address),
                Bind::text(&member.labels.join("\n")),
                Bind::Int(member.capacity.into()),
                Bind::Int(member.load.into()),
                Bind::text(&member.version),
                Bind::Int(member.draining.into()),
            ];
            let rows = self.rows(BEAT, values).await?;
            let row = rows.first().ok_or_else(|| StoreError("the database returned no time".into()))?;
            row.try_get(0).map_err(unreadable)
        })
    }

    fn leave(&self, id: String) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.rows("DELETE FROM members WHERE id = $1", vec![Bind::text(&id)]).await.map(drop)
        })
    }

    fn members(&self, within: Duration) -> BoxFuture<'_, Result<Vec<ClusterMember>, StoreError>> {
        Box::pin(async move {
            for sql in FORGET {
                self.rows(sql, Vec::new()).await?;
            }
            let rows = self.rows(MEMBERS, vec![Bind::micros(within)]).await?;
            rows.iter().map(member_of).collect::<Result<_, _>>().map_err(unreadable)
        })
    }

    fn placements(&self) -> BoxFuture<'_, Result<Vec<Placement>, StoreError>> {
        Box::pin(async move {
            let rows = self.rows(PLACEMENTS, Vec::new()).await?;
            let mut placements: Vec<Placement> =
                rows.iter().map(placement_of).collect::<Result<_, _>>().map_err(unreadable)?;
            placements.sort_by(|one, other| {
                (&one.key.server, &one.key.instance).cmp(&(&other.key.server, &other.key.instance))
            });
            Ok(placements)
        })
    }

    fn placement(&self, key: InstanceKey) -> BoxFuture<'_, Result<Option<Placement>, StoreError>> {
        Box::pin(async move {
            const ONE: &str = "SELECT server, instance, worker, epoch,
                    greatest(0, extract(epoch FROM until - clock_timestamp()) * 1000000)::bigint
                FROM placements WHERE server = $1 AND instance = $2 AND until > clock_timestamp()";
            let rows = self.rows(ONE, vec![Bind::text(&key.server), Bind::text(&key.instance)]).await?;
            rows.first().map(placement_of).transpose().map_err(unreadable)
        })
    }

    fn claim(
        &self,
        key: InstanceKey,
        worker: String,
        lease: Duration,
    ) -> BoxFuture<'_, Result<Option<i64>, StoreError>> {
        Box::pin(async move {
            let values = vec![
                Bind::text(&key.server),
                Bind::text(&key.instance),
                Bind::text(&worker),
                Bind::micros(lease),
            ];
            let rows = self.rows(CLAIM, values).await?;
            rows.first().map(|row| row.try_get(0)).transpose().map_err(unreadable)
        })
    }

    fn renew(
        &self,
        worker: String,
        held: Vec<HeldPlacement>,
        lease: Duration,
    ) -> BoxFuture<'_, Result<Vec<HeldPlacement>, StoreError>> {
        Box::pin(async move {
            let epochs = held.iter().map(|held| held.epoch).collect();
            let values = vec![Bind::micros(lease), Bind::text(&worker), Bind::Ints(epochs)];
            let rows = self.rows(RENEW, values).await?;
            let held = |row: &Row| -> Result<HeldPlacement, Error> {
                let key = InstanceKey { server: row.try_get(0)?, instance: row.try_get(1)? };
                Ok(HeldPlacement { key, epoch: row.try_get(2)? })
            };
            rows.iter().map(held).collect::<Result<_, _>>().map_err(unreadable)
        })
    }

    fn release(&self, worker: String, held: HeldPlacement) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.rows(RELEASE, vec![Bind::text(&worker), Bind::Int(held.epoch)]).await.map(drop)
        })
    }
}

impl Drop for PgCluster {
    fn drop(&mut self) {
        drop(self.reads.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
