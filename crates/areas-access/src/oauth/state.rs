//! What the area keeps in the process: keys, issuers, caches. Nothing of it says that a token is valid: sessions do.
//!
//! Keeps KY-1.

use super::documents::Documents;
use super::issuers::IssuerTrust;
use super::settings::Settings;
use super::ttl_cache::Recent;
use super::turns::Slots;
use super::workloads::Workloads;
use aws_lc_rs::hmac;
use provost_kernel::auth::OrganizationId;
use provost_kernel::error::{Error, Result};
use provost_kernel::keys::{Keys, MacPurpose};
use provost_kernel::time::Clock;
use provost_kernel::{Kernel, Secret};
use provost_oauth::access_token::{self, Issuer, TokenPreview};
use provost_oauth::dpop::ReplayCache;
use provost_oauth::sign::{NewAccessToken, Signer};
use provost_oauth::{Algorithm, KeySet, Refusal, is_same_url};
use provost_outbound::Fetcher;
use serde_json::json;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// LIMIT: proofs of possession that are remembered for a minute; 100 bytes each.
const MAX_PROOFS: usize = 100_000;
/// LIMIT: proofs of machines: three times what an organization may have in the window of [`super::shares`]. No organization has more
/// of it than is free, so that however many are noisy, one that is not finds room.
const MAX_OWN_PROOFS: usize = 150_000;
/// LIMIT: assertions of clients that are no rows, remembered for minutes; 100 bytes each.
const MAX_ASSERTIONS: usize = 10_000;
/// LIMIT: verified tokens that are remembered.
const MAX_TOKENS: usize = 10_000;

/// Separates the key of what is remembered from the cursors', with which it shares a sub-key.
const LABEL: &[u8] = b"provost/oauth/recent/v1";

/// One of the kernel's extras, as `Arc<Oauth>`.
pub struct Oauth {
    /// What the operator declared.
    pub settings: Settings,
    /// Our own issuer, and what resources begin with.
    pub url: String,
    pub(super) issuers: Vec<Arc<IssuerTrust>>,
    pub(super) clock: Arc<dyn Clock>,
    /// The proofs of those who called a resource. Those of the token endpoint are in the store (OC-8).
    pub(super) proofs: ReplayCache,
    /// The proofs of machines beside tokens of ours: apart, so that no machine fills the memory that people need.
    pub(super) own_proofs: ReplayCache,
    /// How many of these each token and each organization has.
    pub(super) own_shares: super::shares::ProofShares,
    /// Assertions of clients that are no rows: a request that fails has no organization in which one could be spent.
    pub(super) assertions: ReplayCache,
    pub(super) tokens: Recent<super::verifier::AcceptedToken>,
    /// Why tokens were refused a moment ago.
    pub(super) rejected: Recent<Refusal>,
    /// Turns at asking an issuer about a token.
    pub(super) questions: Slots,
    pub(super) documents: Documents,
    /// The issuers of workloads' tokens.
    pub(super) workloads: Workloads,
    /// What is made of the installation's keys.
    ours: RwLock<Arc<OwnServer>>,
    keys: Keys,
    fetcher: OnceLock<Option<Arc<Fetcher>>>,
}

/// Ourselves, with the keys that were known at a time.
pub(super) struct OwnServer {
    version: u64,
    /// Those that wait to be activated included: what another server signed is read, and whoever keeps our public keys has the
    /// next one in time.
    signers: Vec<Signer>,
    /// The place of the one that signs.
    current: usize,
    /// Ourselves, as an issuer.
    pub issuer: Issuer,
}

impl OwnServer {
    /// Errors: `Internal` when a signing key makes no key for tokens.
    fn new(url: &str, keys: &Keys) -> Result<Self> {
        let seeds = keys.access_token_seeds();
        let signers = seeds
            .all
            .iter()
            .map(|(id, seed)| Signer::from_ed25519_seed(seed, id));
        let signers: Vec<Signer> = signers.collect::<std::result::Result<_, _>>().map_err(fault)?;
        let current = signers.iter().position(|signer| signer.kid() == seeds.current);
        Ok(Self {
            version: seeds.version,
            current: current.ok_or_else(|| Error::internal("there is no key for access tokens"))?,
            issuer: Issuer {
                url: url.to_owned(),
                algorithms: vec![Algorithm::EdDsa],
                keys: Arc::new(KeySet::parse(key_set(&signers).as_bytes()).map_err(fault)?),
            },
            signers,
        })
    }

    fn knows(&self, peeked: &TokenPreview) -> bool {
        let keys = &self.issuer.keys;
        keys.find(peeked.kid.as_deref(), peeked.algorithm).is_ok()
    }
}

impl Oauth {
    /// Makes the state of a server.
    ///
    /// Errors: `Internal` when a signing key makes no key for tokens.
    pub fn new(settings: Settings, url: &str, keys: &Keys, clock: Arc<dyn Clock>) -> Result<Self> {
        let ours = OwnServer::new(url, keys)?;
        let issuers = settings.issuers.iter().cloned();
        let key = hmac::Key::new(hmac::HMAC_SHA256, &keys.mac(MacPurpose::Cursor, &[LABEL]));
        Ok(Self {
            issuers: issuers.map(|issuer| Arc::new(IssuerTrust::new(issuer))).collect(),
            url: url.to_owned(),
            settings,
            clock,
            ours: RwLock::new(Arc::new(ours)),
            keys: keys.clone(),
            proofs: ReplayCache::new(MAX_PROOFS),
            own_proofs: ReplayCache::new(MAX_OWN_PROOFS),
            own_shares: super::shares::ProofShares::default(),
            assertions: ReplayCache::new(MAX_ASSERTIONS),
            tokens: Recent::new(MAX_TOKENS, &key),
            rejected: Recent::new(MAX_TOKENS, &key),
            questions: Slots::default(),
            documents: Documents::new(&key),
            workloads: Workloads::default(),
            fetcher: OnceLock::new(),
        })
    }

