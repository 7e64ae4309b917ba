//! What the columns of a file say: those of Okta, Entra ID and Google Workspace, and those that the caller names.
//!
//! ```text
//! header of the file ──► for each member its column ──► rows in the server's own columns
//! ```
//!
//! Cells of columns that nobody asked for never leave the machine: exports hold addresses, telephone numbers and passwords.
//! Refused on purpose: a status that the directory's words do not hold, and one that is not said in a column that
//! is there to say it. Nobody becomes active by a word that is not understood.

/// The members of a line, as the server's columns.
const MEMBERS: [&str; 9] = [
    "type",
    "loginName",
    "name",
    "displayName",
    "email",
    "externalId",
    "status",
    "groups",
    "description",
];

/// Who wrote a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Somebody who knows the server's columns.
    Own,
    /// Okta.
    Okta,
    /// Microsoft Entra ID.
    Entra,
    /// Google Workspace.
    Google,
}

/// What a directory calls its columns, with letters and digits alone, and its states.
#[derive(Debug)]
struct Export {
    /// The columns of a member; the first that the file has counts.
    members: &'static [(&'static str, &'static [&'static str])],
    /// First and last name, where no column holds the whole.
    name_parts: [&'static str; 2],
    active: &'static [&'static str],
    suspended: &'static [&'static str],
}

const OKTA: Export = Export {
    members: &[
        ("loginName", &["login"]),
        ("displayName", &["displayname"]),
        ("email", &["email"]),
        ("externalId", &["id"]),
        ("status", &["status"]),
    ],
    name_parts: ["firstname", "lastname"],
    active: &["active", "provisioned", "recovery", "password_expired"],
    // Who has not begun, or is locked out, cannot sign in there and is nobody here until the next file.
    suspended: &["suspended", "deprovisioned", "staged", "locked_out"],
};

const ENTRA: Export = Export {
    members: &[
        ("loginName", &["userprincipalname"]),
        ("displayName", &["displayname"]),
        ("email", &["mail"]),
        ("externalId", &["objectid", "id"]),
        ("status", &["accountenabled"]),
    ],
    name_parts: ["givenname", "surname"],
    active: &["true"],
    suspended: &["false"],
};

const GOOGLE: Export = Export {
    members: &[
        ("loginName", &["emailaddress"]),
        ("email", &["emailaddress"]),
        ("status", &["status", "newstatus"]),
    ],
    name_parts: ["firstname", "lastname"],
    active: &["active"],
    suspended: &["suspended", "archived"],
};

impl Origin {
    /// Returns the origin that a word names, if it is one of a directory.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "okta" => Some(Self::Okta),
            "entra" => Some(Self::Entra),
            "google" => Some(Self::Google),
            _ => None,
        }
    }

    const fn export(self) -> Option<&'static Export> {
        match self {
            Self::Own => None,
            Self::Okta => Some(&OKTA),
            Self::Entra => Some(&ENTRA),
            Self::Google => Some(&GOOGLE),
        }
    }
}

/// What is said of a file's columns before it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    origin: Origin,
    /// Columns and the members that the caller says they are.
    said: Vec<(String, &'static str)>,
    /// Columns that mean nothing are left out.
    leaves_out_others: bool,
}

