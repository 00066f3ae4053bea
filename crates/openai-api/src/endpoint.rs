//! The handlers of the routes.

use std::str::Utf8Error;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use axum::body::Body;
use http::{HeaderMap, Response, StatusCode, header};
use serde_json::{Value, json};
use toolhub::{Gateways, TurnError};
use toolhub_core::instance::{INSTANCE_HEADER, instance_id};
use toolhub_core::lang::Localize as _;
use toolhub_core::model::{ModelCall, ToolChoice};
use toolhub_core::ports::HubStore;
use toolhub_core::responses::{PendingApproval, ResponseStatus, StoredResponse};
use toolhub_core::{CallId, Principal, RawJson, Tool, ToolName};
use toolhub_mcp_gateway::{BudgetPermit, BudgetedResource, PrincipalHandle};
use toolhub_server::ApiRequest;

use crate::Services;
use crate::approved_tools::ApprovedTools;
use crate::chat::assembler::{ChatAssembler, ChatHead};
use crate::chat::request::ChatCompletion;
use crate::connection::{Connection, Keep};
use crate::conversation::Messages;
use crate::error::{ApiError, json_response};
use crate::models;
use crate::responses::assembler::{ResponseAssembler, ResponseHead};
use crate::responses::background::Job;
use crate::responses::history::{History, with_ids};
use crate::responses::progress::Progress;
use crate::responses::request::ResponseRequest;
use crate::supervisor::{ApprovalForm, ApprovedCall, TurnSupervisor};
use crate::tools::RequestTools;
use crate::turn::{LANG, Turn, turn_error};
use crate::turn_log::{Assembler, TurnLog};
use crate::unfinished_changes::{ChangeMark, RequestIdentity};

/// The header by which clients of the API name a project: here, a profile.
const PROFILE_HEADER: &str = "openai-project";

/// The profile that a request names; `None` without the header, and an error if it is no text, which is the name of no profile.
pub(crate) fn profile_name(headers: &HeaderMap) -> Result<Option<&str>, Utf8Error> {
    let name = headers.get(PROFILE_HEADER).map(|name| std::str::from_utf8(name.as_bytes())).transpose()?;
    Ok(name.filter(|name| !name.is_empty()))
}

/// A request and what it is answered with.
pub(crate) struct Endpoint<'a> {
    pub(crate) services: &'a Services,
    gateways: &'a Arc<Gateways>,
    pub(crate) request: ApiRequest,
    profile: Option<String>,
}

impl<'a> Endpoint<'a> {
    pub(crate) fn new(services: &'a Services, request: ApiRequest) -> Result<Self, ApiError> {
        if request.headers.get(INSTANCE_HEADER).is_some_and(|id| id == instance_id()) {
            return Err(ApiError::own_model());
        }
        let gateways = &services.gateways;
        let profile = profile_name(&request.headers).map(|name| name.map(str::to_owned));
        let is_usable =
            |name: &Option<String>| gateways.may_use_profile(name.as_deref(), request.principal.identity());
        let Some(profile) = profile.ok().filter(is_usable) else {
            let message = "there is no such profile for this key: name one with the header `OpenAI-Project` (此密钥没有该配置方案)";
            return Err(ApiError::new(StatusCode::NOT_FOUND, "profile_not_found", message));
        };
        Ok(Self { services, gateways, request, profile })
    }

    pub(crate) fn models(&self) -> Response<Body> {
        let names = models::names(self.gateways);
        let models: Vec<Value> = names.iter().map(|name| models::model(name)).collect();
        json_response(StatusCode::OK, &json!({ "object": "list", "data": models }))
    }

    pub(crate) fn model(&self, name: &str) -> Result<Response<Body>, ApiError> {
        models::agent_of(self.gateways, name)?;
        Ok(json_response(StatusCode::OK, &models::model(name)))
    }

    pub(crate) async fn create_completion(self) -> Result<Response<Body>, ApiError> {
        let chat = ChatCompletion::parse(&self.request.body)?;
        let agent = models::agent_of(self.gateways, &chat.model)?;
        let model = self.check_model(agent.as_deref(), chat.choice).await?;
        let messages = Messages::of(&[], &chat.items).map_err(|error| match error.param.as_deref() {
            Some(param) => {
                let param = param.replacen("input", "messages", 1);
                ApiError { param: Some(param), ..error }
            }
            None => error,
        })?;
        let mark = self.mark().await?;
        let permit = self.start()?;
        let key = crate::new_key();
        let id = format!("chatcmpl-{key}");
        let head = ChatHead {
            id: id.clone(),
            created: crate::unix_time(),
            model: chat.model,
            fingerprint: fingerprint(model.as_deref()),
            includes_usage: chat.includes_usage,
            is_stream: chat.is_stream,
        };
        let output = self.output_permit()?;
        let log = Arc::new(TurnLog::new(Assembler::Chat(ChatAssembler::new(head)), Some(output)));
        let supervisor = TurnSupervisor {
            tools: chat.tools,
            form: ApprovalForm::Refused,
            mark: Some(Arc::clone(&mark)),
            ..supervisor(self.gateways, log)
        };
        let turn = Turn {
            gateways: Arc::clone(self.gateways),
            principal: Arc::clone(self.principal()),
            profile: self.profile.clone(),
            agent,
            conversation: id,
            messages,
            approved: Vec::new(),
            choice: chat.choice,
            only_tool: chat.only_tool,
            instructions: None,
            max_tokens: chat.max_tokens,
            temperature: chat.temperature,
            answer_schema: chat.answer_schema,
            supervisor,
        };
        let principal = self.request.principal.clone();
        let connection = Connection { turn, keep: None, principal, permit, mark };
        if chat.is_stream { Ok(connection.stream()) } else { connection.answer().await }
    }

