//! Upper bound of the work of one derivative step, checked before the grammar library's search.
//!
//! The library counts its work after each step. A step through a conjunction multiplies the branches of its
//! operands, so that a single one can take unbounded time and memory: this product is bounded here.

use llguidance::derivre::ExprRef;
use llguidance::derivre::raw::ExprSet;

/// Maximum number of branches of a conjunction for one byte.
const MAX_BRANCHES: u64 = 1 << 20;
/// Maximum number of expressions examined, counted once for each byte.
const MAX_WORK: usize = 100_000_000;
/// First bytes of UTF-8 characters. (A continuation byte follows a byte that is counted.)
const FIRST_BYTES: [std::ops::RangeInclusive<u8>; 2] = [0x00..=0x7f, 0xc2..=0xf4];

/// Rejects expression sets that have a conjunction with too many branches for a byte.
///
/// # Errors
/// The reason.
pub(super) fn check(exprs: &ExprSet) -> Result<(), String> {
    let kinds = Kinds::new();
    let all = || (1..exprs.len() as u32).map(ExprRef::new);
    if !all().any(|expr| exprs.get_tag(expr) as u8 == kinds.and) {
        return Ok(());
    }
    let bytes = FIRST_BYTES.into_iter().flatten();
    if exprs.len().saturating_mul(bytes.clone().count()) > MAX_WORK {
        return Err(format!("too many expressions beside patterns that must hold at once: {}", exprs.len()));
    }
    let mut branches = vec![0; exprs.len()];
    for byte in bytes {
        // Operands precede their expression.
        for expr in all() {
            let found = kinds.branches(exprs, expr, byte, &branches);
            if found > MAX_BRANCHES && exprs.get_tag(expr) as u8 == kinds.and {
                return Err(format!("too many branches in patterns that must hold at once: {found}"));
            }
            branches[expr.as_usize()] = found;
        }
    }
    Ok(())
}

/// Tags of the expression kinds that are distinguished, as the library numbers them.
struct Kinds {
    and: u8,
    not: u8,
    byte: u8,
    bytes: u8,
    literal: u8,
}

impl Kinds {
    fn new() -> Self {
        let mut exprs = ExprSet::new(256);
        let byte = exprs.mk_byte(b'a');
        let literal = exprs.mk_byte_literal(b"ab");
        let not = exprs.mk_not(literal);
        let and = exprs.mk_and(&mut vec![ExprRef::NON_EMPTY_BYTE_STRING, not]);
        let kind = |expr| exprs.get_tag(expr) as u8;
        Self {
            and: kind(and),
            not: kind(not),
            byte: kind(byte),
            bytes: kind(ExprRef::ANY_BYTE),
            literal: kind(literal),
        }
    }

    /// Upper bound of the number of branches of `expr` for `byte`, given those of its operands.
    fn branches(&self, exprs: &ExprSet, expr: ExprRef, byte: u8, operands: &[u64]) -> u64 {
        let parts = || exprs.get_args(expr).iter().map(|part| operands[part.as_usize()]);
        match exprs.get_tag(expr) as u8 {
            kind if kind == self.byte || kind == self.bytes => exprs.get(expr).matches_byte(byte).into(),
            // The branches of a negation are made disjoint.
            kind if kind == self.not => 1,
            kind if kind == self.and => parts().fold(1, u64::saturating_mul),
            kind if kind == self.literal => parts().fold(1, u64::saturating_add),
            _ if exprs.get_args(expr).is_empty() => 1,
            _ => parts().fold(0, u64::saturating_add),
        }
    }
}

#[cfg(test)]
mod tests {
    use llguidance::derivre::RegexBuilder;

    use super::check;

    fn conjoined(patterns: impl IntoIterator<Item = String>) -> Result<(), String> {
        let mut builder = RegexBuilder::new();
        let patterns: Vec<String> = patterns.into_iter().collect();
        let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
        builder.mk_regex_and(&patterns).expect("patterns");
        check(builder.exprset())
    }

    #[test]
    fn conjunction_cost_is_the_product_of_branches() {
        let found = |c: char| format!("(?s:.*)a{c}(?s:.*)");
        assert!(conjoined(('a'..='z').map(found)).is_err());
        assert!(conjoined(('a'..='e').map(found)).is_ok());
        // Each byte determines the next state.
        assert!(conjoined(('a'..='z').map(|c| format!("[0-9]*{c}"))).is_ok());
        assert!(conjoined(["[a-z]{1,1000}".to_owned(), "[^q]{5,50}".to_owned()]).is_ok());
    }
}
