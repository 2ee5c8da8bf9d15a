//! An agent over a SQLite database: it looks prices up, asks before it writes, and goes on with its
//! conversation after a restart.
//!
//! `cargo run --release -p price-list -- FOLDER [MODEL]`
#![forbid(unsafe_code)]

use std::{io, io::Write, sync::Mutex};

use lm_conversation::{ConversationConfig, ConversationStore, DroppedHistory, FolderStore, Overflow};
use lm_tools::{Agent, AgentEvent, Decision, Engine, LoadOptions, ModelFolder, State, Toolset, Value, tool};
use rusqlite::{Connection, OptionalExtension};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Look up the price of a product
///
/// Args:
///     product: Name of the product
#[tool]
fn query(db: State<Mutex<Connection>>, product: String) -> Result<Value> {
    let db = db.lock().map_err(|error| error.to_string())?;
    let sql = "SELECT price FROM prices WHERE product = ?1";
    let price: Option<f64> = db.query_row(sql, [&product], |row| row.get(0)).optional()?;
    Ok(serde_json::json!({"product": product, "price": price.ok_or("not found")?}))
}

/// Add a product with its price
///
/// Args:
///     product: Name of the product
///     price: Price of the product
#[tool]
fn insert(db: State<Mutex<Connection>>, product: String, price: f64) -> Result<&'static str> {
    let db = db.lock().map_err(|error| error.to_string())?;
    db.execute("INSERT OR REPLACE INTO prices VALUES (?1, ?2)", (&product, price))?;
    Ok("done")
}

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).ok_or("usage: price-list FOLDER [MODEL]")?;
    let embedded = || Ok(ModelFolder::embedded(lm_pocket::NAME, lm_pocket::FILES));
    let model = std::env::args().nth(2).map_or_else(embedded, ModelFolder::open)?;
    let engine = Engine::load(&model, &LoadOptions::default(), Default::default(), &mut |_| {})?;

    let (store, id) = (FolderStore::open(&folder)?, "prices".parse()?);
    let db = Connection::open(format!("{folder}/prices.db"))?;
    db.execute("CREATE TABLE IF NOT EXISTS prices (product TEXT PRIMARY KEY, price REAL)", ())?;
    let tools = Toolset::new().with_state(Mutex::new(db)).with(query::tool())?.with(insert::tool())?;
    let mut agent = Agent::builder(&engine, tools)
        .config(ConversationConfig {
            overflow: Overflow::DropOldest(DroppedHistory::Kept),
            ..Default::default()
        })
        .before_call(|request| if request.call.name == "insert" { Decision::Ask } else { Decision::Run })
        .build()?;
    if let Some(saved) = store.load(&id)? {
        agent.conversation_mut().restore(saved)?;
    }

    let mut lines = io::stdin().lines();
    while let Some(line) = lines.next() {
        for event in agent.stream(line?)? {
            match event? {
                AgentEvent::Text(text) => print!("{text}"),
                AgentEvent::Approval(request) => {
                    eprint!(
                        "{} {}? [y/N] ",
                        request.call.name,
                        Value::Object(request.call.arguments.clone())
                    );
                    let yes = lines.next().transpose()?.is_some_and(|answer| answer == "y");
                    if yes { request.allow() } else { request.deny("permission denied") }
                }
                _ => io::stdout().flush()?,
            }
        }
        println!();
        store.save(&id, &agent.conversation().saved())?;
    }
    Ok(())
}
