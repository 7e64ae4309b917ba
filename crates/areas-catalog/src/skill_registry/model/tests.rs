use super::*;
use proptest::prelude::*;

fn known(text: &str, digest: &str, number: i64, is_withdrawn: bool) -> VersionSummary {
    VersionSummary {
        version: Version::parse(text).unwrap(),
        digest: digest.to_owned(),
        number,
        withdrawn_at: is_withdrawn.then_some(Timestamp::EPOCH),
    }
}

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

#[test]
fn a_prerelease_is_the_latest_only_where_no_release_is() {
    let mut all = vec![
        known("1.0.0-rc.1", "a", 1, false),
        known("1.0.0-rc.2", "b", 2, false),
    ];
    assert_eq!(latest(&all).unwrap().number, 2);
    all.push(known("0.9.0", "c", 3, false));
    assert_eq!(latest(&all).unwrap().number, 3);
    all[2].withdrawn_at = Some(Timestamp::EPOCH);
    assert_eq!(latest(&all).unwrap().number, 2);
    all[0].withdrawn_at = Some(Timestamp::EPOCH);
    all[1].withdrawn_at = Some(Timestamp::EPOCH);
    assert!(latest(&all).is_none());
}

#[test]
fn a_digest_means_the_newest_version_of_that_content_that_is_there() {
    let all = [
        known("1.0.0", "same", 1, false),
        known("1.0.1", "other", 2, false),
        known("1.0.2", "same", 3, false),
        known("1.0.3", "same", 4, true),
    ];
    let by_digest = VersionReference::Digest("same".to_owned());
    assert_eq!(find(&all, Some(&by_digest)).unwrap().number, 3);
    let by_number = VersionReference::Version(version("1.0.3"));
    assert_eq!(find(&all, Some(&by_number)).unwrap().number, 4);
    assert!(find(&all, Some(&VersionReference::Version(version("2.0.0")))).is_none());
}

#[test]
fn a_version_is_counted_up_from_the_highest() {
    assert_eq!(
        publication(&[], None, "a").unwrap(),
        Publication::New(version("1.0.0"))
    );
    let all = [known("1.2.9", "a", 1, false), known("1.2.10-rc.1", "b", 2, false)];
    assert_eq!(
        publication(&all, None, "c").unwrap(),
        Publication::New(version("1.2.11"))
    );
    assert_eq!(
        publication(&all, None, "a").unwrap(),
        Publication::Nothing(version("1.2.9"))
    );
}

/// Proves SK-1.
#[test]
fn a_published_version_keeps_its_content() {
    let all = [known("1.0.0", "a", 1, false)];
    let asked = version("1.0.0");
    assert_eq!(
        publication(&all, Some(&asked), "a").unwrap(),
        Publication::Nothing(asked.clone())
    );
    let refused = publication(&all, Some(&asked), "b").unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyExists);
}

/// Proves SK-2.
#[test]
fn withdrawn_content_is_not_published_again() {
    let all = [known("1.0.0", "bad", 1, true), known("1.0.1", "good", 2, false)];
    for asked in [None, Some(version("1.0.0")), Some(version("3.0.0"))] {
        let refused = publication(&all, asked.as_ref(), "bad").unwrap_err();
        assert_eq!(refused.code(), Code::Conflict, "{asked:?}");
    }
}

/// Proves SK-5.
#[test]
fn places_differ_by_every_part() {
    let place = |client: &str, device: Option<&str>, path: Option<&str>| InstallPlace {
        client: client.to_owned(),
        device: device.map(str::to_owned),
        path: path.map(str::to_owned),
    };
    let keys = [
        place("a", None, None).key(),
        place("b", None, None).key(),
        place("a", Some("x"), None).key(),
        place("a", None, Some("x")).key(),
        place("a", Some("x"), Some("x")).key(),
        place("a", Some("null"), None).key(),
    ];
    let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
    assert_eq!(distinct.len(), keys.len());
    assert!(keys.iter().all(|key| key.len() == 64));
}

proptest! {
    /// Publishing adds a version that was not there, above all others unless one was asked for.
    #[test]
    fn a_new_version_is_new(numbers in proptest::collection::vec((0_u32..3, 0_u32..3, 0_u32..3, any::<bool>()), 0..8)) {
        let mut all: Vec<VersionSummary> = Vec::new();
        for (place, (a, b, c, is_withdrawn)) in numbers.into_iter().enumerate() {
            let text = format!("{a}.{b}.{c}");
            if all.iter().all(|k| k.version != version(&text)) {
                all.push(known(&text, &format!("d{place}"), i64::try_from(place).unwrap(), is_withdrawn));
            }
        }
        let Ok(Publication::New(new)) = publication(&all, None, "new content") else {
            panic!("new content is a new version");
        };
        prop_assert!(all.iter().all(|k| k.version < new));
    }
}
