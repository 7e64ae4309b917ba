//! Which machines an enrolment token enrols.
//!
//! What a machine runs and what it is called are its own word: they keep mistakes away, and nobody who lies. From where it calls the
//! server sees by itself, as far as it knows its proxies (`http.trusted_proxies`). An address that may be the one of a proxy which nobody
//! named lies in no network: each machine would have it.
//!
//! INVARIANT FL-12: by an enrolment token no machine enrols that calls from outside its networks, or says that it is another one than it is
//! for.

use super::model::Platform;
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::expose::edge::Network;
use provost_kernel::text::Name;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::borrow::Cow;
use std::net::IpAddr;

/// LIMIT: networks of an enrolment token. Ours.
pub const MOST_NETWORKS: usize = 16;
/// How many platforms there are.
pub const MOST_PLATFORMS: usize = 3;

/// One to so many of something.
#[derive(Debug)]
pub struct Several<T, const MOST: usize>(Vec<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for Several<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let list = Vec::<T>::deserialize(deserializer)?;
        if (1..=MOST).contains(&list.len()) {
            return Ok(Self(list));
        }
        Err(de::Error::custom(format!("must be 1 to {MOST} of them")))
    }
}

impl<T: JsonSchema, const MOST: usize> JsonSchema for Several<T, MOST> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Several".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let items = generator.subschema_for::<T>();
        json_schema!({ "type": "array", "items": items, "minItems": 1, "maxItems": MOST })
    }
}

/// Which machines an enrolment token enrols.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Bounds {
    /// What they run, by their own word; absent where it may be anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    platforms: Vec<Platform>,
    /// From where they enrol, as addresses and ranges; absent where it may be anywhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    networks: Vec<String>,
    /// How their names begin, by their own word; absent where they have any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name_prefix: Option<String>,
}

impl Bounds {
    /// Returns the bounds that somebody asked for.
    ///
    /// Errors: `InvalidDefinition` for what is no network.
    pub fn asked(
        platforms: Option<&Several<Platform, MOST_PLATFORMS>>,
        networks: Option<&Several<Name, MOST_NETWORKS>>,
        name_prefix: Option<&Name>,
    ) -> Result<Self> {
        let networks = networks.map_or(&[][..], |networks| &networks.0);
        for (at, text) in networks.iter().enumerate() {
            if network(text.as_str()).is_none() {
                let message = "must be an address or a range such as 10.0.0.0/8";
                return Err(Error::unfit(format!("/networks/{at}"), message));
            }
        }
        Ok(Self {
            platforms: platforms.map(|platforms| platforms.0.clone()).unwrap_or_default(),
            networks: networks.iter().map(|text| text.as_str().to_owned()).collect(),
            name_prefix: name_prefix.map(|prefix| prefix.as_str().to_owned()),
        })
    }

    /// Returns the bounds as they are stored; nothing where there are none.
    pub fn stored(&self) -> Result<Option<String>> {
        if *self == Self::default() {
            return Ok(None);
        }
        serde_json::to_string(self).map(Some).map_err(Error::internal)
    }

    /// Reads what was stored.
    pub fn from_store(text: Option<&str>) -> Result<Self> {
        text.map_or_else(
            || Ok(Self::default()),
            |text| serde_json::from_str(text).map_err(Error::internal),
        )
    }

    /// Refuses a machine that the token is not for.
    ///
    /// Keeps FL-12: an address that is not known lies in no network.
    ///
    /// Errors: `Conflict`.
    pub fn admit(&self, platform: Platform, name: &str, from: Option<IpAddr>) -> Result<()> {
        let refuse = |message: &'static str| Err(Error::new(Code::Conflict, message));
        if !self.platforms.is_empty() && !self.platforms.contains(&platform) {
            return refuse("this enrolment token is for machines that run something else");
        }
        if self
            .name_prefix
            .as_ref()
            .is_some_and(|prefix| !name.starts_with(prefix))
        {
            return refuse("this enrolment token is for machines whose names begin otherwise");
        }
        let is_in = |text: &String| {
            let network = network(text);
            from.is_some_and(|from| network.is_some_and(|network| network.contains(from)))
        };
        if !self.networks.is_empty() && !self.networks.iter().any(is_in) {
            let message = match from {
                Some(_) => "this enrolment token is for machines that call from another network",
                None => {
                    "this enrolment token is for machines of some networks, and the server does not know from where this one calls; whoever \
                     runs the server names its proxies in http.trusted_proxies"
                }
            };
            return refuse(message);
        }
        Ok(())
    }
}

fn network(text: &str) -> Option<Network> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves FL-12.
    #[test]
    fn a_machine_is_admitted_that_is_within_every_bound() {
        let from = |text: &str| Some(text.parse::<IpAddr>().unwrap());
        let bounds = Bounds {
            platforms: vec![Platform::Linux, Platform::Macos],
            networks: vec!["10.0.0.0/8".into(), "2001:db8::/32".into()],
            name_prefix: Some("berlin-".into()),
        };
        let stored = bounds.stored().unwrap();
        assert_eq!(Bounds::from_store(stored.as_deref()).unwrap(), bounds);
        let here = from("10.1.2.3");
        assert!(bounds.admit(Platform::Linux, "berlin-7", here).is_ok());
        assert!(
            bounds
                .admit(Platform::Macos, "berlin-", from("2001:db8::7"))
                .is_ok()
        );
        assert!(
            bounds
                .admit(Platform::Linux, "berlin-7", from("::ffff:10.1.2.3"))
                .is_ok()
        );
        for (platform, name, from) in [
            (Platform::Windows, "berlin-7", here),
            (Platform::Linux, "Berlin-7", here),
            (Platform::Linux, "7-berlin-", here),
            (Platform::Linux, "berlin-7", from("11.0.0.1")),
            (Platform::Linux, "berlin-7", from("2001:db9::1")),
            (Platform::Linux, "berlin-7", None),
        ] {
            let refused = bounds.admit(platform, name, from);
            assert_eq!(refused.unwrap_err().code(), Code::Conflict, "{name}");
        }
        let none = Bounds::from_store(None).unwrap();
        assert_eq!(none.stored().unwrap(), None);
        assert!(none.admit(Platform::Windows, "x", None).is_ok());
    }
}
