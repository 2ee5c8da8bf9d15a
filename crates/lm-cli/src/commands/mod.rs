//! One file per command.

pub mod batch;
pub mod bench;
pub mod chat;
pub mod convert;
pub mod detokenize;
pub mod eval;
pub mod generate;
pub mod grammar;
pub mod inspect;
pub mod list;
pub mod logits;
pub mod parse;
pub mod pull;
pub mod rm;
pub mod score;
pub mod template;
pub mod tokenize;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::Command;

pub fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Chat(args) => return chat::run(&args),
        Command::Generate(args) => generate::run(&args)?,
        Command::Inspect(args) => inspect::run(&args)?,
        Command::Tokenize(args) => tokenize::run(&args)?,
        Command::Detokenize(args) => detokenize::run(&args)?,
        Command::Logits(args) => logits::run(&args)?,
        Command::Template(args) => template::run(&args)?,
        Command::Parse(args) => parse::run(&args)?,
        Command::Grammar(args) => grammar::run(&args)?,
        Command::Batch(args) => batch::run(&args)?,
        Command::Bench(args) => bench::run(&args)?,
        Command::Convert(args) => convert::run(&args)?,
        Command::Eval(args) => eval::run(&args)?,
        Command::Score(args) => score::run(&args)?,
        Command::Pull(args) => pull::run(&args)?,
        Command::List(args) => list::run(&args)?,
        Command::Rm(args) => rm::run(&args)?,
    }
    Ok(ExitCode::SUCCESS)
}
