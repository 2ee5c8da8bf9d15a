//! Routes as data, for the router and the OpenAPI document.

use axum::routing::{MethodFilter, MethodRouter};
use lm_api::RequestBody;

use crate::state::SharedApp;

/// A route of the API.
pub(crate) struct Route {
    pub method: Method,
    /// Path in the form of axum.
    pub path: &'static str,
    /// Registers the handler for the method.
    pub handler: fn(MethodFilter) -> MethodRouter<SharedApp>,
    /// API that the route is part of.
    pub tag: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Names of the parameters of its query.
    pub query: &'static [&'static str],
    /// Body of a request, if the route reads one.
    pub body: Option<&'static RequestBody>,
    /// Responses without errors, by status.
    pub responses: &'static [(u16, Content)],
    /// Needs a key, if the server has keys.
    pub needs_key: bool,
}

/// Method of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Delete,
    Get,
    Post,
}

/// Content of a response.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Content {
    /// JSON of the schema of this name.
    Json(&'static str),
    /// Server-sent events.
    Events,
    /// Lines of JSON.
    Lines,
    /// Plain text.
    Text,
}

impl Route {
    pub const fn get(
        path: &'static str,
        handler: fn(MethodFilter) -> MethodRouter<SharedApp>,
        tag: &'static str,
        summary: &'static str,
    ) -> Self {
        let (method, query, body, responses, needs_key) = (Method::Get, &[], None, &[], true);
        Self { method, path, handler, tag, summary, query, body, responses, needs_key }
    }

    pub const fn post(
        path: &'static str,
        handler: fn(MethodFilter) -> MethodRouter<SharedApp>,
        tag: &'static str,
        summary: &'static str,
    ) -> Self {
        Self { method: Method::Post, ..Self::get(path, handler, tag, summary) }
    }

    pub const fn delete(self) -> Self {
        Self { method: Method::Delete, ..self }
    }

    pub const fn query(self, query: &'static [&'static str]) -> Self {
        Self { query, ..self }
    }

    pub const fn body(self, body: &'static RequestBody) -> Self {
        Self { body: Some(body), ..self }
    }

    pub const fn answers(self, responses: &'static [(u16, Content)]) -> Self {
        Self { responses, ..self }
    }

    pub const fn open(self) -> Self {
        Self { needs_key: false, ..self }
    }
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Get => "get",
            Self::Post => "post",
        }
    }

    pub fn filter(self) -> MethodFilter {
        match self {
            Self::Delete => MethodFilter::DELETE,
            Self::Get => MethodFilter::GET,
            Self::Post => MethodFilter::POST,
        }
    }
}
