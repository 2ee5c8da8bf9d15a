//! `lm conversations`: the conversations that `lm chat` and the page of `lm serve` keep.

mod export;
mod import;
mod show;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Subcommand;
use lm_store::{Error, Owner, Store, Summary};
use serde_json::{Value, json};

use crate::events;
use crate::kept_cache::KeptCaches;
use crate::kept_store::StoreArgs;
use crate::screen::one_line;

const EXAMPLES: &str = "\
Examples:
  lm conversations list
  lm conversations search 'blue sky'
  lm conversations show 'Why is the sky blue?'
  lm conversations export -o backup.jsonl         all of them, a backup
  lm conversations import backup.jsonl
  lm conversations delete c0123456789abcdef01234567

A conversation is named by its id, its title, or a part of its title; `delete` takes no parts. Those of the keys of `lm serve` are not \
shown.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    file: StoreArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the conversations, the last changed first
    List {
        /// Number of conversations
        #[arg(long, short = 'n', value_name = "N")]
        limit: Option<usize>,
        /// Print conversations as JSON Lines, without their messages
        #[arg(long)]
        json: bool,
    },
    /// Find conversations in which all words occur in a message or in the title; the last word may be a
    /// beginning
    Search {
        /// The words
        #[arg(required = true)]
        words: Vec<String>,
        /// Number of conversations
        #[arg(long, short = 'n', value_name = "N", default_value = "20")]
        limit: usize,
        /// Print conversations as JSON Lines, with the text around the first word
        #[arg(long)]
        json: bool,
    },
    /// Print a conversation: the shown branch
    Show {
        /// Its title, a part of it, or its id
        #[arg(value_name = "TITLE|ID")]
        name: String,
        /// Print it as a line of JSON, with all branches
        #[arg(long)]
        json: bool,
    },
    /// Write conversations as JSON Lines, with all branches, images and audio
    Export {
        /// Titles, parts of them, or ids [default: all conversations]
        #[arg(value_name = "TITLE|ID")]
        names: Vec<String>,
        /// New file to write to [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Read conversations from JSON Lines, or from an export of the page; those that are there already stay
    /// as they are
    Import {
        /// Files; `-` is standard input
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Delete conversations; their text is overwritten in the file
    Delete {
        /// Titles or ids
        #[arg(value_name = "TITLE|ID", required = true)]
        names: Vec<String>,
    },
}

/// Runs the command; the exit code reports conversations that could not be imported.
///
/// # Errors
/// When the store cannot be opened, read or written, or there is no conversation of a name.
pub fn run(args: &Args) -> Result<ExitCode> {
    let store = args.file.open()?;
    let owner = Owner::local();
    match &args.command {
        Command::List { limit, json } => {
            let list = store.list(&owner, limit.unwrap_or(usize::MAX), 0)?;
            print(list.into_iter().map(|summary| (summary, None)).collect(), *json)?;
        }
        Command::Search { words, limit, json } => {
            let found = store.search(&owner, &words.join(" "), *limit)?;
            print(found.into_iter().map(|found| (found.summary, Some(found.excerpt))).collect(), *json)?;
        }
        Command::Show { name, json } => show::show(&store, name, *json)?,
        Command::Export { names, output } => export::export(&store, names, output.as_deref())?,
        Command::Import { files } => return import::import(&store, files),
        Command::Delete { names } => delete(&store, &KeptCaches::of(&args.file.path()?), names)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print(list: Vec<(Summary, Option<String>)>, as_json: bool) -> Result<()> {
    let mut out = io::stdout().lock();
    if as_json {
        for (summary, excerpt) in list {
            writeln!(out, "{}", summary_json(&summary, excerpt))?;
        }
        return Ok(());
    }
    if list.is_empty() {
        eprintln!("no conversations");
    }
    for (Summary { id, title, updated, messages, .. }, excerpt) in list {
        let line = format!("{id}  {:>7}  {messages:>4}  {}", show::age(updated), one_line(&title));
        writeln!(out, "{}", line.trim_end())?;
        if let Some(excerpt) = excerpt {
            writeln!(out, "    {}", one_line(&excerpt))?;
        }
    }
    Ok(())
}

fn summary_json(summary: &Summary, excerpt: Option<String>) -> Value {
    let Summary { id, title, created, updated, messages } = summary;
    let mut line = json!({
        "version": events::VERSION, "id": id, "title": title, "created": created, "updated": updated, "messages": messages,
    });
    if let Some(excerpt) = excerpt {
        line["excerpt"] = excerpt.into();
    }
    line
}

/// Deletes all of the conversations, or none if one of the names is wrong.
fn delete(store: &Store, caches: &KeptCaches, names: &[String]) -> Result<()> {
    let owner = Owner::local();
    let mut chosen = Vec::new();
    for name in names {
        let id = store.find(&owner, name)?;
        let found = store.get(&owner, &id)?.ok_or_else(|| Error::Unknown { name: name.clone() })?;
        if found.id != *name && found.title != *name {
            bail!(
                "`{name}` is a part of the title \"{}\"; `lm conversations delete {id}` deletes it",
                found.title
            );
        }
        chosen.push((id, found.title));
    }
    for (id, title) in chosen {
        caches.remove(&id);
        if store.delete(&owner, &id)? {
            eprintln!("deleted {id} ({})", one_line(&title));
        }
    }
    Ok(())
}
