//! What is declared about an operation.

use super::second_person::SecondPerson;
use crate::auth::Role;
use crate::rate::{Bucket, buckets};

provost_words::word! {
    /// The HTTP method of an operation.
    #[derive(Hash, PartialOrd, Ord)]
    pub enum Method {
        /// Reads.
        Get = "GET",
        /// Creates or acts.
        Post = "POST",
        /// Replaces.
        Put = "PUT",
        /// Changes the members that are present.
        Patch = "PATCH",
        /// Removes. The mutation metadata travels in headers.
        Delete = "DELETE",
    }
}

impl Method {
    /// Says whether a request of this method carries a body.
    pub const fn has_body(self) -> bool {
        matches!(self, Method::Post | Method::Put | Method::Patch)
    }
}

/// Whether an operation changes state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Runs in one snapshot, on a reader.
    Read,
    /// Runs in a unit of work, on the writer.
    Write,
}

/// Who may call (D3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Any authenticated principal of the organization.
    Authenticated,
    /// A scope and one of these roles.
    Scoped {
        /// The scope that is needed.
        scope: &'static str,
        /// The roles that may use it here.
        roles: &'static [Role],
    },
    /// As `Scoped`, where either of two scopes suffices.
    ScopedEither {
        /// The scope that a refusal names.
        scope: &'static str,
        /// The other one.
        other: &'static str,
        /// The roles that may use either here.
        roles: &'static [Role],
    },
    /// As `Scoped`, where both scopes are needed.
    ScopedBoth {
        /// The scope of the operation's own toolset.
        scope: &'static str,
        /// The one that is needed beside it.
        other: &'static str,
        /// The roles that may use them here.
        roles: &'static [Role],
    },
    /// A principal of this kind, by a token of its own, and nobody else: such a principal has no role and no scopes, and may
    /// call nothing else. Where a parameter of the path is named, the record that it names must be the caller.
    OfKind {
        /// The kind of the principal.
        kind: &'static str,
        /// The path parameter that names the caller; empty where the path names nobody.
        parameter: &'static str,
    },
    /// As `Scoped`, or another scope and any role when the caller is the record that the path names, by a token of its
    /// own ([`Actor::is_itself`]).
    ScopedOrSelf {
        /// The scope that is needed.
        scope: &'static str,
        /// The roles that may use it here.
        roles: &'static [Role],
        /// The scope that suffices for oneself.
        self_scope: &'static str,
        /// The path parameter that names the record.
        parameter: &'static str,
    },
}

/// The rate class of an operation (D1.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateClass {
    /// 100/s, burst 300.
    Read,
    /// 20/s, burst 100.
    Write,
    /// 10/s, burst 50: questions about hundreds of records at once.
    Resolve,
    /// 2 000/s, burst 4 000: what gateways and exporters ask and tell while people work.
    Decide,
    /// 10/s, burst 100: what machines say of themselves, apart from what people and gateways need.
    Machine,
}

impl RateClass {
    /// Returns the bucket of one principal and that of its organization.
    pub const fn buckets(self) -> (&'static Bucket, &'static Bucket) {
        match self {
            RateClass::Read => (&buckets::READ, &buckets::ORGANIZATION_READ),
            RateClass::Write => (&buckets::WRITE, &buckets::ORGANIZATION_WRITE),
            RateClass::Resolve => (&buckets::RESOLVE, &buckets::ORGANIZATION_RESOLVE),
            RateClass::Decide => (&buckets::DECIDE, &buckets::ORGANIZATION_DECIDE),
            RateClass::Machine => (&buckets::MACHINE, &buckets::ORGANIZATION_MACHINE),
        }
    }
}

/// Where a write's reason, key and confirmation travel (D4.1, D4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// In the body or in headers; reason and key are required.
    Required,
    /// In headers alone and optional; the body holds nothing (D10.3). A missing key is made.
    OptionalHeaders,
}