    pub(crate) async fn create_response(self) -> Result<Response<Body>, ApiError> {
        let host = self.request.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let request = ResponseRequest::parse(&self.request.body, Some(host.unwrap_or_default()))?;
        let agent = models::agent_of(self.gateways, &request.model)?;
        self.check_model(agent.as_deref(), request.choice).await?;
        let key = crate::new_key();
        let history = self.history();
        let earlier = history.items(request.previous.as_deref()).await?;
        let input = history.resolve(request.input.clone(), &earlier).await?;
        let messages = Messages::of(&earlier, &input)?;
        let mark = self.mark().await?;
        let permit = self.start()?;
        let head = ResponseHead {
            key: key.clone(),
            created: crate::unix_time(),
            echo: request.echo.clone(),
            is_stream: request.is_stream,
        };
        let mut assembler = ResponseAssembler::new(head, Vec::new());
        self.list_tools(&request.tools, &earlier, &mut assembler).await?;
        let (is_stream, is_background) = (request.is_stream, request.is_background);
        let stored = self.stored(&request, &assembler, &input, &key);
        let approved = self.take_approvals(&messages).await?;
        let prepared = PreparedResponse {
            gateways: self.gateways,
            principal: self.principal(),
            profile: self.profile.clone(),
            agent,
            request,
            messages,
            assembler,
            key,
            output: Some(self.output_permit()?),
        };
        let store = self.gateways.hub().store().cloned();
        if is_background {
            let store = store.ok_or_else(no_store)?;
            let queued = StoredResponse { status: ResponseStatus::Queued, ..stored };
            return self.start_background(prepared, store, queued, approved, permit).await;
        }
        let purge = Arc::clone(&self.services.purge);
        let keep = store.filter(|_| prepared.request.is_stored).map(|store| Keep { store, purge, stored });
        let mut turn = prepared.turn(approved.calls, None);
        turn.supervisor.mark = Some(Arc::clone(&mark));
        let principal = self.request.principal.clone();
        let connection = Connection { turn, keep, principal, permit, mark };
        if is_stream { Ok(connection.stream()) } else { connection.answer().await }
    }

    async fn start_background(
        &self,
        prepared: PreparedResponse<'_>,
        store: Arc<dyn HubStore>,
        stored: StoredResponse,
        approved: TakenApprovals,
        permit: BudgetPermit,
    ) -> Result<Response<Body>, ApiError> {
        let mut body = prepared.assembler.body();
        body["status"] = json!(ResponseStatus::Queued.name());
        let stored = StoredResponse { body: RawJson::from(body.clone()), ..stored };
        let TakenApprovals { calls, pending } = approved;
        let unused = TakenApprovals { calls: Vec::new(), pending };
        // Before it is stored, so that nothing is left of a refused one.
        let jobs = &self.services.jobs;
        let reservation = match jobs.reserve(&stored.id, self.principal(), self.profile.as_deref()) {
            Ok(reservation) => reservation,
            Err(refusal) => {
                unused.put_back(&*store).await;
                return Err(busy(&refusal.to_string()));
            }
        };
        self.services.purge.record(&stored);
        if let Err(error) = store.add_response(stored.clone()).await {
            unused.put_back(&*store).await;
            return Err(ApiError::internal(format!("it could not be stored: {error}")));
        }
        let progress = Progress { store: Arc::clone(&store), stored };
        let turn = prepared.turn(calls, Some(progress.clone()));
        reservation.start(Job { turn, progress, permit: Some(permit) });
        Ok(json_response(StatusCode::OK, &body))
    }

    pub(crate) fn principal(&self) -> &Arc<Principal> {
        self.request.principal.identity()
    }

