//! All routes of the API.

use axum::routing::on;
use lm_api::{
    AnthropicRequest, ChatRequest, CompactionRequest, CompletionRequest, Conversations, EmbeddingRequest,
    OllamaRequest, RerankRequest, ResponsesRequest,
};

use super::{
    chat_completions, chats, completions, conversations, embeddings, health, llama_cpp, messages, metrics,
    models, ollama, openapi, pull, rerank, responses, tokens, tools,
};
use crate::route::Content::{Events, Json, Lines, Text};
use crate::route::Route;

const OPENAI: &str = "OpenAI";
const ANTHROPIC: &str = "Anthropic";
const OLLAMA: &str = "Ollama";
const LLAMA_CPP: &str = "llama.cpp";
const SERVER: &str = "Server";

/// Parameters of lists of items.
const PAGE: &[&str] = &["limit", "order", "after"];

/// The routes, without the files of the page.
pub(crate) const ROUTES: &[Route] = &[
    Route::post("/v1/chat/completions", |m| on(m, chat_completions::create), OPENAI, "Answers messages.")
        .body(ChatRequest::BODY)
        .answers(&[(200, Json("ChatCompletion")), (200, Events)]),
    Route::post("/v1/completions", |m| on(m, completions::create), OPENAI, "Continues prompts.")
        .body(CompletionRequest::BODY)
        .answers(&[(200, Json("Completion")), (200, Events)]),
    Route::post("/v1/responses", |m| on(m, responses::create), OPENAI, "Creates a response.")
        .body(ResponsesRequest::BODY)
        .answers(&[(200, Json("Response")), (200, Events)]),
    Route::get("/v1/responses/{id}", |m| on(m, responses::show), OPENAI, "Shows a stored response.")
        .query(&["stream", "starting_after"])
        .answers(&[(200, Json("Response")), (200, Events)]),
    Route::get("/v1/responses/{id}", |m| on(m, responses::delete), OPENAI, "Removes a stored response.")
        .delete()
        .answers(&[(200, Json("DeletedResponse"))]),
    Route::post("/v1/responses/{id}/cancel", |m| on(m, responses::cancel), OPENAI, "Cancels a response.")
        .answers(&[(200, Json("Response"))]),
    Route::get(
        "/v1/responses/{id}/input_items",
        |m| on(m, responses::input_items),
        OPENAI,
        "Lists the items that a stored response answers.",
    )
    .query(PAGE)
    .answers(&[(200, Json("ItemList"))]),
    Route::post(
        "/v1/responses/compact",
        |m| on(m, responses::compact),
        OPENAI,
        "Replaces the replies of a conversation by a summary.",
    )
    .body(CompactionRequest::BODY)
    .answers(&[(200, Json("Compaction"))]),
    Route::post(
        "/v1/responses/input_tokens",
        |m| on(m, responses::input_tokens),
        OPENAI,
        "Counts the tokens of a prompt.",
    )
    .body(ResponsesRequest::BODY)
    .answers(&[(200, Json("ResponseTokens"))]),
    Route::post("/v1/conversations", |m| on(m, conversations::create), OPENAI, "Creates a conversation.")
        .body(Conversations::BODY)
        .answers(&[(200, Json("Conversation"))]),
    Route::get("/v1/conversations/{id}", |m| on(m, conversations::show), OPENAI, "Shows a conversation.")
        .answers(&[(200, Json("Conversation"))]),
    Route::post(
        "/v1/conversations/{id}",
        |m| on(m, conversations::update),
        OPENAI,
        "Replaces the metadata of a conversation.",
    )
    .body(Conversations::METADATA)
    .answers(&[(200, Json("Conversation"))]),
    Route::get("/v1/conversations/{id}", |m| on(m, conversations::delete), OPENAI, "Removes a conversation.")
        .delete()
        .answers(&[(200, Json("DeletedConversation"))]),
    Route::get(
        "/v1/conversations/{id}/items",
        |m| on(m, conversations::items),
        OPENAI,
        "Lists the items of a conversation.",
    )
    .query(PAGE)
    .answers(&[(200, Json("ItemList"))]),
    Route::post(
        "/v1/conversations/{id}/items",
        |m| on(m, conversations::add),
        OPENAI,
        "Adds items to a conversation.",
    )
    .body(Conversations::ITEMS)
    .answers(&[(200, Json("ItemList"))]),
    Route::get(
        "/v1/conversations/{id}/items/{item}",
        |m| on(m, conversations::item),
        OPENAI,
        "Shows an item of a conversation.",
    )
    .answers(&[(200, Json("Item"))]),
    Route::get(
        "/v1/conversations/{id}/items/{item}",
        |m| on(m, conversations::remove),
        OPENAI,
        "Removes an item of a conversation.",
    )
    .delete()
    .answers(&[(200, Json("Conversation"))]),
    Route::post("/v1/embeddings", |m| on(m, embeddings::create), OPENAI, "Computes embeddings of texts.")
        .body(EmbeddingRequest::BODY)
        .answers(&[(200, Json("EmbeddingList"))]),
    Route::post(
        "/v1/rerank",
        |m| on(m, rerank::create),
        LLAMA_CPP,
        "Ranks documents by relevance to a query.",
    )
    .body(RerankRequest::BODY)
    .answers(&[(200, Json("Ranking"))]),
    Route::post("/rerank", |m| on(m, rerank::create), LLAMA_CPP, "Ranks documents, as /v1/rerank.")
        .body(RerankRequest::BODY)
        .answers(&[(200, Json("Ranking"))]),
    Route::get("/v1/models", |m| on(m, models::list), OPENAI, "Lists the models and their aliases.")
        .answers(&[(200, Json("ModelList"))]),
    Route::get(
        "/v1/models/{*name}",
        |m| on(m, models::show),
        OPENAI,
        "Shows a model; a name may have slashes.",
    )
    .answers(&[(200, Json("Model"))]),
    Route::post("/v1/messages", |m| on(m, messages::create), ANTHROPIC, "Answers messages.")
        .body(AnthropicRequest::MESSAGE)
        .answers(&[(200, Json("Message")), (200, Events)]),
    Route::post(
        "/v1/messages/count_tokens",
        |m| on(m, messages::count_tokens),
        ANTHROPIC,
        "Counts the tokens of a prompt.",
    )
    .body(AnthropicRequest::COUNT)
    .answers(&[(200, Json("MessageTokens"))]),
    Route::post("/api/chat", |m| on(m, ollama::converse), OLLAMA, "Answers messages.")
        .body(OllamaRequest::CHAT)
        .answers(&[(200, Json("OllamaChat")), (200, Lines)]),
    Route::post("/api/generate", |m| on(m, ollama::generate), OLLAMA, "Answers a prompt.")
        .body(OllamaRequest::GENERATE)
        .answers(&[(200, Json("OllamaGenerate")), (200, Lines)]),
    Route::post("/api/embed", |m| on(m, ollama::embed), OLLAMA, "Computes embeddings of texts.")
        .body(OllamaRequest::EMBED)
        .answers(&[(200, Json("OllamaEmbeddings"))]),
    Route::post("/api/embeddings", |m| on(m, ollama::embedding), OLLAMA, "Computes the embedding of a text.")
        .body(&ollama::EMBEDDING)
        .answers(&[(200, Json("OllamaEmbedding"))]),
    Route::post("/api/pull", |m| on(m, pull::pull), OLLAMA, "Downloads a model, if the server does that.")
        .body(&pull::PULL)
        .answers(&[(200, Json("OllamaStatus")), (200, Lines)]),
    Route::get("/api/tags", |m| on(m, ollama::tags), OLLAMA, "Lists the models and their aliases.")
        .answers(&[(200, Json("OllamaModels"))]),
    Route::get("/api/ps", |m| on(m, ollama::ps), OLLAMA, "Lists the models that are in memory.")
        .answers(&[(200, Json("OllamaRunningModels"))]),
    Route::post("/api/show", |m| on(m, ollama::show), OLLAMA, "Shows a model.")
        .body(&ollama::SHOW)
        .answers(&[(200, Json("OllamaModel"))]),
    Route::get("/api/version", |m| on(m, ollama::version), OLLAMA, "Shows the version of the API.")
        .answers(&[(200, Json("Version"))]),
    Route::get("/v1/chats", |m| on(m, chats::list), SERVER, "Lists the kept conversations, or finds some.")
        .query(chats::LIST)
        .answers(&[(200, Json("ChatList"))]),
    Route::get("/v1/chats/{id}", |m| on(m, chats::show), SERVER, "Shows a kept conversation.")
        .answers(&[(200, Json("Chat"))]),
    Route::post(
        "/v1/chats/{id}",
        |m| on(m, chats::change),
        SERVER,
        "Changes or creates a kept conversation.",
    )
    .body(&chats::CHANGE)
    .answers(&[(200, Json("ChangedChat"))]),
    Route::get("/v1/chats/{id}", |m| on(m, chats::delete), SERVER, "Deletes a kept conversation.")
        .delete()
        .answers(&[(200, Json("DeletedChat"))]),
    Route::get("/v1/tools", |m| on(m, tools::list), SERVER, "Lists the tools that the server runs.")
        .answers(&[(200, Json("ToolList"))]),
    Route::post("/v1/tools/call", |m| on(m, tools::call), SERVER, "Runs a tool.")
        .body(&tools::CALL)
        .answers(&[(200, Json("ToolResult"))]),
    Route::post("/infill", |m| on(m, llama_cpp::infill), LLAMA_CPP, "Writes the text between two others.")
        .body(CompletionRequest::INFILL)
        .answers(&[(200, Json("Infilling")), (200, Events)]),
    Route::get("/props", |m| on(m, llama_cpp::props), LLAMA_CPP, "Shows the first model and its defaults.")
        .answers(&[(200, Json("Properties"))]),
    Route::get("/slots", |m| on(m, llama_cpp::slots), LLAMA_CPP, "Lists the places of the batch.")
        .answers(&[(200, Json("Slots"))]),
    Route::post("/tokenize", |m| on(m, tokens::tokenize), SERVER, "Encodes a text.")
        .body(&tokens::TEXT)
        .answers(&[(200, Json("Tokens"))]),
    Route::post("/detokenize", |m| on(m, tokens::detokenize), SERVER, "Decodes token ids.")
        .body(&tokens::TOKENS)
        .answers(&[(200, Json("Text"))]),
    Route::post(
        "/apply-template",
        |m| on(m, tokens::apply_template),
        SERVER,
        "Renders the prompt of a chat completion.",
    )
    .body(ChatRequest::BODY)
    .answers(&[(200, Json("Prompt"))]),
    Route::get("/version", |m| on(m, health::version), SERVER, "Shows the version of the server.")
        .answers(&[(200, Json("Version"))]),
    Route::get("/metrics", |m| on(m, metrics::metrics), SERVER, "Shows the metrics for Prometheus.")
        .answers(&[(200, Text)]),
    Route::get("/health", |m| on(m, health::health), SERVER, "Reports whether the engines run.")
        .open()
        .answers(&[(200, Json("Status")), (503, Json("Status"))]),
    Route::get("/v1/health", |m| on(m, health::health), SERVER, "Reports whether the engines run.")
        .open()
        .answers(&[(200, Json("Status")), (503, Json("Status"))]),
    Route::get("/ready", |m| on(m, health::ready), SERVER, "Reports whether the server accepts requests.")
        .open()
        .answers(&[(200, Json("Status")), (503, Json("Status"))]),
    Route::get("/openapi.json", |m| on(m, openapi::show), SERVER, "Shows this document.")
        .open()
        .answers(&[(200, Json("OpenApi"))]),
];
