use super::*;

fn release(id: &str, digest: &str, created_ms: i64) -> Release {
    Release {
        id: ReleaseId::from_store(id.to_owned()),
        version: 2,
        store_epoch: 0,
        kind: ReleaseKind::Publish,
        source_release_id: None,
        content_digest: ContentDigest::from_text(digest),
        schema_version: 1,
        reason: "a test".into(),
        created_at: Timestamp::from_ms(created_ms),
        created_by: Principal {
            kind: "service_account".into(),
            id: "sa_1".into(),
        },
    }
}

fn profile(poll_interval_secs: i64) -> Profile {
    Profile {
        id: ProfileId::from_store("prof_1".into()),
        seq: 1,
        name: "laptops".into(),
        target: Target::GenericJson,
        client_version: None,
        auto_publish: AutoPublish::Off,
        on_unavailable: OnUnavailable::LastKnown,
        poll_interval_secs,
        status: ProfileStatus::Active,
        current_release_id: Some(ReleaseId::from_store("mcr_2".into())),
        created_at: Timestamp::EPOCH,
        updated_at: Timestamp::EPOCH,
    }
}

#[test]
fn a_machine_drifts_when_it_differs_for_more_than_two_intervals() {
    use TargetState::{Applied, Drifted, Failed, Pending, Verified};
    let (profile, current) = (profile(60), release("mcr_2", "new", 1_000_000));
    // Release, digest, since when, what it says, now, where it stands.
    let cases = [
        ("mcr_2", "new", 0, ReportedState::Applied, 9_000_000, Applied),
        ("mcr_2", "new", 0, ReportedState::Verified, 9_000_000, Verified),
        // Another release with this content: it is in place, whatever became of that release.
        ("mcr_1", "new", 0, ReportedState::Verified, 9_000_000, Verified),
        ("mcr_1", "new", 0, ReportedState::Failed, 9_000_000, Applied),
        ("mcr_2", "old", 0, ReportedState::Failed, 9_000_000, Failed),
        // Two intervals run from the release, or from the first report of the difference, whichever is later.
        ("mcr_1", "old", 0, ReportedState::Applied, 1_120_000, Pending),
        ("mcr_1", "old", 0, ReportedState::Applied, 1_120_001, Drifted),
        ("mcr_1", "old", 0, ReportedState::Failed, 1_120_001, Drifted),
        (
            "mcr_2",
            "edited",
            5_000_000,
            ReportedState::Applied,
            5_120_000,
            Pending,
        ),
        (
            "mcr_2",
            "edited",
            5_000_000,
            ReportedState::Applied,
            5_120_001,
            Drifted,
        ),
    ];
    for (release_id, digest, since, state, now, expected) in cases {
        let machine = Machine {
            target_id: "m".into(),
            seq: 1,
            name: None,
            release_id: ReleaseId::from_store(release_id.into()),
            content_digest: ContentDigest::from_text(digest),
            digest_since: Timestamp::from_ms(since),
            state,
            message: None,
            first_reported_at: Timestamp::EPOCH,
            last_reported_at: Timestamp::EPOCH,
            reported_by: current.created_by.clone(),
        };
        let found = machine.state(&profile, Some(&current), Timestamp::from_ms(now));
        assert_eq!(found, expected, "{release_id} {digest} {since} {state:?} {now}");
        assert_eq!(machine.state(&profile, None, Timestamp::from_ms(now)), Pending);
    }
}
