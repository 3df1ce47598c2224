//! Requests: what an address, a query and headers ask for. It knows no objects.

use std::collections::BTreeMap;

use http::{HeaderMap, Method, Uri, header};

use crate::answer::Refusal;
use crate::kinds::resource_name;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verb {
    /// Reads an object.
    Get,
    /// Reads all objects of a kind.
    List,
    /// Follows the changes of a kind.
    Watch,
    /// Creates an object.
    Create,
    /// Replaces an object.
    Update,
    /// Changes an object, or applies one.
    Patch,
    /// Deletes an object.
    Delete,
    /// Deletes all objects that a list would have.
    DeleteCollection,
    /// Asks for versions and kinds.
    Discover,
}

impl Verb {
    /// Whether requests of this verb change objects.
    pub const fn is_write(self) -> bool {
        matches!(
            self,
            Self::Create | Self::Update | Self::Patch | Self::Delete | Self::DeleteCollection
        )
    }

    /// The word of Kubernetes' audit log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Discover => "discover",
        }
    }
}

/// A request, before anything is looked up.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) verb: Verb,
    /// As it came, for messages.
    pub(crate) line: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    pub(crate) query: Query,
    pub(crate) content_type: String,
    pub(crate) accept: String,
    user_agent: String,
}

impl Asked {
    /// `/api/v1/…` or `/apis/GROUP/VERSION/…`, then `namespaces/NAMESPACE/` or not, then the plural,
    /// the name and the subresource.
    ///
    /// # Errors
    ///
    /// What is no address of an object, and a query that is not known.
    pub(crate) fn parse(method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Self, Refusal> {
        let line = format!("{method} {uri}");
        let text = |name| {
            let value = headers.get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let words: Vec<&str> = uri
            .path()
            .split('/')
            .filter(|word| !word.is_empty())
            .collect();
        let mut asked = Self {
            verb: Verb::Discover,
            group: String::new(),
            version: String::new(),
            plural: String::new(),
            namespace: None,
            name: None,
            subresource: None,
            query: Query::parse(uri, &line)?,
            content_type: text(header::CONTENT_TYPE),
            accept: text(header::ACCEPT),
            user_agent: text(header::USER_AGENT),
            line,
        };
        let rest = match words.as_slice() {
            ["api", version, rest @ ..] => {
                asked.version = (*version).to_owned();
                rest
            }
            ["apis", group, version, rest @ ..] => {
                asked.group = (*group).to_owned();
                asked.version = (*version).to_owned();
                rest
            }
            ["apis", group] => {
                asked.group = (*group).to_owned();
                &[]
            }
            ["api" | "apis" | "version"] => {
                asked.plural = words.concat();
                &[]
            }
            _ => return Err(Refusal::unsupported(&asked.line)),
        };
        let owned = |word: &&str| (**word).to_owned();
        let (plural, name, subresource) = match rest {
            [] => return Ok(asked),
            ["namespaces", namespace, plural, rest @ ..]
                if !matches!(*plural, "status" | "finalize") =>
            {
                asked.namespace = Some(owned(namespace));
                (plural, rest.first(), rest.get(1..))
            }
            [plural, rest @ ..] => (plural, rest.first(), rest.get(1..)),
        };
        asked.plural = owned(plural);
        asked.name = name.map(owned);
        asked.subresource = match subresource {
            None | Some([]) => None,
            Some(words) => Some(words.join("/")),
        };
        let watches = asked.query.is_true("watch");
        asked.verb = match (method.as_str(), &asked.name) {
            ("GET", None) if watches => Verb::Watch,
            ("GET", None) => Verb::List,
            ("GET", Some(_)) if watches => return Err(Refusal::unsupported(&asked.line)),
            ("GET", Some(_)) => Verb::Get,
            ("POST", None) => Verb::Create,
            ("PUT", Some(_)) => Verb::Update,
            ("PATCH", Some(_)) => Verb::Patch,
            ("DELETE", Some(_)) => Verb::Delete,
            ("DELETE", None) => Verb::DeleteCollection,
            _ => return Err(Refusal::unsupported(&asked.line)),
        };
        Ok(asked)
    }

    pub(crate) fn resource(&self) -> String {
        resource_name(&self.plural, &self.group)
    }

    /// Who owns the fields that the request writes.
    pub(crate) fn manager(&self) -> String {
        let named = self.query.get("fieldManager").map(str::to_owned);
        let agent = self.user_agent.split('/').next().unwrap_or_default();
        named.unwrap_or_else(|| if agent.is_empty() { "unknown" } else { agent }.to_owned())
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.query.get("dryRun") == Some("All")
    }

    pub(crate) fn wants_metadata_only(&self) -> bool {
        self.accept.contains("as=PartialObjectMetadata")
    }

    pub(crate) fn applies(&self) -> bool {
        self.verb == Verb::Patch && self.content_type.starts_with("application/apply-patch")
    }
}

/// The query of an address.
#[derive(Clone, Debug)]
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    fn parse(uri: &Uri, line: &str) -> Result<Self, Refusal> {
        let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let query: BTreeMap<String, String> = pairs.into_owned().collect();
        match query.keys().find(|name| !KNOWN.contains(&name.as_str())) {
            Some(name) => Err(Refusal::unsupported(&format!("{line} (query `{name}`)"))),
            None => Ok(Self(query)),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        matches!(self.get(name), Some("true" | "1"))
    }

    pub(crate) fn number<N: std::str::FromStr>(&self, name: &str) -> Result<Option<N>, Refusal> {
        let parse = |text: &str| {
            let number = text.parse();
            number.map_err(|_| Refusal::bad(format!("{name}={text} is no number")))
        };
        self.get(name).map(parse).transpose()
    }
}

const KNOWN: [&str; 18] = [
    "allowWatchBookmarks",
    "continue",
    "dryRun",
    "fieldManager",
    "fieldSelector",
    "fieldValidation",
    "force",
    "gracePeriodSeconds",
    "labelSelector",
    "limit",
    "orphanDependents",
    "pretty",
    "propagationPolicy",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
];