/// Content that is not JSON, as an operation takes it.
#[derive(Clone, Copy, Debug)]
pub struct Consumes {
    /// The media types, without parameters.
    pub media_types: &'static [&'static str],
    /// A request must be complete within this time. Units: seconds.
    pub timeout_secs: u64,
    /// The operation undoes what `Content-Encoding` says; without it, encoded content is refused.
    pub expands: bool,
}

/// What `confirm: true` needs of an operation that otherwise previews (D1.4 step 8).
#[derive(Clone, Copy, Debug)]
pub struct Performance {
    /// The scope.
    pub scope: &'static str,
    /// The roles.
    pub roles: &'static [Role],
}

/// LIMIT: bytes and nesting of a body (D1.3, D1.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyLimit {
    /// Bytes.
    pub bytes: usize,
    /// Levels of nesting; content that is not JSON has none.
    pub depth: usize,
}

impl BodyLimit {
    /// 256 KiB and 32 levels.
    pub const ORDINARY: Self = Self {
        bytes: 256 * 1024,
        depth: 32,
    };
}

/// What is declared about an operation. Made by [`Meta::read`], [`Meta::query`] or [`Meta::write`].
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, declared by name"
)]
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    /// The OpenAPI operation id, also the audit action and the MCP tool's name.
    pub id: &'static str,
    /// The method.
    pub method: Method,
    /// The path behind `/api/headless/v1/organizations/{organizationId}`. `{name}` is one segment, `{*name}` one or more.
    pub path: &'static str,
    /// The name of one of [`crate::auth::toolsets`].
    pub toolset: &'static str,
    /// Read or write.
    pub kind: Kind,
    /// Who may call.
    pub access: Access,
    /// One line for people.
    pub summary: &'static str,
    /// More, when the summary is not enough.
    pub description: &'static str,
    /// The CLI command: group and verb.
    pub command: [&'static str; 2],
    /// The status of success.
    pub status: u16,
    /// Another status of success with the same answer, for what was there already; see [`crate::OperationContext::status`].
    pub also: Option<u16>,
    /// `confirm: true` is demanded because nothing can undo the act.
    pub confirm: bool,
    /// The refusal of a call without it says what would be lost ([`super::Operation::weigh`]).
    pub weighs: bool,
    /// Every call is an audit entry of its own, reads included (D12.4).
    pub sensitive: bool,
    /// The answer holds a secret that is shown once, so a replay needs the caller's key (D4.8).
    pub reveals_secret: bool,
    /// The rate class.
    pub rate: RateClass,
    /// The media type of the answer.
    pub produces: &'static str,
    /// The statuses to be named in the document, where counting them by the path and the body is not right.
    pub errors: Option<&'static [u16]>,
    /// How much a body may hold. More than the ordinary is read after the caller was authorized (D1.10).
    pub limit: BodyLimit,
    /// The body is not JSON but one of these.
    pub consumes: Option<Consumes>,
    /// Where the mutation metadata travels.
    pub consent: Consent,
    /// Without `confirm: true` the operation reads and shows what it would do.
    pub performance: Option<Performance>,
    /// The query parameter `preview=true` shows what the operation would do.
    pub previews_where_asked: bool,
    /// A token of one item may call, for that item; the operation checks the item (D10.6).
    pub of_item: bool,
    /// What is sent is kept as history, by the operation itself (D9.11).
    pub ingests: bool,
    /// It is what a person says, and no tool of MCP: a model that works for a person does not say it in their place.
    pub of_people: bool,
    /// An organization may want a second person to have said yes before.
    pub second_person: Option<SecondPerson>,
    /// The precondition that it honours.
    pub precondition: Option<Precondition>,
    /// The headers of its answers, beside those that every answer has.
    pub answers: &'static [&'static str],
    /// A body that the operation takes, without the mutation metadata; `{}` where nothing has to be said.
    pub example: &'static str,
    /// What a person wants to see of each item of a list, in this order ([`Meta::columns`]).
    pub columns: &'static [&'static str],
}

