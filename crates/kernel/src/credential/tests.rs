//! What a credential is good for, and how tokens are recognized.

use super::*;
use crate::context::OperationContext;
use crate::db::{Row, Statement, Tx};
use crate::token::Form;

/// Tokens of which nobody has any.
pub(crate) struct NoSchemes(&'static str, Option<Form>, Reach);

/// Of a principal, of an item, of a session.
pub(crate) const OURS: NoSchemes = NoSchemes("ours", Some(Form::new("prov_sat_")), Reach::Principal);
const OF_ITEMS: NoSchemes = NoSchemes("of items", Some(Form::new("prov_gwt_")), Reach::Item);
const THEIRS: NoSchemes = NoSchemes("theirs", None, Reach::Session);

impl TokenScheme for NoSchemes {
    fn name(&self) -> &'static str {
        self.0
    }

    fn form(&self) -> Option<Form> {
        self.1
    }

    fn reach(&self) -> Reach {
        self.2
    }

    fn lookup(&self) -> Option<&'static Statement> {
        None
    }

    fn read(&self, _row: &Row<'_>) -> Result<Credential> {
        Err(invalid_token())
    }

    fn first_use(&self, _cx: &mut OperationContext<'_>, _token_id: &str) -> Result<()> {
        Ok(())
    }

    fn touch(&self, _cx: &mut OperationContext<'_>, _used: &Use) -> Result<()> {
        Ok(())
    }
}

impl Sessions for NoSchemes {
    fn began(&self) -> &'static str {
        "session.began"
    }

    fn open(&self, _cx: &mut OperationContext<'_>, _verified: &VerifiedToken) -> Result<()> {
        Ok(())
    }

    fn admit(&self, _tx: &mut Tx<'_>, _credential: &Credential, _client: &McpClient) -> Result<Admission> {
        Ok(Admission::New)
    }

    fn join(
        &self,
        _cx: &mut OperationContext<'_>,
        _credential: &Credential,
        _client: &McpClient,
    ) -> Result<()> {
        Ok(())
    }
}

fn credential() -> Credential {
    Credential {
        organization: OrganizationId::parse("acme").unwrap(),
        kind: "service_account",
        principal_id: "sa_1".into(),
        display: "bot".into(),
        role: Some(Role::Admin),
        account_scopes: None,
        token_scopes: None,
        enabled: true,
        token_id: "sat_1".into(),
        prefix: "prov_sat_x".into(),
        is_own: true,
        mac: vec![],
        pepper_id: "pepper-1".into(),
        issued_at: None,
        expires_at: Timestamp::from_ms(10_000),
        revoked_at: None,
        self_rotated: false,
        replay_pending: false,
        last_used_at: None,
        item: None,
        client: None,
        binding: Binding::Bearer,
    }
}

#[test]
fn debug_shows_whose_it_is_and_nothing_that_opens_a_door() {
    let verified = VerifiedToken {
        organization: OrganizationId::parse("acme").unwrap(),
        grant: "grant-of-somebody".into(),
        client: None,
        principal: None,
        scopes: ScopeSet::all(),
        grows: false,
        expires_at: Timestamp::from_ms(1),
        opening: None,
    };
    let said = format!("{verified:?}");
    assert!(
        said.contains("acme") && !said.contains("grant-of-somebody"),
        "{said}"
    );
    let presented = BearerToken {
        caller: Caller {
            scheme: Scheme(&OURS),
            lookup: "public-part".into(),
            verified: None,
            proof: None,
        },
        token: Some(crate::Secret::new("prov_sat_the_secret".to_owned())),
    };
    let said = format!("{presented:?}");
    assert!(said.contains("ours") && !said.contains("the_secret"), "{said}");
}

/// Proves CR-1.
#[test]
fn expiry_is_exclusive_to_the_millisecond() {
    assert!(credential().authenticate(Timestamp::from_ms(9_999)).is_ok());
    let error = credential().authenticate(Timestamp::from_ms(10_000)).unwrap_err();
    assert_eq!(error.code(), Code::TokenExpired);
}

