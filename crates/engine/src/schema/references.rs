//! Resolves references within a schema: pointers, anchors and the identifiers of embedded resources. Other documents
//! are never loaded.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;

use super::draft::Draft;

/// Maximum length of a schema URI, alone or joined with its base, in bytes. Every URI is copied and joined, so that
/// length multiplies with number.
const MAX_URI_BYTES: usize = 2 << 10;
/// Maximum number of embedded resources with their own URI.
const MAX_RESOURCES: usize = 1_000;

/// The target of a reference.
pub(super) enum ReferenceTarget<'s> {
    Schema(&'s Value),
    /// A known schema outside of this one, or a target that depends on the dynamic scope.
    Undecided,
}

/// All identifiers and anchors of a schema.
pub(super) struct References<'s> {
    resources: Vec<SchemaResource<'s>>,
    /// The resource of every object, by address.
    resource_of: HashMap<*const Value, usize>,
    anchors: HashMap<(usize, &'s str), &'s Value>,
    by_uri: HashMap<String, usize>,
    /// Number of occurrences of each `$dynamicAnchor`.
    dynamic: HashMap<&'s str, usize>,
    /// Number of occurrences of `$recursiveAnchor: true`.
    recursive: usize,
}

struct SchemaResource<'s> {
    uri: String,
    root: &'s Value,
}

impl<'s> References<'s> {
    /// Collects the identifiers and anchors of a schema.
    pub(super) fn collect(schema: &'s Value, draft: Draft) -> Result<Self, String> {
        let id_key = if draft == Draft::Four { "id" } else { "$id" };
        let mut references = Self {
            resources: vec![SchemaResource { uri: String::new(), root: schema }],
            resource_of: HashMap::new(),
            anchors: HashMap::new(),
            by_uri: HashMap::from([(String::new(), 0)]),
            dynamic: HashMap::new(),
            recursive: 0,
        };
        let mut pending = vec![(schema, 0)];
        while let Some((value, mut resource)) = pending.pop() {
            match value {
                Value::Array(items) => pending.extend(items.iter().map(|item| (item, resource))),
                Value::Object(members) => {
                    // Up to draft 7, a reference replaces its sibling keywords.
                    let replaced = draft <= Draft::Seven && members.contains_key("$ref");
                    let id = members.get(id_key).and_then(Value::as_str);
                    if let Some(id) = id.filter(|_| !replaced) {
                        resource = references.identify(value, id, resource)?;
                    }
                    for key in ["$anchor", "$dynamicAnchor"] {
                        if let Some(name) = members.get(key).and_then(Value::as_str) {
                            references.anchors.insert((resource, name), value);
                            if key == "$dynamicAnchor" {
                                *references.dynamic.entry(name).or_default() += 1;
                            }
                        }
                    }
                    references.recursive +=
                        usize::from(members.get("$recursiveAnchor") == Some(&Value::Bool(true)));
                    references.resource_of.insert(std::ptr::from_ref(value), resource);
                    if references.resource_of.len() > MAX_SCHEMA_OBJECTS {
                        return Err(format!("it has more than {MAX_SCHEMA_OBJECTS} parts"));
                    }
                    pending.extend(members.values().map(|member| (member, resource)));
                }
                _ => {}
            }
        }
        Ok(references)
    }

    /// Registers an identifier; returns the resource of its object.
    fn identify(&mut self, value: &'s Value, id: &'s str, parent: usize) -> Result<usize, String> {
        let (uri, fragment) = id.split_once('#').unwrap_or((id, ""));
        // Up to draft 7, an identifier that is only a fragment is an anchor.
        if uri.is_empty() {
            self.anchors.insert((parent, fragment), value);
            return Ok(parent);
        }
        if uri.len() > MAX_URI_BYTES || self.resources.len() >= MAX_RESOURCES {
            return Err(format!(
                "it has an identifier of more than {MAX_URI_BYTES} bytes, or more than {MAX_RESOURCES} of them"
            ));
        }
        let uri = join(&self.resources[parent].uri, uri);
        if uri.len() > MAX_URI_BYTES {
            return Err(format!("it has an identifier of more than {MAX_URI_BYTES} bytes"));
        }
        if std::ptr::eq(value, self.resources[0].root) {
            self.resources[0].uri.clone_from(&uri);
            self.by_uri.insert(uri, 0);
            return Ok(0);
        }
        let resource = self.resources.len();
        self.resources.push(SchemaResource { uri: uri.clone(), root: value });
        self.by_uri.entry(uri).or_insert(resource);
        Ok(resource)
    }

    /// Resolves a reference in a subschema; `key` is its keyword.
    pub(super) fn resolve(
        &self,
        from: &Value,
        key: &str,
        reference: &str,
    ) -> Result<ReferenceTarget<'s>, String> {
        let base_resource = self.resource_of.get(&std::ptr::from_ref(from)).copied().unwrap_or_default();
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let resource = if uri.is_empty() {
            base_resource
        } else if uri.len() > MAX_URI_BYTES {
            return Err(format!("it refers to an address of more than {MAX_URI_BYTES} bytes"));
        } else {
            let uri = join(&self.resources[base_resource].uri, uri);
            match self.by_uri.get(&uri) {
                Some(resource) => *resource,
                // A tool may accept a JSON Schema as an argument.
                None if is_meta_schema(&uri) => return Ok(ReferenceTarget::Undecided),
                None => return Err(format!("it refers to `{reference}`, which is not part of it")),
            }
        };
        if key == "$recursiveRef" && self.recursive > 1 {
            return Ok(ReferenceTarget::Undecided);
        }
        let missing = || format!("it refers to `{reference}`, which it does not have");
        let root = self.resources[resource].root;
        let fragment = percent_decoded(fragment);
        if fragment.is_empty() {
            return Ok(ReferenceTarget::Schema(root));
        }
        if fragment.starts_with('/') {
            return root.pointer(&fragment).map(ReferenceTarget::Schema).ok_or_else(missing);
        }
        // With several anchors of one name, the dynamic scope decides.
        if key == "$dynamicRef" && self.dynamic.get(&*fragment).is_some_and(|count| *count > 1) {
            return Ok(ReferenceTarget::Undecided);
        }
        let target = self.anchors.get(&(resource, &*fragment)).copied();
        target.map(ReferenceTarget::Schema).ok_or_else(missing)
    }
}

fn is_meta_schema(uri: &str) -> bool {
    ["http://json-schema.org/", "https://json-schema.org/"].iter().any(|start| uri.starts_with(start))
}

/// Resolves a reference without a fragment against a base (RFC 3986, section 5.2).
fn join(base: &str, reference: &str) -> String {
    let scheme = reference.split_once(':').map(|(scheme, _)| scheme);
    let is_scheme = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_alphabetic())
            && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "+.-".contains(letter))
    };
    if scheme.is_some_and(is_scheme) {
        return reference.to_owned();
    }
    let authority = base.find("://").map_or(0, |colon| {
        let start = colon + 3;
        base[start..].find('/').map_or(base.len(), |slash| start + slash)
    });
    let (origin, path) = base.split_at(authority);
    let merged = if reference.starts_with('/') {
        reference.to_owned()
    } else {
        format!("{}/{reference}", path.rsplit_once('/').map_or("", |(folder, _)| folder))
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in merged.split('/').skip(1) {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("{origin}/{}", parts.join("/"))
}

fn percent_decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// Maximum number of objects in a schema; larger schemas are rejected.
pub(super) const MAX_SCHEMA_OBJECTS: usize = 50_000;