impl Layout {
    /// Returns the layout of a file whose columns the caller maps as `COLUMN=MEMBER`.
    ///
    /// Errors: a sentence about a mapping that is none.
    pub fn new<'a>(
        origin: Origin,
        mappings: impl IntoIterator<Item = &'a str>,
        leaves_out_others: bool,
    ) -> Result<Self, String> {
        let mut said: Vec<(String, &'static str)> = Vec::new();
        for mapping in mappings {
            // A column may have the sign in its name; no member has.
            let parts = mapping.rsplit_once('=');
            let Some((column, word)) = parts.filter(|(column, _)| !column.trim().is_empty()) else {
                return Err(format!(
                    "--map {mapping:?} must be COLUMN=MEMBER, as in login=loginName"
                ));
            };
            let Some(member) = member_of(word) else {
                return Err(format!(
                    "--map {mapping:?}: {word:?} is no member; those are {}",
                    MEMBERS.join(", ")
                ));
            };
            if said.iter().any(|(_, other)| *other == member) {
                return Err(format!("--map says twice which column holds {member}"));
            }
            said.push((column.trim().to_owned(), member));
        }
        Ok(Self {
            origin,
            said,
            leaves_out_others: leaves_out_others || origin != Origin::Own,
        })
    }

    /// Returns what the columns of a header hold.
    ///
    /// Errors: a sentence about a column that is missing, means nothing or could mean two things.
    pub fn columns(&self, header: &[String]) -> Result<Columns, String> {
        if header.iter().any(|cell| cell.contains('\0')) {
            return Err("it is neither UTF-8 nor UTF-16 with a byte order mark; save it as UTF-8".into());
        }
        let mut columns = Columns {
            export: self.origin.export(),
            members: Vec::new(),
            name_parts: None,
            width: header.len(),
            left_out: Vec::new(),
            said: Vec::new(),
        };
        for (column, member) in &self.said {
            let Some(place) = the_one(header, |cell| is_same(cell, column), column)? else {
                return Err(format!(
                    "it has no column {column:?}, which --map names; it has {}",
                    quoted(header)
                ));
            };
            columns.members.push((*member, Some(place)));
        }
        match columns.export {
            Some(export) => columns.take_export(export, header)?,
            None => columns.take_own(header)?,
        }
        let has = |member: &str| columns.members.iter().any(|(known, _)| *known == member);
        if !has("loginName") && !has("type") {
            return Err(format!(
                "no column holds loginName; say which does with --map COLUMN=loginName. It has {}",
                quoted(header)
            ));
        }
        columns.members.sort_by_key(|(member, _)| place_of(member));
        for (place, cell) in header.iter().enumerate() {
            if !columns.takes(place) {
                columns.left_out.push(cell.trim().to_owned());
            }
        }
        if !columns.left_out.is_empty() && !self.leaves_out_others {
            return Err(format!(
                "nothing says what these columns hold: {}. Name them with --map COLUMN=MEMBER, or leave them out with \
                 --ignore-columns",
                quoted(&columns.left_out)
            ));
        }
        columns.said = columns.describe(header);
        Ok(columns)
    }
}

/// Which cells of a row say what.
#[derive(Debug)]
pub struct Columns {
    export: Option<&'static Export>,
    /// Members and their cells; a display name may have parts alone.
    members: Vec<(&'static str, Option<usize>)>,
    name_parts: Option<[Option<usize>; 2]>,
    width: usize,
    left_out: Vec<String>,
    said: Vec<String>,
}

/// Why a row is refused.
#[derive(Debug, PartialEq, Eq)]
pub struct RowRefusal {
    /// A JSON Pointer to the member.
    pub path: Option<&'static str>,
    /// What is wrong.
    pub message: String,
}

impl Columns {
    /// Returns what a person should know of the columns: what they were taken for, and which are left out.
    pub fn notes(&self) -> &[String] {
        &self.said
    }

    /// Returns the header in the server's columns.
    pub fn header(&self) -> Vec<String> {
        self.members
            .iter()
            .map(|(member, _)| (*member).to_owned())
            .collect()
    }

    /// Returns a row in the server's columns.
    ///
    /// Errors: a row of another width, and a status that means nothing.
    pub fn row(&self, cells: &[String]) -> Result<Vec<String>, RowRefusal> {
        if cells.len() != self.width {
            return Err(RowRefusal {
                path: None,
                message: "must have as many cells as the header".into(),
            });
        }
        self.members
            .iter()
            .map(|(member, place)| {
                let cell = place.and_then(|place| cells.get(place)).map(String::as_str);
                match (*member, self.export) {
                    ("status", Some(export)) => status(export, cell.unwrap_or_default()),
                    ("displayName", Some(_)) => Ok(self.display_name(cell.unwrap_or_default(), cells)),
                    _ => Ok(cell.unwrap_or_default().to_owned()),
                }
            })
            .collect()
    }

