//! Conversations: lists of items on the server, which responses continue.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::input;
use super::listing::listed;
use super::store::{ResponseStore, identify};
use crate::error::{ApiError, Result};
use crate::fields::{Fields, shown};
use crate::ids::{random_id, seconds_since_1970};
use crate::limits::Limits;
use crate::request_body::RequestBody;

/// Body of a new conversation.
pub(super) const CONVERSATION: RequestBody = RequestBody {
    name: "ConversationRequest",
    groups: &[New::json_schema],
    unsupported: &[],
    example: r#"{"items": [{"role": "user", "content": "Hello!"}], "metadata": {"topic": "greetings"}}"#,
};

/// Body of a change of a conversation.
pub(super) const METADATA: RequestBody = RequestBody {
    name: "ConversationUpdateRequest",
    groups: &[Metadata::json_schema],
    unsupported: &[],
    example: r#"{"metadata": {"topic": "greetings"}}"#,
};

/// Body of new items.
pub(super) const ITEMS: RequestBody = RequestBody {
    name: "ConversationItemsRequest",
    groups: &[Items::json_schema],
    unsupported: &[],
    example: r#"{"items": [{"role": "user", "content": "Hello!"}]}"#,
};

#[derive(Deserialize, JsonSchema)]
struct New {
    /// First items; none if absent.
    #[serde(default)]
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    items: Option<Vec<Value>>,
    /// Data of the client.
    metadata: Option<Map<String, Value>>,
}

#[derive(Deserialize, JsonSchema)]
struct Metadata {
    /// Data of the client.
    metadata: Map<String, Value>,
}

#[derive(Deserialize, JsonSchema)]
struct Items {
    /// Items, in their order.
    #[schemars(with = "Vec<Map<String, Value>>")]
    items: Vec<Value>,
}

/// Conversations of the Responses API in a store.
///
/// ```
/// use lm_api::{Conversations, Limits, ResponseStore};
/// use serde_json::json;
///
/// let conversations = Conversations { store: &ResponseStore::default(), limits: &Limits::default() };
/// let conversation = conversations.create(json!({"items": [{"role": "user", "content": "Hello!"}]}))?;
/// let id = conversation["id"].as_str().expect("an id");
/// conversations.add(id, json!({"items": [{"role": "assistant", "content": "Good morning."}]}))?;
/// assert_eq!(conversations.items(id)?.len(), 2);
/// # Ok::<(), lm_api::ApiError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Conversations<'a> {
    /// The store.
    pub store: &'a ResponseStore,
    /// Limits of the items.
    pub limits: &'a Limits,
}