/// A header of a request that makes an operation act only under a condition (D1.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// `If-Match`: only while the record is the one that the caller saw.
    Match,
    /// `If-None-Match`: only if the caller has not seen it yet.
    NoneMatch,
}

impl Precondition {
    /// The longest list of entity tags that is read, in bytes.
    pub const LONGEST: usize = 1024;

    /// Returns the name of the header.
    pub const fn header(self) -> &'static str {
        match self {
            Self::Match => "If-Match",
            Self::NoneMatch => "If-None-Match",
        }
    }
}

/// An operation whose access is not declared yet; it is of no use until it is.
#[derive(Clone, Copy, Debug)]
pub struct Draft(Meta);

impl Draft {
    /// Declares who may call: a scope and roles.
    #[must_use]
    pub const fn access(self, scope: &'static str, roles: &'static [Role]) -> Meta {
        self.rule(Access::Scoped { scope, roles })
    }

    /// Declares who may call by an access rule.
    #[must_use]
    pub const fn rule(self, access: Access) -> Meta {
        Meta { access, ..self.0 }
    }
}

impl Meta {
    /// Begins the declaration of a read.
    pub const fn read(id: &'static str, path: &'static str, toolset: &'static str) -> Draft {
        Draft(Self::blank(
            id,
            Method::Get,
            path,
            toolset,
            Kind::Read,
            RateClass::Read,
        ))
    }

    /// Begins the declaration of a read whose question is a body: it takes no reason and no key.
    pub const fn query(id: &'static str, path: &'static str, toolset: &'static str) -> Draft {
        Draft(Self::blank(
            id,
            Method::Post,
            path,
            toolset,
            Kind::Read,
            RateClass::Read,
        ))
    }

    /// Begins the declaration of an operation that keeps what is sent as history: such events are no mutations, so
    /// it takes no reason and no key and leaves no audit entry each (D9.11). It runs as a read does and records by
    /// what it does [later](crate::OperationContext::later).
    pub const fn ingest(id: &'static str, path: &'static str, toolset: &'static str) -> Draft {
        let blank = Self::blank(id, Method::Post, path, toolset, Kind::Read, RateClass::Decide);
        Draft(Self {
            ingests: true,
            ..blank
        })
    }

    /// Begins the declaration of a write.
    pub const fn write(id: &'static str, method: Method, path: &'static str, toolset: &'static str) -> Draft {
        Draft(Self::blank(
            id,
            method,
            path,
            toolset,
            Kind::Write,
            RateClass::Write,
        ))
    }

    const fn blank(
        id: &'static str,
        method: Method,
        path: &'static str,
        toolset: &'static str,
        kind: Kind,
        rate: RateClass,
    ) -> Self {
        Self {
            id,
            method,
            path,
            toolset,
            kind,
            access: Access::Authenticated,
            summary: "",
            description: "",
            command: ["", ""],
            status: 200,
            also: None,
            confirm: false,
            weighs: false,
            sensitive: false,
            reveals_secret: false,
            rate,
            produces: "application/json",
            errors: None,
            limit: BodyLimit::ORDINARY,
            consumes: None,
            consent: Consent::Required,
            performance: None,
            previews_where_asked: false,
            of_item: false,
            ingests: false,
            of_people: false,
            second_person: None,
            precondition: None,
            answers: &[],
            example: "{}",
            columns: &[],
        }
    }

    /// Gives an example of a body, without the mutation metadata. A test reads every example as the operation does.
    #[must_use]
    pub const fn example(self, body: &'static str) -> Self {
        Self {
            example: body,
            ..self
        }
    }

