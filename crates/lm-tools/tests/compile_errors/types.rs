// Options that do not fit the type of their argument: errors of the type check.
use lm_tools::{Toolset, tool, tools};

/// Has a range of a text.
#[tool]
fn range_of_text(#[arg(range(1..=10))] a: String) {}

/// Has a range of another type.
#[tool]
fn range_of_floats(#[arg(range(0..=1))] a: f64) {}

/// Has a length of a number.
#[tool]
fn length_of_number(#[arg(length(1..=10))] a: u32) {}

/// Has a pattern of a list.
#[tool]
fn pattern_of_list(#[arg(pattern = "^a")] a: Vec<String>) {}

/// Has items of a text.
#[tool]
fn items_of_text(#[arg(items(length(1..)))] a: String) {}

/// Has choices of another type.
#[tool]
fn choices_of_flag(#[arg(choices(1, 2))] a: bool, #[arg(choices("a"))] b: i64) {}

/// Has a default of another type.
#[tool]
fn default_of_text(#[arg(default = 5)] a: String) {}

fn add() -> lm_tools::Result<Toolset> {
    Toolset::new().with(range_of_text)
}

struct Local(std::rc::Rc<u8>);

#[tools]
impl Local {
    /// Shares a value that threads cannot share.
    #[tool]
    fn read(&self) -> u8 {
        *self.0
    }
}

struct Opaque;

/// Has a type without a schema.
#[tool]
fn opaque(a: Opaque) {}

/// Has a result without a JSON form.
#[tool]
fn opaque_result() -> Opaque {
    Opaque
}

/// Has results and errors without one.
#[tool]
async fn opaque_outcome(flag: bool) -> Result<Opaque, Opaque> {
    if flag { Ok(Opaque) } else { Err(Opaque) }
}