impl Conversations<'_> {
    /// Fields of the body of a conversation.
    pub const BODY: &'static RequestBody = &CONVERSATION;
    /// Fields of the body of a change of its metadata.
    pub const METADATA: &'static RequestBody = &METADATA;
    /// Fields of the body of new items.
    pub const ITEMS: &'static RequestBody = &ITEMS;

    /// Creates a conversation; returns its object.
    ///
    /// # Errors
    /// When a field or an item is invalid.
    pub fn create(self, body: Value) -> Result<Value> {
        let new: New = Fields::open(body, &CONVERSATION)?.into_group()?;
        let items = self.read(new.items.unwrap_or_default())?;
        let id = random_id("conv_");
        let object = json!({
            "id": id, "object": "conversation", "created_at": seconds_since_1970(),
            "metadata": metadata(new.metadata.unwrap_or_default())?,
        });
        let inputs = items.len();
        match self.store.insert(&id, object.clone(), items, inputs) {
            true => Ok(object),
            false => Err(too_large()),
        }
    }

    /// Returns the object of a conversation.
    ///
    /// # Errors
    /// 404 for an unknown id.
    pub fn show(self, id: &str) -> Result<Value> {
        find(id, self.store).map(|(object, _)| object)
    }

    /// Replaces the metadata of a conversation; returns its object.
    ///
    /// # Errors
    /// 404 for an unknown id; when the body is invalid.
    pub fn update(self, id: &str, body: Value) -> Result<Value> {
        let Metadata { metadata } = Fields::open(body, &METADATA)?.into_group()?;
        find(id, self.store)?;
        let metadata = self::metadata(metadata)?;
        self.store.change(id, |stored| stored.object["metadata"] = metadata);
        self.show(id)
    }

    /// Removes a conversation; returns the object that says so.
    ///
    /// # Errors
    /// 404 for an unknown id.
    pub fn delete(self, id: &str) -> Result<Value> {
        find(id, self.store)?;
        self.store.remove(id);
        Ok(json!({"id": id, "object": "conversation.deleted", "deleted": true}))
    }

    /// Adds items to a conversation; returns their list.
    ///
    /// # Errors
    /// 404 for an unknown id; when an item is invalid.
    pub fn add(self, id: &str, body: Value) -> Result<Vec<Value>> {
        let new = self.read(Fields::open(body, &ITEMS)?.into_group::<Items>()?.items)?;
        find(id, self.store)?;
        let mut added = Vec::new();
        let fits = self.store.change(id, |stored| {
            let known = stored.items.len();
            stored.items.extend(new);
            identify(&mut stored.items, known);
            stored.inputs = stored.items.len();
            added = stored.items[known..].to_vec();
        });
        if fits { Ok(added) } else { Err(too_large()) }
    }

    /// Returns the items of a conversation.
    ///
    /// # Errors
    /// 404 for an unknown id.
    pub fn items(self, id: &str) -> Result<Vec<Value>> {
        items(id, self.store)
    }

    /// Removes an item of a conversation; returns the object of the conversation.
    ///
    /// # Errors
    /// 404 for unknown ids.
    pub fn remove(self, id: &str, item: &str) -> Result<Value> {
        self.item(id, item)?;
        self.store.change(id, |stored| {
            stored.items.retain(|it| it["id"] != item);
            stored.inputs = stored.items.len();
        });
        self.show(id)
    }

    /// Returns an item of a conversation.
    ///
    /// # Errors
    /// 404 for unknown ids.
    pub fn item(self, id: &str, item: &str) -> Result<Value> {
        let found = self.items(id)?.into_iter().find(|it| it["id"] == item);
        found.map(listed).ok_or_else(|| {
            let item = shown(&item.into());
            ApiError::refused(404, "invalid_request_error", format!("the conversation has no item {item}"))
        })
    }

    /// Checks items, and replaces references by the stored items.
    fn read(self, items: Vec<Value>) -> Result<Vec<Value>> {
        if items.is_empty() {
            return Ok(items);
        }
        let renamed = |error: ApiError| error.renamed("input", "items");
        let items = input::items(items.into(), self.limits).map_err(renamed)?;
        let items = input::resolved(items, "items", self.store)?;
        input::conversation(&items, 0, self.limits).map_err(renamed)?;
        Ok(items)
    }
}

/// Checks metadata: at most 16 texts, as in OpenAI's API.
fn metadata(metadata: Map<String, Value>) -> Result<Value> {
    const EXPECTED: &str = "at most 16 texts of 512 bytes under names of 64 bytes";
    let is_small = |(key, value): (&String, &Value)| {
        key.len() <= 64 && value.as_str().is_some_and(|text| text.len() <= 512)
    };
    if metadata.len() > 16 || !metadata.iter().all(is_small) {
        return Err(ApiError::unexpected("metadata", shown(&metadata.into()), EXPECTED));
    }
    Ok(metadata.into())
}

fn too_large() -> ApiError {
    ApiError::invalid_param("items", "the conversation would take more than 16 MiB of memory")
}

/// Items of a conversation.
pub(super) fn items(id: &str, store: &ResponseStore) -> Result<Vec<Value>> {
    find(id, store).map(|(_, items)| items)
}

/// Object and items of a conversation.
fn find(id: &str, store: &ResponseStore) -> Result<(Value, Vec<Value>)> {
    let stored = store.get(id).filter(|stored| stored.object["object"] == "conversation");
    let stored = stored.ok_or_else(|| {
        let message = format!(
            "there is no conversation {}; it may have been deleted, or removed to make room",
            shown(&id.into())
        );
        ApiError::refused(404, "invalid_request_error", message).with_param("conversation")
    })?;
    Ok((stored.object.clone(), stored.items.clone()))
}