    /// The stored responses of the principal.
    pub(crate) fn history(&self) -> History<'_> {
        let store = self.gateways.hub().store().map(|store| &**store);
        History { store, principal: self.principal().id() }
    }

    /// The mark of this request, which may not be a repetition of one whose tools may have changed something.
    async fn mark(&self) -> Result<Arc<ChangeMark>, ApiError> {
        let mark = self.services.changes.of_request(RequestIdentity {
            principal: self.principal().id(),
            profile: self.profile.as_deref(),
            path: &self.request.path,
            body: &self.request.body,
        });
        match mark.is_repetition(&self.request.headers).await {
            Ok(true) => Err(ApiError::repetition()),
            Ok(false) => Ok(Arc::new(mark)),
            // Whether it may run cannot be decided: the client repeats it later.
            Err(error) => {
                let message =
                    format!("nothing was run: the store cannot be read: {error} (无法读取存储，未执行)");
                let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", message);
                Err(ApiError { retry_after: Some(1), ..error })
            }
        }
    }

    /// Counts a turn against the limits of the principal, until the permit is dropped.
    fn start(&self) -> Result<BudgetPermit, ApiError> {
        let handle: &PrincipalHandle = &self.request.principal;
        handle.take(BudgetedResource::InFlightRequest, 1).map_err(|exceeded| busy(&exceeded.to_string()))
    }

    /// Counts the output of a turn against the limits of the principal, until the permit is dropped.
    fn output_permit(&self) -> Result<BudgetPermit, ApiError> {
        let handle: &PrincipalHandle = &self.request.principal;
        handle.take(BudgetedResource::Unread, 0).map_err(|exceeded| busy(&exceeded.to_string()))
    }

    /// Checks that the model of an agent can be used. Returns its name; `None` if rules answer.
    async fn check_model(&self, agent: Option<&str>, choice: ToolChoice) -> Result<Option<String>, ApiError> {
        let model = self.gateways.model_of_agent(agent).await.map_err(|error| {
            let message = turn_error(&error).localize(LANG);
            match error {
                TurnError::NoProfile => ApiError::new(StatusCode::NOT_FOUND, "profile_not_found", message),
                TurnError::Agent(_) | TurnError::Unreachable(_) => {
                    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "model_unavailable", message)
                }
            }
        })?;
        if model.is_none() && choice == ToolChoice::Required {
            let why = "this hub has no model, and rules choose their tools themselves: set up `[llm]`, or leave it out";
            return Err(ApiError::unsupported("tool_choice", why));
        }
        Ok(model)
    }

    /// Lists the tools of the named servers, unless the conversation lists them already.
    async fn list_tools(
        &self,
        tools: &RequestTools,
        earlier: &[Value],
        assembler: &mut ResponseAssembler,
    ) -> Result<(), ApiError> {
        if tools.servers.is_empty() {
            return Ok(());
        }
        self.gateways.wait_until_listed().await;
        let visible = self.gateways.tools_of_principal(self.profile.as_deref(), self.principal());
        tools.check_servers(&visible)?;
        for server in tools.servers.iter().filter(|server| !server.is_deferred) {
            let is_listed = |item: &Value| {
                item["type"] == json!("mcp_list_tools") && item["server_label"] == json!(server.label)
            };
            if !earlier.iter().any(is_listed) {
                let offered = |tool: &Tool| {
                    self.gateways.offered_definition(self.profile.as_deref(), self.principal(), tool)
                };
                assembler.list_tools(&server.label, &RequestTools::listed(server, &visible, offered));
            }
        }
        Ok(())
    }

    /// The calls that the client approves. Each approval is used up.
    async fn take_approvals(&self, messages: &Messages) -> Result<TakenApprovals, ApiError> {
        let mut approvals = TakenApprovals::default();
        for id in &messages.approved {
            let store = self.gateways.hub().store().ok_or_else(no_store)?;
            let taken = store.take_approval(id, self.principal().id()).await;
            let taken = match taken {
                Ok(taken) => taken,
                Err(error) => {
                    approvals.put_back(&**store).await;
                    return Err(ApiError::internal(error.to_string()));
                }
            };
            let Some(pending) = taken else {
                approvals.put_back(&**store).await;
                let message = format!(
                    "the approval request `{id}` was answered before, or has expired: nothing was run (此批准请求已使用或已过期)"
                );
                let param = messages
                    .approval_items
                    .get(id)
                    .map_or("input".to_owned(), |index| format!("input[{index}]"));
                return Err(ApiError::invalid(param, message));
            };
            let call: Value = serde_json::from_str(pending.call.get()).unwrap_or_default();
            approvals.pending.push(pending);
            let text = |name: &str| call[name].as_str().unwrap_or_default().to_owned();
            let (tool, arguments) = (text("name"), text("arguments"));
            let model_call = ModelCall {
                id: CallId::new(id.as_str()),
                tool: ToolName::new(tool.as_str()),
                arguments: RawJson::parse(arguments.clone()).unwrap_or_else(|_| RawJson::empty_object()),
                source: Some(text("server_label")),
                repaired: Vec::new(),
            };
            let server = text("server_label");
            let identity = text("identity");
            approvals
                .calls
                .push((ApprovedCall { id: id.clone(), server, tool, arguments, identity }, model_call));
        }
        Ok(approvals)
    }

    /// The response as it is stored, before its turn.
    fn stored(
        &self,
        request: &ResponseRequest,
        assembler: &ResponseAssembler,
        input: &[Value],
        key: &str,
    ) -> StoredResponse {
        // Only what runs in the background is continued after a restart.
        let request_body = match request.is_background {
            true => serde_json::from_slice(&self.request.body).unwrap_or_default(),
            false => Value::Null,
        };
        let now = SystemTime::now();
        StoredResponse {
            id: assembler.id(),
            principal: self.principal().id().to_string(),
            previous: request.previous.clone(),
            status: assembler.status(),
            request: RawJson::from(json!({ "body": request_body, "profile": self.profile })),
            input: RawJson::from(Value::Array(with_ids(input.to_vec(), key))),
            body: RawJson::from(assembler.body()),
            created_at: now,
            expires_at: now + self.gateways.hub().settings().openai.keep(),
        }
    }
}

