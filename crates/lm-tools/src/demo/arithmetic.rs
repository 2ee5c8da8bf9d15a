//! Evaluation of arithmetic expressions.

use std::iter::Peekable;
use std::str::CharIndices;

/// Maximum nesting depth of parentheses, signs and powers: a model's call must not overflow the stack.
const MAX_DEPTH: usize = 64;

/// Significant digits of a non-integer result: one less than an `f64` holds, so that `0.1 + 0.2` is `0.3`.
const SIGNIFICANT_DIGITS: usize = 15;

/// Evaluation error. Positions count characters from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ArithmeticError {
    /// A number, a sign or `(` was expected.
    #[error("expected a number at character {position}, found {found}")]
    ExpectedNumber {
        /// Position of the unexpected text.
        position: usize,
        /// The unexpected text.
        found: String,
    },
    /// A complete expression is followed by something else.
    #[error("expected an operator or the end at character {position}, found {found}")]
    ExpectedOperator {
        /// Position of the unexpected text.
        position: usize,
        /// The unexpected text.
        found: String,
    },
    /// A parenthesis is not closed.
    #[error("expected `)` at character {position}, found {found}")]
    ExpectedParenthesis {
        /// Position of the unexpected text.
        position: usize,
        /// The unexpected text.
        found: String,
    },
    /// The expression is nested too deeply.
    #[error("the expression is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// Division by zero, or overflow.
    #[error("the result is not a finite number")]
    NotFinite,
}

/// Evaluates an expression of numbers, `+ - * / % ^`, signs and parentheses. `×`, `x` and `÷` are read as
/// `*`, `*` and `/`; `%` is the remainder; `^` has the highest precedence and is right-associative.
///
/// # Errors
/// When the text is not such an expression, or its value is not finite.
pub(crate) fn evaluate(expression: &str) -> Result<serde_json::Number, ArithmeticError> {
    let mut parser = Parser { characters: expression.char_indices().peekable(), text: expression, depth: 0 };
    let value = parser.sum()?;
    if parser.peek().is_some() {
        let (position, found) = parser.here();
        return Err(ArithmeticError::ExpectedOperator { position, found });
    }
    number(value)
}

/// Converts an integral value to an integer, and rounds any other to [`SIGNIFICANT_DIGITS`].
fn number(value: f64) -> Result<serde_json::Number, ArithmeticError> {
    /// Floats represent every integer up to 2^53 exactly.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let digits = SIGNIFICANT_DIGITS - 1;
    let rounded: f64 = format!("{value:.digits$e}").parse().map_err(|_| ArithmeticError::NotFinite)?;
    if rounded.fract() == 0.0 && value.abs() <= EXACT {
        // Rounding to fewer digits than an integer has would change it.
        let integer = if value.fract() == 0.0 { value } else { rounded };
        return Ok((integer as i64).into());
    }
    serde_json::Number::from_f64(rounded).ok_or(ArithmeticError::NotFinite)
}

struct Parser<'a> {
    characters: Peekable<CharIndices<'a>>,
    text: &'a str,
    depth: usize,
}

