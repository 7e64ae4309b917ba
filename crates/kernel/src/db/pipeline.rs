//! What is asked of PostgreSQL in one pipeline, and what comes back.

use super::fault::Fault;
use super::param::Param;
use super::statement::{Statement, to_postgres};
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

/// One message group of a pipeline.
pub(super) enum PipelineStep<'a> {
    Command(&'static str),
    Prepare(&'static Statement),
    Call {
        statement: &'static Statement,
        params: Params<'a>,
    },
}

pub(super) enum Params<'a> {
    Asked(&'a [Param<'a>]),
    /// Nobody waits for the rows.
    Queued(Vec<Param<'static>>),
}

impl<'a> Params<'a> {
    pub fn are_queued(&self) -> bool {
        matches!(self, Params::Queued(_))
    }

    fn as_slice(&self) -> &[Param<'a>] {
        match self {
            Params::Asked(params) => params,
            Params::Queued(params) => params,
        }
    }
}

pub(super) enum Answer {
    Done,
    Prepared(tokio_postgres::Statement),
    Rows(Vec<tokio_postgres::Row>),
    Affected(u64),
}

impl PipelineStep<'_> {
    pub fn fault(&self, error: &tokio_postgres::Error) -> Fault {
        let fault = Fault::of_postgres(error);
        match self {
            PipelineStep::Command(sql) => fault.during(sql),
            PipelineStep::Prepare(statement) => fault.during("prepare").during(statement.name),
            PipelineStep::Call { statement, params } => {
                let fault = if params.are_queued() {
                    fault.of_queued()
                } else {
                    fault
                };
                fault.during(statement.name)
            }
        }
    }
}

/// The catalogue's statements are statics: an address is an identity.
pub(super) fn address(statement: &'static Statement) -> usize {
    std::ptr::from_ref(statement).addr()
}

/// Sends a step when it is first polled, and returns its answer.
pub(super) async fn ask(
    client: &Client,
    prepared: Option<tokio_postgres::Statement>,
    step: &PipelineStep<'_>,
) -> Result<Answer, tokio_postgres::Error> {
    match (step, prepared) {
        (PipelineStep::Call { params, .. }, Some(prepared)) => {
            let params: Vec<&(dyn ToSql + Sync)> = params.as_slice().iter().map(|param| param as _).collect();
            // A statement that returns rows returns exactly the rows that it wrote.
            if prepared.columns().is_empty() {
                client.execute(&prepared, &params).await.map(Answer::Affected)
            } else {
                client.query(&prepared, &params).await.map(Answer::Rows)
            }
        }
        (PipelineStep::Command(sql), _) => client.batch_execute(sql).await.map(|()| Answer::Done),
        (PipelineStep::Prepare(statement) | PipelineStep::Call { statement, .. }, _) => {
            let prepared = client.prepare(&to_postgres(statement.postgres)).await?;
            Ok(Answer::Prepared(prepared))
        }
    }
}
