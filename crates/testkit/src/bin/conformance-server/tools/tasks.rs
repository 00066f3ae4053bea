//! Tools that run as tasks for clients with the tasks extension. Other clients wait for the result, or get an error if
//! the tool requires tasks.

use std::time::Duration;

use rmcp::model::{CallToolResult, ClientCapabilities, ContentBlock, ErrorData};
use rmcp::task_manager::{TaskContext, TaskExit, TaskFuture};
use serde_json::Value;

use super::{Arguments, Fixture, Outcome, done, text_content};
use crate::exchange::{Exchange, Step};
use crate::input_requests::{field, input_request};

pub(super) const FIXTURES: &[Fixture] = &[
    Fixture {
        name: "slow_compute",
        description: "Takes some seconds",
        arguments: Arguments::Required(&[("seconds", "number"), ("label", "string")]),
        step: slow_compute,
    },
    Fixture {
        name: "failing_job",
        description: "Is a task that fails after a second",
        arguments: Arguments::None,
        step: |exchange| {
            as_task(exchange, |task| {
                Box::pin(async move {
                    pause(&task, Duration::from_secs(1)).await?;
                    Ok(CallToolResult::error(vec![ContentBlock::text("The job failed, as it always does")]))
                })
            })
        },
    },
    Fixture {
        name: "protocol_error_job",
        description: "Is a task that ends in an error of the protocol",
        arguments: Arguments::None,
        step: |exchange| {
            as_task(exchange, |_| {
                Box::pin(async { Err(ErrorData::internal_error("the job broke down", None).into()) })
            })
        },
    },
    Fixture {
        name: "confirm_delete",
        description: "Asks a person before it pretends to delete a file",
        arguments: Arguments::Required(&[("filename", "string")]),
        step: confirm_delete,
    },
    Fixture {
        name: "multi_input",
        description: "Asks a person two things at once",
        arguments: Arguments::None,
        step: multi_input,
    },
    Fixture {
        name: "test_tool_with_task",
        description: "Asks a person for a name, and is then a task",
        arguments: Arguments::None,
        step: ask_then_work,
    },
];

fn takes_tasks(exchange: &Exchange) -> bool {
    exchange.capabilities().supports_tasks()
}

/// Requires the tasks extension.
fn as_task(
    exchange: &Exchange,
    operation: impl FnOnce(TaskContext) -> TaskFuture + Send + 'static,
) -> Result<Step<Outcome>, ErrorData> {
    if takes_tasks(exchange) {
        return Ok(Step::Done(Outcome::Task(Box::new(operation))));
    }
    let required = ClientCapabilities::builder().enable_tasks().build();
    Err(ErrorData::missing_required_client_capability(required))
}

/// Sleeps, unless the task is cancelled.
async fn pause(task: &TaskContext, time: Duration) -> Result<(), TaskExit> {
    tokio::select! {
        () = tokio::time::sleep(time) => Ok(()),
        () = task.cancelled() => Err(TaskExit::Cancelled),
    }
}

fn slow_compute(exchange: &Exchange) -> Result<Step<Outcome>, ErrorData> {
    let seconds = exchange.arguments.get("seconds").and_then(Value::as_f64);
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = time.ok_or_else(|| ErrorData::invalid_params("`seconds` must be a number of them", None))?;
    let result = text_content(format!("{} took {} s", exchange.text("label")?, time.as_secs_f64()));
    if takes_tasks(exchange) {
        return as_task(exchange, move |task| {
            Box::pin(async move {
                pause(&task, time).await?;
                Ok(result)
            })
        });
    }
    Ok(Step::Done(Outcome::Later(Box::pin(async move {
        tokio::time::sleep(time).await;
        Ok(result)
    }))))
}

fn confirm_delete(exchange: &Exchange) -> Result<Step<Outcome>, ErrorData> {
    let file = exchange.text("filename")?.to_owned();
    let requested = field(&format!("Delete {file}?"), "confirm", "boolean");
    let finish = move |answer: &Value| {
        let confirmed = answer.pointer("/content/confirm") == Some(&Value::Bool(true));
        text_content(format!("{file} is {}", if confirmed { "deleted" } else { "kept" }))
    };
    if takes_tasks(exchange) {
        let requested = input_request(requested)?;
        return as_task(exchange, |task| {
            Box::pin(async move { Ok(finish(&task.request_input("confirm", requested).await?)) })
        });
    }
    match exchange.answers.responses.get("confirm") {
        Some(answer) => done(finish(answer)),
        None => Step::ask([("confirm", requested)]),
    }
}

fn multi_input(exchange: &Exchange) -> Result<Step<Outcome>, ErrorData> {
    let (name, color) =
        (field("What is your name?", "name", "string"), field("Which color?", "color", "string"));
    let finish =
        |name: &Value, color: &Value| text_content(format!("{} and {}", name["content"], color["content"]));
    if takes_tasks(exchange) {
        let (name, color) = (input_request(name)?, input_request(color)?);
        return as_task(exchange, move |task| {
            Box::pin(async move {
                let both =
                    tokio::try_join!(task.request_input("name", name), task.request_input("color", color));
                let (name, color) = both?;
                Ok(finish(&name, &color))
            })
        });
    }
    let answers = &exchange.answers.responses;
    match (answers.get("name"), answers.get("color")) {
        (Some(name), Some(color)) => done(finish(name, color)),
        _ => Step::ask([("name", name), ("color", color)]),
    }
}

fn ask_then_work(exchange: &Exchange) -> Result<Step<Outcome>, ErrorData> {
    let Some(name) = exchange.field("user_name", "name")? else {
        return Step::ask([("user_name", field("What is your name?", "name", "string"))]);
    };
    as_task(exchange, move |_| Box::pin(async move { Ok(text_content(format!("Worked for {name}"))) }))
}
