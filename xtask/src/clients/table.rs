//! The clients: their packages, and the scripts of their flows.

use super::install::Runtime;

/// A client. The version of its first package is that of the table.
pub struct Client {
    pub name: &'static str,
    pub packages: &'static [&'static str],
    /// A file of [`super::SCRIPTS`].
    pub script: &'static str,
}

impl Client {
    pub fn runtime(&self) -> Runtime {
        if self.script.ends_with(".mjs") { Runtime::Node } else { Runtime::Python }
    }

    /// Version of the first package.
    pub fn version(&self) -> &'static str {
        let separator = if self.runtime() == Runtime::Node { "@" } else { "==" };
        self.packages[0].rsplit_once(separator).map_or("", |(_, version)| version)
    }
}

/// Clients in the order of the table. A further one is a row and a script.
pub const CLIENTS: &[Client] = &[
    client("openai-responses", &["openai==3.54.0"], "flows_openai_responses.py"),
    client("litellm", &["litellm==1.110.2"], "flows_litellm.py"),
    client("openai-agents", &["openai-agents==0.24.0"], "flows_openai_agents.py"),
    client("pydantic-ai", &["pydantic-ai-slim[openai,anthropic]==2.68.0"], "flows_pydantic_ai.py"),
    client("smolagents", &["smolagents[openai]==1.26.0"], "flows_smolagents.py"),
    client("dspy", &["dspy==3.4.1", "litellm==1.110.2", "numpy==2.4.6"], "flows_dspy.py"),
    client("instructor", &["instructor[anthropic]==1.17.0"], "flows_instructor.py"),
    client(
        "llama-index",
        &[
            "llama-index-llms-openai-like==0.8.1",
            "llama-index-llms-ollama==0.11.0",
            "llama-index-embeddings-openai-like==0.4.0",
        ],
        "flows_llama_index.py",
    ),
    client("haystack", &["haystack-ai==3.4.1"], "flows_haystack.py"),
    client("semantic-kernel", &["semantic-kernel==1.45.0"], "flows_semantic_kernel.py"),
    client("autogen", &["autogen-ext[openai]==0.7.5", "autogen-agentchat==0.7.5"], "flows_autogen.py"),
    client(
        "agno",
        &["agno==3.1.10", "openai==3.57.0", "ollama==0.6.3", "anthropic==2.14.0"],
        "flows_agno.py",
    ),
    client("strands-agents", &["strands-agents[openai,anthropic,ollama]==1.62.0"], "flows_strands.py"),
    client("google-adk", &["google-adk==2.13.0", "litellm==1.110.2"], "flows_google_adk.py"),
    client(
        "inspect-ai",
        &["inspect-ai==0.3.285", "openai==3.57.0", "anthropic==2.14.0"],
        "flows_inspect_ai.py",
    ),
    client("llm", &["llm==0.36"], "flows_llm.py"),
    client("aider", &["aider-chat==0.86.2"], "flows_aider.py"),
    client("openai-agents-node", &["@openai/agents@0.20.0", "zod@4.6.7"], "flows_openai_agents.mjs"),
    client(
        "langchain-node",
        &[
            "langchain@1.5.14",
            "@langchain/core@1.4.0",
            "@langchain/openai@1.6.0",
            "@langchain/anthropic@1.5.11",
            "@langchain/ollama@1.3.0",
            "zod@4.6.7",
        ],
        "flows_langchain.mjs",
    ),
    client(
        "ai-sdk",
        &[
            "ai@7.0.173",
            "@ai-sdk/openai@4.0.118",
            "@ai-sdk/openai-compatible@3.0.92",
            "@ai-sdk/anthropic@4.0.105",
            "zod@4.6.7",
        ],
        "flows_ai_sdk.mjs",
    ),
    client("anthropic", &["anthropic==2.14.0"], "flows_anthropic.py"),
    client("anthropic-node", &["@anthropic-ai/sdk@1.14.0"], "flows_anthropic.mjs"),
    client("langchain-anthropic", &["langchain-anthropic==1.7.10"], "flows_langchain_anthropic.py"),
    client("ollama", &["ollama==0.6.3"], "flows_ollama.py"),
    client("ollama-node", &["ollama@0.6.4"], "flows_ollama.mjs"),
    client("langchain-ollama", &["langchain-ollama==1.1.0"], "flows_langchain_ollama.py"),
    client("schemathesis", &["schemathesis==4.32.5"], "flows_schemathesis.py"),
    client("mcp-inspector", &["@modelcontextprotocol/inspector@2.12.0"], "flows_mcp_inspector.mjs"),
];

const fn client(name: &'static str, packages: &'static [&'static str], script: &'static str) -> Client {
    Client { name, packages, script }
}