    /// Returns the state of a running server.
    ///
    /// Errors: `Internal` for a kernel that was started without it.
    pub fn of(kernel: &Kernel) -> Result<&Arc<Self>> {
        let state = kernel.extra::<Arc<Self>>();
        state.ok_or_else(|| Error::internal("the server was started without OAuth"))
    }

    /// Returns the two resources that tokens are for, the API first.
    pub fn resources(&self) -> [String; 2] {
        super::AUDIENCES.map(|path| format!("{}{path}", self.url))
    }

    /// Returns the resource that a name means, in our own spelling.
    pub(super) fn resource(&self, name: &str) -> Option<String> {
        self.resources().into_iter().find(|ours| is_same_url(ours, name))
    }

    /// Returns the present. Units: seconds since the Unix epoch.
    pub(super) fn now_secs(&self) -> i64 {
        self.clock.now().as_ms().div_euclid(1000)
    }

    /// Returns the trusted issuer of a name.
    pub(super) fn issuer(&self, url: &str) -> Option<&Arc<IssuerTrust>> {
        self.issuers.iter().find(|issuer| issuer.declared.url == url)
    }

    /// Returns what fetches from other servers; made when it is first needed, for it reads the system's certificates.
    ///
    /// Errors: `Unavailable` when TLS cannot be set up.
    pub(super) fn fetcher(&self) -> Result<&Arc<Fetcher>> {
        let make = || Fetcher::new(self.settings.fetch.options()).ok().map(Arc::new);
        let fetcher = self.fetcher.get_or_init(make).as_ref();
        fetcher.ok_or_else(|| Error::unavailable("no other server can be asked"))
    }

    /// Signs an access token with the current key.
    ///
    /// Errors: `Internal` when there is no key.
    pub(super) fn sign(&self, claims: &NewAccessToken) -> Result<Secret<String>> {
        let ours = self.ours();
        let signer = ours.signers.get(ours.current);
        let signer = signer.ok_or_else(|| Error::internal("there is no key for access tokens"))?;
        Ok(Secret::new(signer.access_token(claims)))
    }

    /// Returns ourselves with the keys of this moment.
    fn ours(&self) -> Arc<OwnServer> {
        let known = self.ours.read().unwrap_or_else(PoisonError::into_inner).clone();
        if known.version == self.keys.version() {
            return known;
        }
        match OwnServer::new(&self.url, &self.keys) {
            Ok(ours) => {
                let ours = Arc::new(ours);
                *self.ours.write().unwrap_or_else(PoisonError::into_inner) = ours.clone();
                ours
            }
            Err(error) => {
                tracing::error!(cause = ?error.private(), "the keys for access tokens stay as they were: {error}");
                known
            }
        }
    }

    /// Returns ourselves as the issuer of a token. A token that names a key which is not known makes the server look for it; one
    /// that stays unknown is the caller's word, and refused as such.
    fn ours_for(&self, peeked: &TokenPreview) -> Arc<OwnServer> {
        let ours = self.ours();
        if ours.knows(peeked) {
            return ours;
        }
        let number = peeked.kid.as_deref().and_then(|kid| kid.strip_prefix("oauth-"));
        if number.is_some_and(|number| number.parse::<u32>().is_ok()) {
            self.keys.look();
        }
        self.ours()
    }

    /// Returns ourselves as the issuer of a token, as it spells us: `public_url` may have been written otherwise when it was issued.
    pub(super) fn own_issuer_of(&self, peeked: &TokenPreview) -> Option<Issuer> {
        is_same_url(&peeked.issuer, &self.url).then(|| Issuer {
            url: peeked.issuer.clone(),
            ..self.ours_for(peeked).issuer.clone()
        })
    }

    /// Says whether a token calls itself ours and names a key that is not known. Why it was refused may be over in a moment.
    pub(super) fn names_unknown_key(&self, token: &str) -> bool {
        access_token::peek(token)
            .is_ok_and(|peeked| is_same_url(&peeked.issuer, &self.url) && !self.ours().knows(&peeked))
    }

    /// Returns the public keys of our own tokens.
    pub(super) fn key_set(&self) -> String {
        key_set(&self.ours().signers)
    }
}

fn key_set(signers: &[Signer]) -> String {
    let keys: Vec<_> = signers.iter().map(Signer::public_key).collect();
    json!({ "keys": keys }).to_string()
}

fn fault(refusal: provost_oauth::Refusal) -> Error {
    Error::internal(refusal.to_string())
}

/// Says whether an issuer may speak of an organization.
pub(super) fn is_pinned(issuer: &IssuerTrust, organization: &OrganizationId) -> bool {
    issuer.declared.organizations.contains(organization)
}