/// Proves CR-1.
#[test]
fn a_revoked_token_serves_only_the_replay_of_its_own_rotation() {
    let mut revoked = credential();
    revoked.expires_at = Timestamp::from_ms(10_000_000);
    revoked.revoked_at = Some(Timestamp::from_ms(1_000));
    assert_eq!(
        revoked
            .authenticate(Timestamp::from_ms(1_000))
            .unwrap_err()
            .code(),
        Code::TokenRevoked
    );
    revoked.self_rotated = true;
    assert!(
        revoked
            .authenticate(Timestamp::from_ms(600_999))
            .unwrap()
            .replay_only
    );
    assert!(revoked.authenticate(Timestamp::from_ms(601_000)).is_err());
    revoked.self_rotated = false;
    assert!(revoked.authenticate(Timestamp::from_ms(999)).is_err());
}

#[test]
fn one_header_of_a_known_scheme_carries_the_token() {
    let read = |values: &[&[u8]]| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, http::HeaderValue::from_bytes(value).unwrap());
        }
        let found = bearer(&headers).map(|(scheme, token)| (scheme == AuthScheme::Dpop, token.to_owned()));
        found.map_err(|error| error.member("presented").is_some())
    };
    assert_eq!(read(&[b"Bearer t"]), Ok((false, "t".into())));
    assert_eq!(read(&[b"bEARER t"]), Ok((false, "t".into())));
    assert_eq!(read(&[b"DPoP t"]), Ok((true, "t".into())));
    assert_eq!(read(&[]), Err(false), "nothing was presented");
    for wrong in [
        &b"Bearer"[..],
        b"Bearer ",
        b"DPoP ",
        b"Basic t",
        b"t",
        b"Bearer \xff",
    ] {
        assert_eq!(read(&[wrong]), Err(true), "{wrong:?}");
    }
    assert_eq!(read(&[b"Bearer t", b"Bearer t"]), Err(true), "two");
    let longest = [&b"Bearer "[..], &[b't'; MAX_TOKEN_BYTES]].concat();
    assert!(read(&[&longest]).is_ok());
    assert_eq!(read(&[&[&longest[..], b"t"].concat()]), Err(true));
}

/// Says yes to everything that it is asked about.
struct TrustingAreas;

impl Verifier for TrustingAreas {
    fn verify<'a>(
        &'a self,
        token: &'a str,
        _ask: TokenCheck<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<VerifiedToken>> + Send + 'a>> {
        Box::pin(async move {
            Ok(VerifiedToken {
                organization: OrganizationId::parse("acme").unwrap(),
                grant: token.to_owned(),
                client: None,
                principal: None,
                scopes: ScopeSet::default(),
                grows: false,
                expires_at: Timestamp::EPOCH,
                opening: None,
            })
        })
    }
}

#[tokio::test]
async fn tokens_of_ours_are_never_shown_to_the_verifier() {
    let schemes = |delegated: Option<&'static dyn Sessions>| Schemes {
        own: &[&OURS, &OF_ITEMS],
        delegated,
    };
    let recognize = async |value: &str, verifier: Option<&dyn Verifier>| {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, http::HeaderValue::from_str(value).unwrap());
        let ask = TokenCheck {
            entry_point: &EntryPoint::Http,
            method: &Method::GET,
            path: "/",
            headers: &headers,
            origin: &Origin::internal(Timestamp::EPOCH, &mut crate::entropy::UnitRng::new([2; 32])),
        };
        let found = BearerToken::recognize(&schemes(Some(&THEIRS)), verifier, ask)
            .await
            .ok()?;
        Some((
            found.scheme(),
            found.caller.lookup.clone(),
            found.verified().is_some(),
        ))
    };
    let made = |form| {
        let minted = token::mint(form, &mut crate::entropy::UnitRng::new([1; 32]));
        (minted.token.expose().clone(), minted.lookup_id)
    };
    let trusting = Some(&TrustingAreas as &dyn Verifier);
    for scheme in [Scheme(&OURS), Scheme(&OF_ITEMS)] {
        let (text, lookup) = made(scheme.form().unwrap());
        let found = recognize(&format!("Bearer {text}"), trusting).await;
        assert_eq!(found, Some((scheme, lookup, false)));
        assert_eq!(recognize(&format!("DPoP {text}"), trusting).await, None);
    }
    let (refresh, _) = made(Form::new("prov_mrt_"));
    assert_eq!(recognize(&format!("Bearer {refresh}"), trusting).await, None);
    assert_eq!(recognize("Bearer prov_typo", trusting).await, None);
    let theirs = Some((Scheme(&THEIRS), "theirs".to_owned(), true));
    assert_eq!(recognize("Bearer theirs", trusting).await, theirs);
    assert_eq!(recognize("DPoP theirs", trusting).await, theirs);
    assert_eq!(recognize("Bearer theirs", None).await, None);
    assert!(
        schemes(None).sessions().is_err(),
        "without sessions none is delegated"
    );
}

