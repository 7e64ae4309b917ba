//! The members that describe a policy and decide nothing. Source: client contract §3.4.

use crate::read::Object;
use crate::violation::Violations;

/// The members that content, access and resource definitions share.
pub(crate) const MEMBERS: [&str; 13] = [
    "id",
    "name",
    "description",
    "rationale",
    "useCases",
    "complianceFrameworks",
    "labels",
    "enabled",
    "appliesTo",
    "action",
    "logic",
    "conditions",
    "except",
];
pub(crate) const USE_CASES: [&str; 9] = [
    "Data Encryption",
    "Public Exposure",
    "Data Sprawl",
    "Organizational Access",
    "Resilience",
    "Runtime Safety",
    "Credential Risk",
    "AI Model Governance",
    "Shadow AI",
];
pub(crate) const FRAMEWORKS: [&str; 8] = [
    "Security Basics",
    "NIST",
    "CIS",
    "GDPR",
    "HIPAA",
    "PCI DSS",
    "SOC 2",
    "OWASP",
];

/// Returns the id.
pub(super) fn id<'a>(definition: Object<'a>, faults: &mut Violations) -> Option<&'a str> {
    let id = definition.required_text("id", 1..=256, faults)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "._:@/-".contains(c);
    if !id.starts_with(|c: char| c.is_ascii_alphanumeric()) || !id.chars().all(fits) {
        faults.add(
            definition.at("id"),
            "must start with a letter or digit and hold only letters, digits and . _ : @ / -",
        );
        return None;
    }
    Some(id)
}

/// Checks the describing members, and that no unknown one stands beside them and `own`.
pub(super) fn check(definition: Object<'_>, own: &[&str], faults: &mut Violations) {
    let names: Vec<&str> = MEMBERS
        .iter()
        .chain(["exceptions"].iter())
        .chain(own)
        .copied()
        .collect();
    definition.only(&names, faults);
    definition.required_text("name", 1..=4096, faults);
    definition.text("description", 1..=4096, faults);
    definition.text("rationale", 1..=4096, faults);
    definition.words("useCases", 0..=9, &USE_CASES, faults);
    definition.words("complianceFrameworks", 0..=8, &FRAMEWORKS, faults);
    definition.texts("labels", 0..=256, &(1..=4096), faults);
}
