//! What every part of a run knows: the two sets, what they can see, what is asked.

use super::Filters;
use crate::record::AttributeProjection;
use provost_policy::rego::Runner;
use provost_policy::{Field, PolicySet, Projection, Register};
use std::collections::HashSet;
use std::sync::Arc;

pub(super) struct RunContext<'a> {
    pub baseline: &'a PolicySet,
    pub candidate: &'a PolicySet,
    /// What the words of events and policies mean.
    pub register: &'a Arc<Register>,
    pub projection: Projection,
    pub lens: AttributeProjection,
    pub places: AttributeIndexes,
    pub subjects: Option<HashSet<&'a str>>,
    pub tools: Option<HashSet<&'a str>>,
    pub resources: Option<HashSet<&'a str>>,
    /// Whether some decision depends on earlier events.
    pub has_history: bool,
    pub has_rego: bool,
    /// Who runs modules.
    pub modules: &'a dyn Runner,
}

/// Where in the lens the attributes are that breakdowns and filters read.
pub(super) struct AttributeIndexes {
    /// User, service account, device.
    pub subject: [usize; 3],
    /// The tool, and the tool of an MCP server.
    pub tool: [usize; 2],
    pub resource: Option<usize>,
}

impl<'a> RunContext<'a> {
    pub fn new(
        baseline: &'a PolicySet,
        candidate: &'a PolicySet,
        filters: &'a Filters,
        register: &'a Arc<Register>,
        modules: &'a dyn Runner,
    ) -> Self {
        let projection = Projection::of(&[baseline, candidate]).knowing(register);
        let mut fields = projection.fields().to_vec();
        let subject = [Field::USER, Field::SERVICE_ACCOUNT, Field::DEVICE];
        let tool = [Field::TOOL, Field::MCP_TOOL];
        fields.extend(subject);
        fields.extend(tool);
        let has_resources = !filters.resource_ids.is_empty();
        if has_resources {
            fields.push(Field::RESOURCE);
        }
        let lens = AttributeProjection::new(fields);
        let place = |field: Field| lens.fields().partition_point(|other| *other < field);
        Self {
            baseline,
            candidate,
            register,
            places: AttributeIndexes {
                subject: subject.map(place),
                tool: tool.map(place),
                resource: has_resources.then(|| place(Field::RESOURCE)),
            },
            projection,
            lens,
            subjects: wanted(&filters.subject_ids),
            tools: wanted(&filters.tools),
            resources: wanted(&filters.resource_ids),
            has_history: baseline.has_history() || candidate.has_history(),
            has_rego: baseline.has_rego() || candidate.has_rego(),
            modules,
        }
    }
}

fn wanted(list: &[String]) -> Option<HashSet<&str>> {
    (!list.is_empty()).then(|| list.iter().map(String::as_str).collect())
}