#[test]
fn who_has_no_role_is_known_and_may_do_nothing() {
    let without = Credential {
        role: None,
        ..credential()
    };
    let actor = without.authenticate(Timestamp::EPOCH).unwrap();
    assert!(!actor.has_role && credential().authenticate(Timestamp::EPOCH).unwrap().has_role);
    assert_eq!(actor.permission, Permission::none());
}

/// Proves CR-1.
#[test]
fn a_disabled_account_is_a_stranger() {
    let mut disabled = credential();
    disabled.enabled = false;
    assert_eq!(
        disabled.authenticate(Timestamp::EPOCH).unwrap_err().code(),
        Code::Unauthenticated
    );
}

/// Its 256 bits are what keeps a token from being guessed: none of them may be left out.
/// Proves CR-1.
#[test]
fn a_mac_that_differs_in_one_bit_or_in_its_length_is_another_tokens() {
    let dir = std::env::temp_dir().join(format!("provost-credential-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let entropy = crate::entropy::SeededEntropy::new(1);
    let keys = Keys::create(&dir, Timestamp::EPOCH, &entropy).unwrap();
    let presented = BearerToken {
        caller: Caller {
            scheme: Scheme(&OURS),
            lookup: "x".into(),
            verified: None,
            proof: None,
        },
        token: Some(crate::Secret::new("prov_sat_x".to_owned())),
    };
    let (pepper, mac) = keys.token_mac_current("prov_sat_x");
    let pepper = pepper.as_str();
    let stored = |mac: &[u8], pepper: &str| Credential {
        mac: mac.to_vec(),
        pepper_id: pepper.to_owned(),
        ..credential()
    };
    assert!(presented.matches(&stored(&mac, pepper), &keys).unwrap());
    for bit in 0..256 {
        let mut other = mac;
        other[bit / 8] ^= 1 << (bit % 8);
        assert!(
            !presented.matches(&stored(&other, pepper), &keys).unwrap(),
            "bit {bit}"
        );
    }
    for length in [0, 1, 8, 16, 31] {
        assert!(
            !presented.matches(&stored(&mac[..length], pepper), &keys).unwrap(),
            "{length} bytes"
        );
    }
    // An unknown pepper is our own row's word: nobody is turned away for it.
    let error = presented.matches(&stored(&mac, "pepper-2"), &keys).unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
    std::fs::remove_dir_all(&dir).unwrap();
}

/// Proves CR-2, CR-3.
#[test]
fn a_delegated_token_can_do_what_it_and_its_session_both_say_until_the_first_of_them_ends() {
    let caller = |scopes: &[&str], ms| Caller {
        scheme: Scheme(&THEIRS),
        lookup: "x".into(),
        verified: Some(Arc::new(VerifiedToken {
            organization: OrganizationId::parse("acme").unwrap(),
            grant: "x".into(),
            client: Some("client".into()),
            principal: Some("sa_1".into()),
            scopes: ScopeSet::of(scopes),
            grows: false,
            expires_at: Timestamp::from_ms(ms),
            opening: None,
        })),
        proof: None,
    };
    let session = |scopes: Option<&[&str]>| Credential {
        token_scopes: scopes.map(ScopeSet::of),
        client: Some("client".into()),
        ..credential()
    };
    let bound = caller(&["audit:read", "events:write"], 5_000)
        .bound(session(Some(&["events:read", "audit:export"])))
        .unwrap();
    assert_eq!(bound.token_scopes, Some(ScopeSet::of(&["events:read"])));
    assert_eq!(bound.expires_at, Timestamp::from_ms(5_000));
    let bound = caller(&["audit:read"], 50_000).bound(session(None)).unwrap();
    assert_eq!(bound.token_scopes, Some(ScopeSet::of(&["audit:read"])));
    assert_eq!(bound.expires_at, Timestamp::from_ms(10_000));
    // Each alone: another organization, another client, no client, another principal.
    for foreign in [
        Credential {
            organization: OrganizationId::parse("umbrella").unwrap(),
            ..session(None)
        },
        Credential {
            client: Some("client-2".into()),
            ..session(None)
        },
        Credential {
            client: None,
            ..session(None)
        },
        Credential {
            principal_id: "sa_2".into(),
            ..session(None)
        },
    ] {
        let refused = caller(&["audit:read"], 5_000).bound(foreign).unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated);
    }
}
