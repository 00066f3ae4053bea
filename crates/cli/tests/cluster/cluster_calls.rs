//! Calls through a worker: results, large arguments, two replicas with one instance, questions and progress.

use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, ErrorData, Implementation, ProgressNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext, RunningService, ServiceExt as _};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};

use crate::test_cluster::{Client, Process, TestCluster, succeeded};

/// The process id that a call of `append` returned.
fn pid_of(answer: &str) -> u32 {
    let start = answer.find("\"text\":\"").unwrap_or_else(|| panic!("{answer}")) + 8;
    answer[start..].split([' ', '"']).next().unwrap().parse().unwrap_or_else(|_| panic!("{answer}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_share_the_instance_of_a_worker() {
    let mut cluster = TestCluster::new("");
    let (one, other, worker) = (cluster.replica(), cluster.replica(), cluster.worker(&[]));
    let (first, second) = (Client::of(&one), Client::of(&other));
    first.await_ready().await;
    second.await_ready().await;
    let pids = [pid_of(&first.append("a").await), pid_of(&second.append("b").await)];
    assert_eq!(pids[0], pids[1]);
    assert_eq!(worker.servers(), [pids[0]]);
    assert!(one.servers().is_empty() && other.servers().is_empty());
    // Arguments and results of several megabytes travel in pieces.
    let text = "x".repeat(3 << 20);
    let answer = first.call("append", json!({"id": "large", "text": text})).await;
    assert!(
        succeeded(&answer) && answer.contains(&format!(" {} ", text.len())),
        "{}",
        answer.get(..200).unwrap_or(&answer)
    );
    let ran = cluster.ran();
    for id in ["a", "b", "large"] {
        assert_eq!(ran.iter().filter(|ran| *ran == id).count(), 1, "{ran:?}");
    }
    let status = cluster.status();
    assert_eq!(status["replicas"].as_array().unwrap().len(), 2, "{status:#}");
    assert_eq!(status["workers"][0]["servers"], 1, "{status:#}");
    assert_eq!(status["placements"][0]["server"], "journal", "{status:#}");
    assert_eq!(status["placements"][0]["worker"], worker.id.as_str(), "{status:#}");
    assert_eq!(status["degraded"], json!([]), "{status:#}");
}

/// A client that answers questions with its name, and records what it was asked and its progress.
#[derive(Clone)]
struct Person {
    name: &'static str,
    asked: Arc<Mutex<Vec<String>>>,
    progress: Arc<Mutex<Vec<f64>>>,
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::builder().enable_elicitation().build(),
            Implementation::new(self.name, "1"),
        )
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.asked.lock().unwrap().push(serde_json::to_value(&params).unwrap()["message"].to_string());
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({"name": self.name})))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().unwrap().push(params.progress);
    }
}

async fn connect(name: &'static str, replica: &Process) -> (Person, RunningService<RoleClient, Person>) {
    let person = Person { name, asked: Arc::default(), progress: Arc::default() };
    let transport = StreamableHttpClientTransport::from_uri(replica.url.clone());
    let running = person.clone().serve(transport).await.unwrap();
    (person, running)
}

fn call(tool: &'static str, id: &str) -> CallToolRequestParams {
    let Value::Object(arguments) = json!({"id": id}) else { panic!() };
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

/// With an instance of its own for each caller, every question is certain to concern one person.
#[tokio::test(flavor = "multi_thread")]
async fn questions_and_progress_reach_their_caller_alone() {
    let mut cluster = TestCluster::new("");
    let (one, other, _worker) = (cluster.replica(), cluster.replica(), cluster.worker(&[]));
    Client::of(&one).await_ready().await;
    Client::of(&other).await_ready().await;
    let (ann, at_one) = connect("ann", &one).await;
    let (ben, at_other) = connect("ben", &other).await;
    let answer = at_one.call_tool(call("ask", "for ann")).await.unwrap();
    let answer = serde_json::to_string(&answer).unwrap();
    assert!(answer.contains("accept") && answer.contains("ann"), "{answer}");
    assert_eq!(*ann.asked.lock().unwrap(), ["\"for ann\""]);
    assert!(ben.asked.lock().unwrap().is_empty());
    at_other.call_tool(call("progress", "p")).await.unwrap();
    let since = std::time::Instant::now();
    while ben.progress.lock().unwrap().len() < 3 && since.elapsed() < std::time::Duration::from_secs(5) {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    // The client handles notifications concurrently.
    let mut progress = ben.progress.lock().unwrap().clone();
    progress.sort_by(f64::total_cmp);
    assert_eq!(progress, [1.0, 2.0, 3.0]);
    assert!(ann.progress.lock().unwrap().is_empty());
}