    fn display_name(&self, whole: &str, cells: &[String]) -> String {
        if !whole.is_empty() {
            return whole.to_owned();
        }
        let parts = self.name_parts.iter().flatten().flatten();
        let parts = parts
            .filter_map(|place| cells.get(*place))
            .map(|part| part.trim());
        parts
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn take_own(&mut self, header: &[String]) -> Result<(), String> {
        for member in MEMBERS {
            let is_mapped = |place| self.takes(place);
            let free = |place: usize, cell: &String| !is_mapped(place) && is_same(cell, member);
            let mut found = header
                .iter()
                .enumerate()
                .filter(|(place, cell)| free(*place, cell));
            let first = found.next().map(|(place, _)| place);
            if found.next().is_some() {
                return Err(format!("the header names {member} twice"));
            }
            let is_said = self.members.iter().any(|(known, _)| *known == member);
            match first {
                Some(_) if is_said => return Err(format!("two columns say {member}")),
                Some(place) => self.members.push((member, Some(place))),
                None => {}
            }
        }
        Ok(())
    }

    fn take_export(&mut self, export: &'static Export, header: &[String]) -> Result<(), String> {
        let find = |word: &str| the_one(header, |cell| letters(cell) == word, word);
        let said: Vec<&str> = self.members.iter().map(|(member, _)| *member).collect();
        for (member, words) in export.members {
            if said.contains(member) {
                continue;
            }
            for word in *words {
                if let Some(place) = find(word)? {
                    self.members.push((member, Some(place)));
                    break;
                }
            }
        }
        if !said.contains(&"displayName") {
            let [first, last] = export.name_parts;
            let parts = [find(first)?, find(last)?];
            if parts != [None, None] {
                self.name_parts = Some(parts);
                if !self.members.iter().any(|(member, _)| *member == "displayName") {
                    self.members.push(("displayName", None));
                }
            }
        }
        Ok(())
    }

    fn takes(&self, place: usize) -> bool {
        let of_members = self.members.iter().filter_map(|(_, place)| *place);
        let parts = self.name_parts.iter().flatten().flatten().copied();
        of_members.chain(parts).any(|taken| taken == place)
    }

    fn describe(&self, header: &[String]) -> Vec<String> {
        let mut said = Vec::new();
        if self.export.is_some() {
            let taken = self.members.iter().filter_map(|(member, place)| {
                let column = header.get((*place)?)?;
                Some(format!("{} is {member}", column.trim()))
            });
            said.push(format!("columns: {}", taken.collect::<Vec<_>>().join(", ")));
            if !self.members.iter().any(|(member, _)| *member == "status") {
                said.push("warning: no column says who is suspended: whoever is new becomes active".into());
            }
        }
        if !self.left_out.is_empty() {
            said.push(format!("left out: {}", self.left_out.join(", ")));
        }
        said
    }
}

fn status(export: &Export, cell: &str) -> Result<String, RowRefusal> {
    let word = cell.trim().to_ascii_lowercase();
    let refused = |message: String| RowRefusal {
        path: Some("/status"),
        message,
    };
    if export.active.contains(&word.as_str()) {
        return Ok("active".into());
    }
    if export.suspended.contains(&word.as_str()) {
        return Ok("suspended".into());
    }
    let known: Vec<&str> = export.active.iter().chain(export.suspended).copied().collect();
    let known = known.join(", ");
    Err(refused(if word.is_empty() {
        format!("is empty; it must be one of {known}")
    } else {
        format!("{word:?} is none of {known}")
    }))
}

fn member_of(word: &str) -> Option<&'static str> {
    MEMBERS.into_iter().find(|member| is_same(word, member))
}

fn place_of(member: &str) -> Option<usize> {
    MEMBERS.iter().position(|known| *known == member)
}

/// Says whether two names of columns are one, whatever their case and the blanks around them.
fn is_same(column: &str, other: &str) -> bool {
    column.trim().to_lowercase() == other.trim().to_lowercase()
}

/// Returns the letters and digits of a column's name, without what directories say behind it in brackets.
fn letters(column: &str) -> String {
    let name = column.split('[').next().unwrap_or_default();
    let kept = name.chars().filter(char::is_ascii_alphanumeric);
    kept.collect::<String>().to_ascii_lowercase()
}

/// Returns the place of the only column that is meant.
fn the_one(header: &[String], is_meant: impl Fn(&str) -> bool, word: &str) -> Result<Option<usize>, String> {
    let mut found = header.iter().enumerate().filter(|(_, cell)| is_meant(cell));
    let first = found.next().map(|(place, _)| place);
    match found.next() {
        None => Ok(first),
        Some((_, other)) => Err(format!("more than one column could be {word:?}, as {other:?}")),
    }
}

fn quoted(names: &[String]) -> String {
    let names = names.iter().map(|name| format!("{:?}", name.trim()));
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(origin: Origin, mappings: &[&str]) -> Layout {
        Layout::new(origin, mappings.iter().copied(), false).unwrap()
    }

    fn texts(row: &str) -> Vec<String> {
        row.split(',').map(str::to_owned).collect()
    }

    /// Reads a header and a row as one origin has them.
    fn row(layout: &Layout, header: &str, row: &str) -> Result<Vec<(String, String)>, RowRefusal> {
        let columns = layout.columns(&texts(header)).unwrap();
        let cells = columns.row(&texts(row))?;
        Ok(columns.header().into_iter().zip(cells).collect())
    }

    fn said(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(m, v)| ((*m).to_owned(), (*v).to_owned()))
            .collect()
    }