/// Approvals that a request has used up.
#[derive(Default)]
struct TakenApprovals {
    calls: Vec<(ApprovedCall, ModelCall)>,
    pending: Vec<PendingApproval>,
}

impl TakenApprovals {
    /// Makes them usable again, since nothing was run.
    async fn put_back(self, store: &dyn HubStore) {
        for pending in self.pending {
            // An approval that cannot be stored is lost, and the model asks again.
            let _ = store.put_approval(pending).await;
        }
    }
}

/// A response whose turn can begin.
pub(crate) struct PreparedResponse<'a> {
    pub(crate) gateways: &'a Arc<Gateways>,
    pub(crate) principal: &'a Arc<Principal>,
    pub(crate) profile: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) request: ResponseRequest,
    pub(crate) messages: Messages,
    pub(crate) assembler: ResponseAssembler,
    pub(crate) key: String,
    /// Counts the output against the budget of the principal; `None` after a restart.
    pub(crate) output: Option<BudgetPermit>,
}

impl PreparedResponse<'_> {
    /// The turn of the response.
    pub(crate) fn turn(self, approved: Vec<(ApprovedCall, ModelCall)>, progress: Option<Progress>) -> Turn {
        let Self { gateways, principal, profile, agent, request, messages, assembler, key, output } = self;
        let conversation = assembler.id();
        // A response that another process began goes on with its numbers.
        let (made, asked) = (assembler.count("mcp_call"), assembler.count("mcp_approval_request"));
        let log = Arc::new(TurnLog::new(Assembler::Response(assembler), output));
        let (approved, calls) = approved.into_iter().unzip();
        let form = match gateways.hub().store().cloned() {
            Some(store) => ApprovalForm::Requests { store, key, principal: Arc::clone(principal.id()) },
            None => ApprovalForm::Refused,
        };
        let supervisor = TurnSupervisor {
            tools: request.tools,
            form,
            approved: Mutex::new(approved),
            max_calls: request.max_calls,
            calls: AtomicU32::new(made),
            requests: AtomicU32::new(asked),
            progress,
            ..supervisor(gateways, log)
        };
        Turn {
            gateways: Arc::clone(gateways),
            principal: Arc::clone(principal),
            profile,
            agent,
            conversation,
            messages,
            approved: calls,
            choice: request.choice,
            only_tool: request.only_tool,
            instructions: request.instructions,
            max_tokens: request.max_tokens,
            temperature: request.temperature,
            answer_schema: request.answer_schema,
            supervisor,
        }
    }
}

/// The supervisor of a request without tools.
fn supervisor(gateways: &Arc<Gateways>, log: Arc<TurnLog>) -> TurnSupervisor {
    TurnSupervisor {
        gateways: Arc::clone(gateways),
        log,
        tools: RequestTools::default(),
        approved_tools: ApprovedTools::new(gateways.hub().settings().openai.approved_tools.clone()),
        form: ApprovalForm::Refused,
        approved: Mutex::default(),
        max_calls: None,
        calls: Default::default(),
        requests: Default::default(),
        is_deferred: Default::default(),
        mark: None,
        progress: None,
        lang: LANG,
    }
}

fn fingerprint(model: Option<&str>) -> String {
    let kind = if model.is_some() { "agent" } else { "rules" };
    format!("toolhub-{}-{kind}", env!("CARGO_PKG_VERSION"))
}

fn busy(why: &str) -> ApiError {
    let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded", why);
    ApiError { retry_after: Some(1), ..error }
}

pub(crate) fn no_store() -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "no_store", "this hub has no store (此 hub 没有存储)")
}