    /// Says what a person wants to see of each item of a list: who, what and when first, so that what a narrow terminal leaves out
    /// is what matters least. A column is the path to a member of an item (`actor.display`); its heading follows from the path,
    /// or stands behind it (`actor.display as who`). The command is not made of an operation that answers a list without columns,
    /// or of a column that its answer does not have.
    #[must_use]
    pub const fn columns(self, columns: &'static [&'static str]) -> Self {
        Self { columns, ..self }
    }

    /// Honours a precondition; [`super::Input::if_match`] or [`super::Input::if_none_match`] holds what was sent.
    #[must_use]
    pub const fn precondition(self, precondition: Precondition) -> Self {
        Self {
            precondition: Some(precondition),
            ..self
        }
    }

    /// Names the headers of its answers, beside those that every answer has; see [`crate::OperationContext::header`].
    #[must_use]
    pub const fn answers(self, headers: &'static [&'static str]) -> Self {
        Self {
            answers: headers,
            ..self
        }
    }

    /// Says in one line what the operation does, and in more words what a caller must know.
    #[must_use]
    pub const fn says(self, summary: &'static str, description: &'static str) -> Self {
        Self {
            summary,
            description,
            ..self
        }
    }

    /// Names the CLI command.
    #[must_use]
    pub const fn command(self, group: &'static str, verb: &'static str) -> Self {
        Self {
            command: [group, verb],
            ..self
        }
    }

    /// Sets the status of success.
    #[must_use]
    pub const fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Names another status of success with the same answer, or 304: without one.
    #[must_use]
    pub const fn also(self, status: u16) -> Self {
        Self {
            also: Some(status),
            ..self
        }
    }

    /// Demands `confirm: true`.
    #[must_use]
    pub const fn confirmed(self) -> Self {
        Self {
            confirm: true,
            ..self
        }
    }

    /// Demands `confirm: true`, and says without it what would be lost ([`super::Operation::weigh`]).
    #[must_use]
    pub const fn weighed(self) -> Self {
        Self {
            confirm: true,
            weighs: true,
            ..self
        }
    }

    /// Gives every call an audit entry.
    #[must_use]
    pub const fn sensitive(self) -> Self {
        Self {
            sensitive: true,
            ..self
        }
    }

    /// Says that the answer holds a secret once.
    #[must_use]
    pub const fn reveals_secret(self) -> Self {
        Self {
            reveals_secret: true,
            ..self
        }
    }

    /// Sets the media type of the answer.
    #[must_use]
    pub const fn produces(self, media_type: &'static str) -> Self {
        Self {
            produces: media_type,
            ..self
        }
    }

    /// Sets the rate class.
    #[must_use]
    pub const fn rate(self, rate: RateClass) -> Self {
        Self { rate, ..self }
    }

    /// Names the statuses of the refusals that the document declares.
    #[must_use]
    pub const fn errors(self, statuses: &'static [u16]) -> Self {
        Self {
            errors: Some(statuses),
            ..self
        }
    }

    /// Takes a larger or deeper JSON body than the ordinary one.
    #[must_use]
    pub const fn reads_up_to(self, bytes: usize, depth: usize) -> Self {
        Self {
            limit: BodyLimit { bytes, depth },
            ..self
        }
    }

    /// Takes content that is not JSON; the mutation metadata travels in headers. See [`super::Operation::read_content`].
    #[must_use]
    pub const fn consumes(
        self,
        media_types: &'static [&'static str],
        bytes: usize,
        timeout_secs: u64,
    ) -> Self {
        let consumes = Some(Consumes {
            media_types,
            timeout_secs,
            expands: false,
        });
        let limit = BodyLimit { bytes, depth: 1 };
        Self {
            limit,
            consumes,
            ..self
        }
    }

    /// Takes content that is encoded as well, as [`super::Content::encoding`] says.
    #[must_use]
    pub const fn expands(self) -> Self {
        let consumes = match self.consumes {
            Some(consumes) => Some(Consumes {
                expands: true,
                ..consumes
            }),
            None => None,
        };
        Self { consumes, ..self }
    }

    /// Takes the mutation metadata from headers, where it is optional, and no member in the body (D10.3).
    #[must_use]
    pub const fn consents_in_headers(self) -> Self {
        Self {
            consent: Consent::OptionalHeaders,
            ..self
        }
    }

    /// Runs as a read under the declared access unless `confirm: true` is said, which needs this as well (D8.5).
    #[must_use]
    pub const fn previews(self, scope: &'static str, roles: &'static [Role]) -> Self {
        Self {
            performance: Some(Performance { scope, roles }),
            ..self
        }
    }

    /// Runs as a read, under the same access, where the query says `preview=true`. The operation has that parameter, and writes
    /// nothing then.
    #[must_use]
    pub const fn previews_where_asked(self) -> Self {
        Self {
            previews_where_asked: true,
            ..self
        }
    }

    /// Lets tokens of one item call. A write does not compile with it: a writer finds a token by one statement.
    #[expect(
        clippy::missing_panics_doc,
        reason = "declarations are constants: it panics the compiler"
    )]
    #[must_use]
    pub const fn accepts_item_token(self) -> Self {
        assert!(
            matches!(self.kind, Kind::Read),
            "a token of one item calls reads alone"
        );
        Self {
            of_item: true,
            ..self
        }
    }

    /// Declares that a person says it, and no model for them: it is no tool of MCP.
    #[must_use]
    pub const fn for_people(self) -> Self {
        Self {
            of_people: true,
            ..self
        }
    }

    /// Lets an organization want a second person to have said yes before, by naming one of these words (ADR 0126).
    #[must_use]
    pub const fn of_two(self, named: &'static [&'static str]) -> Self {
        let of_deciders = matches!(
            self.second_person,
            Some(SecondPerson {
                of_deciders: true,
                ..
            })
        );
        Self {
            second_person: Some(SecondPerson { named, of_deciders }),
            ..self
        }
    }

    /// Declares that it decides who may say yes, or by what: where anything is named it needs a second person as well, where
    /// [`super::Operation::touches_deciders`] says so.
    #[must_use]
    pub const fn of_deciders(self) -> Self {
        let named = match self.second_person {
            Some(second_person) => second_person.named,
            None => &[],
        };
        Self {
            second_person: Some(SecondPerson {
                named,
                of_deciders: true,
            }),
            ..self
        }
    }

    /// Says whether the body is larger or deeper than the ordinary, so that it is read after authorization.
    pub fn reads_late(&self) -> bool {
        self.consumes.is_some() || self.limit != BodyLimit::ORDINARY
    }

    /// Says whether the mutation metadata has no place in the body.
    pub const fn trio_in_headers(&self) -> bool {
        matches!(self.method, Method::Delete)
            || self.consumes.is_some()
            || matches!(self.consent, Consent::OptionalHeaders)
    }

    /// Returns the names of the path parameters behind the organization, in order.
    pub fn path_parameters(&self) -> Vec<&'static str> {
        self.path
            .split('/')
            .filter_map(|s| s.strip_prefix('{')?.strip_suffix('}'))
            .map(|name| name.strip_prefix('*').unwrap_or(name))
            .collect()
    }

    /// Returns the parameter that may hold slashes, if the path has one. Behind [`IN_QUERY`] in the path its value stands in
    /// the query, under the same name.
    pub fn greedy_parameter(&self) -> Option<&'static str> {
        let mut segments = self.path.split('/');
        segments.find_map(|segment| segment.strip_prefix("{*")?.strip_suffix('}'))
    }

    /// Returns the path as documents show it, where a greedy parameter looks like any other.
    pub fn shown_path(&self) -> String {
        self.path.replace("{*", "{")
    }

    /// Returns the statuses that the specification's counts name (decision A), as far as the operation can
    /// answer them: without a record in its path it misses none.
    pub fn named_errors(&self, has_body: bool) -> Vec<u16> {
        if let Some(statuses) = self.errors {
            return statuses.to_vec();
        }
        let mut statuses = vec![401, 403];
        if has_body {
            statuses.insert(0, 400);
        }
        if !self.path_parameters().is_empty() {
            statuses.push(404);
        }
        statuses
    }
}

pub use provost_words::url::IN_QUERY;