    #[test]
    fn each_directory_s_columns_become_members() {
        let okta = layout(Origin::Okta, &[]);
        let found = row(
            &okta,
            "id,login,firstName,lastName,email,mobilePhone,status",
            "00u1,a@x.test,Ann,Li,m@x.test,123,DEPROVISIONED",
        );
        let expected = said(&[
            ("loginName", "a@x.test"),
            ("displayName", "Ann Li"),
            ("email", "m@x.test"),
            ("externalId", "00u1"),
            ("status", "suspended"),
        ]);
        assert_eq!(found.unwrap(), expected);
        let entra = layout(Origin::Entra, &[]);
        let found = row(
            &entra,
            "User principal name,DISPLAYNAME,mail,objectId,id,AccountEnabled",
            "a@x.test,Ann,,3f25,9,False",
        );
        let expected = said(&[
            ("loginName", "a@x.test"),
            ("displayName", "Ann"),
            ("email", ""),
            ("externalId", "3f25"),
            ("status", "suspended"),
        ]);
        assert_eq!(found.unwrap(), expected);
        let google = layout(Origin::Google, &[]);
        let found = row(
            &google,
            "First Name [Required],Last Name [Required],Email Address [Required],Password [Required],Status [READ ONLY]",
            "Ann,,a@x.test,****,Active",
        );
        let expected = said(&[
            ("loginName", "a@x.test"),
            ("displayName", "Ann"),
            ("email", "a@x.test"),
            ("status", "active"),
        ]);
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn nobody_becomes_active_by_a_word_that_is_not_understood() {
        for (origin, header, words) in [
            (
                Origin::Okta,
                "login,status",
                &["", "ENABLED", "True", "aktiv"][..],
            ),
            (
                Origin::Entra,
                "userPrincipalName,accountEnabled",
                &["", "Yes", "1", "WAHR", "active"],
            ),
            (Origin::Google, "Email Address,Status", &["", "Enabled"]),
            (Origin::Google, "Email Address,New Status [UPLOAD ONLY]", &[""]),
        ] {
            for word in words {
                let refused = row(&layout(origin, &[]), header, &format!("a,{word}")).unwrap_err();
                assert_eq!(refused.path, Some("/status"), "{origin:?} {word}");
            }
        }
        for word in ["SUSPENDED", "STAGED", "LOCKED_OUT", "deprovisioned"] {
            let found = row(&layout(Origin::Okta, &[]), "login,status", &format!("a,{word}"));
            assert_eq!(found.unwrap()[1].1, "suspended", "{word}");
        }
    }

    #[test]
    fn unknown_columns_are_named_and_left_out_where_that_is_said() {
        let header = texts("loginName,Shoe Size,STATUS");
        let refused = layout(Origin::Own, &[]).columns(&header).unwrap_err();
        assert!(
            refused.contains("\"Shoe Size\"") && refused.contains("--ignore-columns"),
            "{refused}"
        );
        let lenient = Layout::new(Origin::Own, [], true).unwrap();
        let columns = lenient.columns(&header).unwrap();
        assert_eq!(columns.header(), ["loginName", "status"]);
        assert_eq!(columns.notes(), ["left out: Shoe Size"]);
        let exported = layout(Origin::Okta, &[])
            .columns(&texts("login,secondEmail"))
            .unwrap();
        assert_eq!(exported.notes()[0], "columns: login is loginName");
        assert!(exported.notes()[1].starts_with("warning: no column says who is suspended"));
        assert_eq!(exported.notes()[2], "left out: secondEmail");
    }

    #[test]
    fn the_caller_s_mapping_goes_before_the_directory_s() {
        let mapped = layout(Origin::Okta, &["email=loginName", "Teams=groups"]);
        let found = row(&mapped, "login,EMAIL,teams", "a,b@x.test,Dev").unwrap();
        assert_eq!(
            found[0],
            ("loginName".into(), "b@x.test".into()),
            "the e-mail address, as it was said"
        );
        assert_eq!(found.last().unwrap().0, "groups");
        let own = layout(Origin::Own, &["E-Mail=loginName", "a=b=displayName"]);
        let found = row(&own, "e-mail,a=b", "a@x.test,Ann").unwrap();
        assert_eq!(found, said(&[("loginName", "a@x.test"), ("displayName", "Ann")]));
    }

    #[test]
    fn what_could_mean_two_things_is_refused() {
        let mapping = |text: &str| Layout::new(Origin::Own, [text], false).unwrap_err();
        assert!(mapping("login").contains("must be COLUMN=MEMBER"));
        assert!(mapping("=loginName").contains("must be COLUMN=MEMBER"));
        assert!(mapping("login=user").contains("is no member"));
        let twice = Layout::new(Origin::Own, ["a=email", "b=email"], false).unwrap_err();
        assert_eq!(twice, "--map says twice which column holds email");
        let columns = |origin, mappings: &[&str], header: &str| {
            layout(origin, mappings).columns(&texts(header)).unwrap_err()
        };
        assert!(columns(Origin::Own, &["x=loginName"], "y,z").contains("it has no column \"x\""));
        assert!(columns(Origin::Own, &["a=loginName"], "a,loginName").contains("two columns say loginName"));
        assert!(columns(Origin::Own, &[], "loginName,LOGINNAME").contains("twice"));
        assert!(columns(Origin::Own, &[], "email,displayName").contains("no column holds loginName"));
        assert!(columns(Origin::Okta, &[], "login,Login").contains("more than one column"));
        assert!(columns(Origin::Entra, &[], "login,status").contains("no column holds loginName"));
        assert!(columns(Origin::Own, &[], "l\0o\0").contains("neither UTF-8 nor UTF-16"));
        let refused = row(&layout(Origin::Own, &[]), "loginName,email", "a").unwrap_err();
        assert_eq!(refused.message, "must have as many cells as the header");
    }
}
