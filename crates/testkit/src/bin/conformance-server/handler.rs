//! The SDK handler: declares the capabilities and dispatches requests.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
    CustomRequest, CustomResult, ErrorData, ExtensionCapabilities, GetPromptRequestParams, GetPromptResponse,
    GetTaskParams, GetTaskResult, Implementation, InputResponses, JsonObject, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerCapabilities, ServerConfig,
    SetLevelRequestMethod, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{RequestContext, SubscriptionContext, SubscriptionSink};
use rmcp::{RoleServer, ServerHandler};
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::exchange::{Exchange, InputAnswers, is_modern};
use crate::server_state::{Change, ServerState, Session};
use crate::{completion, prompts, resources, skills, tools};

/// A session of the server.
pub(crate) struct Server {
    server_state: Arc<ServerState>,
    session: Arc<Session>,
}

impl Server {
    pub(crate) fn new(server_state: Arc<ServerState>) -> Self {
        Self { server_state, session: Arc::default() }
    }

    fn exchange(&self, requested: CallParameters, context: RequestContext<RoleServer>) -> Exchange {
        Exchange {
            context,
            arguments: requested.arguments.unwrap_or_default(),
            answers: InputAnswers {
                responses: requested.responses.unwrap_or_default(),
                state: requested.state,
            },
            server_state: self.server_state.clone(),
            session: self.session.clone(),
        }
    }
}

/// The common parameters of tool and prompt calls.
struct CallParameters {
    arguments: Option<JsonObject>,
    responses: Option<InputResponses>,
    state: Option<String>,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let skills = ExtensionCapabilities::from([(skills::EXTENSION.to_owned(), skills::settings())]);
        let capabilities = ServerCapabilities::builder()
            .enable_extensions_with(skills)
            .enable_logging()
            .enable_completions()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_tasks()
            .build();
        let name = Implementation::new("conformance-server", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(name)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::list(&self.server_state)))
    }

    /// The SDK validates the headers of a call against the tool's schema.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::get(&self.server_state, name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let CallToolRequestParams { name, arguments, input_responses, request_state, .. } = request;
        let requested = CallParameters { arguments, responses: input_responses, state: request_state };
        tools::call(&name, self.exchange(requested, context)).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list(&self.server_state)))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let GetPromptRequestParams { name, arguments, input_responses, request_state, .. } = request;
        let requested = CallParameters { arguments, responses: input_responses, state: request_state };
        prompts::get(&name, self.exchange(requested, context)).await
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::list()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(ReadResourceResult::new(vec![resources::read(&request.uri)?]).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        completion::complete(&request)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // 2026-07-28 has the level in each request instead; the SDK does not reject this method.
        if is_modern(&context) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        self.session.set_level(request.level);
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        resources::read(&request.uri)?;
        self.session.watch(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.session.unwatch(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.session.accept(&self.server_state);
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let changes = self.session.listen(&self.server_state);
        tokio::select! {
            () = context.cancelled() => {}
            // Also interrupts a pending notification: when the connection ends, the SDK no longer receives it.
            () = self.server_state.closing.cancelled() => {}
            () = forward(changes, context.sink()) => {}
        }
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let mut result = skills::answer(&request)?;
        // The SDK adds these members to results of known methods.
        if is_modern(&context) {
            result.insert("resultType".to_owned(), json!("complete"));
            result.insert("ttlMs".to_owned(), json!(0));
            result.insert("cacheScope".to_owned(), json!("public"));
        }
        Ok(CustomResult::new(result.into()))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.server_state.tasks.get_task(&request.task_id)?))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.server_state.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.server_state.tasks.cancel_task(&request.task_id)
    }
}

/// Forwards changes to a subscriber, without end. The SDK drops those that the subscriber did not request.
async fn forward(mut changes: Receiver<Change>, sink: &SubscriptionSink) {
    loop {
        let _ = match changes.recv().await {
            Ok(Change::Tools) => sink.notify_tool_list_changed().await,
            Ok(Change::Prompts) => sink.notify_prompt_list_changed().await,
            Ok(Change::Resource(uri)) => sink.notify_resource_updated(uri).await,
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
    }
}
