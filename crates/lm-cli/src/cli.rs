//! Command line: the commands, and the program's own help.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{CommandFactory, Parser, Subcommand};

#[cfg(feature = "mcp")]
use crate::commands::mcp;
#[cfg(feature = "serve")]
use crate::commands::serve;
use crate::commands::{
    batch, bench, chat, conversations, convert, detokenize, embed, eval, generate, grammar, imatrix, inspect,
    list, logits, parse, pull, replay, rerank, rm, score, template, tokenize,
};
use crate::interrupt::Interrupt;
use crate::text_file::READ_DOCUMENT;

const EXAMPLES: &str = "\
Examples:
  lm chat --tools demo                         talk to the embedded model, with tools
  echo 'How is the weather in Paris?' | lm chat --tools demo
  lm pull Qwen/Qwen3-0.6B                      download a model, then use it by name
  lm generate 'Tell me a joke' --model Qwen/Qwen3-0.6B --quantize q4
  lm inspect ./Qwen3-0.6B
  lm tokenize --text 'Hello, world'

Without a model, the commands use the small one that is part of the program. The answer goes to standard output, everything else to \
standard error. Exit codes: 0 success, 1 failure, 2 invalid usage, 130 interrupted. Set LM_LOG=debug for a log on standard error.";

/// Chat with a local language model that calls tools
#[derive(Debug, Parser)]
#[command(name = "lm", version, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Talk to a model, turn by turn
    Chat(chat::Args),
    /// List, search, show, export, import and delete the kept conversations
    Conversations(conversations::Args),
    /// Answer one prompt
    Generate(generate::Args),
    /// Serve models over HTTP, to clients of OpenAI, Anthropic and Ollama
    #[cfg(feature = "serve")]
    Serve(serve::Args),
    /// Download a model by name
    Pull(pull::Args),
    /// List the models on this machine
    List(list::Args),
    /// Remove a downloaded model
    Rm(rm::Args),
    /// Show what a model is and needs, without loading its weights
    Inspect(inspect::Args),
    /// Encode texts to token ids, one JSON line each
    Tokenize(tokenize::Args),
    /// Decode token ids to texts, one JSON line each
    Detokenize(detokenize::Args),
    /// Write a model's logits for given token ids to a file
    Logits(logits::Args),
    /// Render conversations to prompts, one JSON object a line
    Template(template::Args),
    /// Parse model output into content, reasoning and tool calls, one JSON object a line
    Parse(parse::Args),
    /// Test which texts a grammar accepts: a family's calls, a schema or a pattern; one JSON object a line
    Grammar(grammar::Args),
    /// Serve tools over the Model Context Protocol (MCP), or list those of servers
    #[cfg(feature = "mcp")]
    Mcp(mcp::Args),
    /// Answer chat completions and embeddings over JSON Lines, many at a time
    Batch(batch::Args),
    /// Measure prefill and decode speed, and the memory's read bandwidth beside it
    Bench(bench::Args),
    /// Write a quantised folder or a GGUF file of a model
    Convert(convert::Args),
    /// Record the importance of a model's weights over a text, for `lm convert --imatrix`
    Imatrix(imatrix::Args),
    /// Compute embeddings of texts, one JSON line each
    Embed(embed::Args),
    /// Rank documents by their relevance to a query, one JSON line each
    Rerank(rerank::Args),
    /// Measure the perplexity of a text, and the divergence from another model
    Eval(eval::Args),
    /// Count the recorded replies that a model reproduces exactly
    Score(score::Args),
    /// Run recorded requests again and compare the tokens
    Replay(replay::Args),
    /// Read a PDF file from standard input and write its text as JSON: what this program runs for each file
    #[command(name = READ_DOCUMENT, hide = true)]
    ReadDocument,
    /// Print the completion script of a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages to a folder
    Man {
        /// The folder
        folder: PathBuf,
    },
}

impl Cli {
    /// Runs the command.
    ///
    /// # Errors
    /// When the command fails; [`crate::failure`] chooses the exit code.
    pub fn run(self, interrupt: &Interrupt) -> Result<ExitCode> {
        match self.command {
            Command::Chat(args) => return chat::run(&args, interrupt),
            Command::Conversations(args) => return conversations::run(&args),
            Command::Generate(args) => generate::run(&args, interrupt)?,
            #[cfg(feature = "serve")]
            Command::Serve(args) => serve::run(&args, interrupt)?,
            Command::Inspect(args) => inspect::run(&args)?,
            Command::Tokenize(args) => tokenize::run(&args)?,
            Command::Detokenize(args) => detokenize::run(&args)?,
            Command::Logits(args) => logits::run(&args)?,
            Command::Template(args) => template::run(&args)?,
            Command::Parse(args) => parse::run(&args)?,
            Command::Grammar(args) => grammar::run(&args)?,
            #[cfg(feature = "mcp")]
            Command::Mcp(args) => mcp::run(&args)?,
            Command::Batch(args) => return batch::run(&args, interrupt),
            Command::Bench(args) => bench::run(&args)?,
            Command::Convert(args) => convert::run(&args)?,
            Command::Imatrix(args) => imatrix::run(&args)?,
            Command::Embed(args) => embed::run(&args, interrupt)?,
            Command::Rerank(args) => rerank::run(&args, interrupt)?,
            Command::Eval(args) => eval::run(&args)?,
            Command::Score(args) => score::run(&args)?,
            Command::Replay(args) => return replay::run(&args, interrupt),
            Command::Pull(args) => pull::run(&args)?,
            Command::List(args) => list::run(&args)?,
            Command::Rm(args) => rm::run(&args)?,
            Command::ReadDocument => lm_documents::run_child(io::stdin(), io::stdout())?,
            Command::Completions { shell } => print_completions(shell)?,
            Command::Man { folder } => {
                std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
                clap_mangen::generate_to(Self::command(), &folder)
                    .context("the man pages cannot be written")?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn print_completions(shell: clap_complete::Shell) -> io::Result<()> {
    // The generator panics when its output cannot be written, as into a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "lm", &mut script);
    io::stdout().write_all(&script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
