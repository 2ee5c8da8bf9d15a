//! Content of messages: text, or an array of blocks.

use lm_conversation::{Content, Part};
use serde_json::{Map, Value};

use super::documents;
use crate::error::{ApiError, Result};
use crate::fields::{json_type, shown};
use crate::media;

/// Types of blocks that are content alone.
pub(super) const CONTENT: &[&str] =
    &["text", "image", "document", "search_result", "tool_reference", "container_upload"];

/// A block of a content: its type and its fields, with its path for errors.
pub(super) struct Block {
    pub at: String,
    pub kind: String,
    pub fields: Map<String, Value>,
}

impl Block {
    fn read(block: Value, at: String) -> Result<Self> {
        let Value::Object(fields) = block else {
            return Err(ApiError::unexpected(at, json_type(&block), "an object"));
        };
        let kind = match fields.get("type") {
            Some(Value::String(kind)) => kind.clone(),
            other => {
                let got = other.map_or("missing", json_type);
                return Err(ApiError::unexpected(format!("{at}.type"), got, "a string"));
            }
        };
        Ok(Self { at, kind, fields })
    }

    /// Takes a field that is text.
    pub fn text(&mut self, name: &str) -> Result<String> {
        match self.fields.remove(name) {
            Some(Value::String(text)) => Ok(text),
            other => {
                let got = other.as_ref().map_or("missing", json_type);
                Err(ApiError::unexpected(format!("{}.{name}", self.at), got, "a string"))
            }
        }
    }

    /// The text or the image that the block is, in order; `None` for another type.
    pub fn parts(&mut self) -> Result<Option<Vec<Part>>> {
        let part = match self.kind.as_str() {
            "text" => Part::Text(self.text("text")?),
            "image" => media::source(&self.fields, &self.at)?,
            "document" => return documents::document(self).map(Some),
            "search_result" => return documents::search_result(self).map(Some),
            "tool_reference" => Part::Text(format!("tool: {}", self.text("tool_name")?)),
            "container_upload" => Part::Text(format!("uploaded file: {}", self.text("file_id")?)),
            _ => return Ok(None),
        };
        Ok(Some(vec![part]))
    }

    /// Error of a block that its place does not permit, or that no model of this stack reads.
    pub fn unexpected(&self, expected: &[&str]) -> ApiError {
        let Self { at, kind, .. } = self;
        let param = format!("{at}.type");
        if let "image" | "document" | "audio" | "input_audio" = kind.as_str() {
            return media::unsupported(at, kind, &expected.join(", "));
        }
        let kind = shown(&kind.as_str().into());
        let message = format!("the `type` of `{at}` is {kind}, expected {}", expected.join(", "));
        ApiError::invalid_param(param, message)
    }
}

/// Reads a content as blocks; text is one block.
pub(super) fn blocks(content: Value, at: &str) -> Result<Vec<Block>> {
    match content {
        Value::String(text) => {
            let fields = Map::from_iter([("text".to_owned(), text.into())]);
            Ok(vec![Block { at: at.to_owned(), kind: "text".to_owned(), fields }])
        }
        Value::Array(blocks) => {
            let blocks = blocks.into_iter().enumerate();
            blocks.map(|(index, block)| Block::read(block, format!("{at}[{index}]"))).collect()
        }
        other => Err(ApiError::unexpected(at, json_type(&other), "a string or an array of blocks")),
    }
}

/// Reads a content of text blocks alone.
pub(super) fn texts(content: Value, at: &str) -> Result<Vec<Part>> {
    let text = |mut block: Block| match block.kind.as_str() {
        "text" => block.text("text").map(Part::Text),
        _ => Err(block.unexpected(&["text"])),
    };
    blocks(content, at)?.into_iter().map(text).collect()
}

/// Reads a content of text, images, documents and search results.
pub(super) fn parts(content: Value, at: &str) -> Result<Vec<Part>> {
    let parts = |mut block: Block| block.parts()?.ok_or_else(|| block.unexpected(CONTENT));
    let parts = blocks(content, at)?.into_iter().map(parts).collect::<Result<Vec<_>>>()?;
    Ok(parts.into_iter().flatten().collect())
}

/// Content of a message: text, or parts if there are several or one is an image.
pub(super) fn content(mut parts: Vec<Part>) -> Content {
    match parts.pop() {
        None => Content::None,
        Some(Part::Text(text)) if parts.is_empty() => Content::Text(text),
        Some(last) => {
            parts.push(last);
            Content::Parts(parts)
        }
    }
}