impl Parser<'_> {
    /// product (("+" | "-") product)*
    fn sum(&mut self) -> Result<f64, ArithmeticError> {
        let mut value = self.product()?;
        loop {
            match self.take(&['+', '-', '−']) {
                Some('+') => value += self.product()?,
                Some(_) => value -= self.product()?,
                None => return Ok(value),
            }
        }
    }

    /// signed (("*" | "/" | "%") signed)*
    fn product(&mut self) -> Result<f64, ArithmeticError> {
        let mut value = self.signed()?;
        loop {
            match self.take(&['*', '×', 'x', '/', '÷', '%']) {
                Some('*' | '×' | 'x') => value *= self.signed()?,
                Some('/' | '÷') => value /= self.signed()?,
                Some(_) => value %= self.signed()?,
                None => return Ok(value),
            }
        }
    }

    /// ("+" | "-") signed | power; so `-2^2` is -4
    fn signed(&mut self) -> Result<f64, ArithmeticError> {
        match self.take(&['+', '-', '−']) {
            Some('+') => self.nested(Self::signed),
            Some(_) => self.nested(Self::signed).map(|value| -value),
            None => self.power(),
        }
    }

    /// atom ("^" signed)?
    fn power(&mut self) -> Result<f64, ArithmeticError> {
        let base = self.atom()?;
        match self.take(&['^']) {
            Some(_) => Ok(base.powf(self.nested(Self::signed)?)),
            None => Ok(base),
        }
    }

    /// number | "(" sum ")"
    fn atom(&mut self) -> Result<f64, ArithmeticError> {
        if self.take(&['(']).is_none() {
            return self.number();
        }
        let value = self.nested(Self::sum)?;
        if self.take(&[')']).is_none() {
            let (position, found) = self.here();
            return Err(ArithmeticError::ExpectedParenthesis { position, found });
        }
        Ok(value)
    }

    /// Digits with at most one decimal point.
    fn number(&mut self) -> Result<f64, ArithmeticError> {
        let (position, found) = self.here();
        let start = self.peek_index();
        while self.characters.next_if(|(_, c)| c.is_ascii_digit() || *c == '.').is_some() {}
        let end = self.characters.peek().map_or(self.text.len(), |(index, _)| *index);
        self.text[start..end].parse().map_err(|_| ArithmeticError::ExpectedNumber { position, found })
    }

    fn nested(
        &mut self,
        rule: fn(&mut Self) -> Result<f64, ArithmeticError>,
    ) -> Result<f64, ArithmeticError> {
        if self.depth == MAX_DEPTH {
            return Err(ArithmeticError::TooDeep);
        }
        self.depth += 1;
        let value = rule(self);
        self.depth -= 1;
        value
    }

    fn take(&mut self, any_of: &[char]) -> Option<char> {
        self.peek()?;
        self.characters.next_if(|(_, c)| any_of.contains(c)).map(|(_, c)| c)
    }

    /// Peeks at the next non-whitespace character.
    fn peek(&mut self) -> Option<char> {
        while self.characters.next_if(|(_, c)| c.is_whitespace()).is_some() {}
        self.characters.peek().map(|(_, c)| *c)
    }

    fn peek_index(&mut self) -> usize {
        self.characters.peek().map_or(self.text.len(), |(index, _)| *index)
    }

    /// Position and description of the next character.
    fn here(&mut self) -> (usize, String) {
        let found = self.peek().map_or("the end".to_owned(), |c| format!("`{c}`"));
        let position = self.text[..self.peek_index()].chars().count() + 1;
        (position, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(expression: &str, expected: &str) {
        let value = evaluate(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
        assert_eq!(value.to_string(), expected, "{expression}");
    }

    #[test]
    fn operators_have_usual_precedence() {
        for (expression, expected) in [
            ("2", "2"),
            ("1 + 2 * 3", "7"),
            ("(1 + 2) * 3", "9"),
            ("10 - 4 - 3", "3"),
            ("100 / 8", "12.5"),
            ("17 % 5", "2"),
            ("2 ^ 3 ^ 2", "512"),
            ("-2 ^ 2", "-4"),
            ("2 ^ -1", "0.5"),
            ("--3", "3"),
            ("2*-3", "-6"),
            ("12 × 3 ÷ 4", "9"),
            ("12x3", "36"),
            ("\t( ( 1 ) )", "1"),
        ] {
            check(expression, expected);
        }
    }

    #[test]
    fn results_have_plain_decimal_form() {
        for (expression, expected) in [
            ("0.1 + 0.2", "0.3"),
            ("1.1 * 3", "3.3"),
            (".5 + 1.", "1.5"),
            ("10 / 3", "3.33333333333333"),
            ("9007199254740991 + 1", "9007199254740992"),
            ("123456789012345678 * 10", "1.23456789012346e+18"),
            ("0 * -1", "0"),
        ] {
            check(expression, expected);
        }
    }

    #[test]
    fn errors_name_the_place_and_what_was_expected() {
        for (expression, expected) in [
            ("", "expected a number at character 1, found the end"),
            ("3 + ", "expected a number at character 5, found the end"),
            ("2 × apples", "expected a number at character 5, found `a`"),
            ("2 2", "expected an operator or the end at character 3, found `2`"),
            ("(1 + 2", "expected `)` at character 7, found the end"),
            ("1.2.3", "expected a number at character 1, found `1`"),
            ("1 / 0", "the result is not a finite number"),
            ("9 ^ 999", "the result is not a finite number"),
            ("0 / 0", "the result is not a finite number"),
        ] {
            let error = evaluate(expression).expect_err(expression);
            assert_eq!(error.to_string(), expected, "{expression}");
        }
    }

    #[test]
    fn all_forms_of_nesting_are_bounded() {
        for piece in ["(", "-", "2^"] {
            let nested = piece.repeat(100_000);
            assert_eq!(evaluate(&format!("{nested}1")), Err(ArithmeticError::TooDeep), "{piece}");
        }
        check(&format!("{}1{}", "(".repeat(64), ")".repeat(64)), "1");
    }

    /// A fully parenthesised expression with its value.
    fn expression() -> impl Strategy<Value = (String, f64)> {
        let number = (0..1000_u32).prop_map(|n| (n.to_string(), f64::from(n)));
        number.prop_recursive(5, 40, 2, |inner| {
            (inner.clone(), prop::sample::select(vec!['+', '-', '*', '/', '%']), inner).prop_map(
                |((left, a), operator, (right, b))| {
                    let value = match operator {
                        '+' => a + b,
                        '-' => a - b,
                        '*' => a * b,
                        '/' => a / b,
                        _ => a % b,
                    };
                    (format!("({left} {operator}{right})"), value)
                },
            )
        })
    }

    proptest! {
        #[test]
        fn values_equal_the_tree((text, value) in expression()) {
            match evaluate(&text) {
                Ok(number) => {
                    let got = number.as_f64().expect("a number");
                    prop_assert!((got - value).abs() <= 1e-14 * value.abs(), "{text}: {got}, not {value}");
                }
                Err(error) => prop_assert!(error == ArithmeticError::NotFinite && !value.is_finite(), "{text}: {error}"),
            }
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in prop_oneof![any::<String>(), "[-+*/%^()x×÷. 0-9]{0,40}"]) {
            let _ = evaluate(&text);
        }
    }
}
