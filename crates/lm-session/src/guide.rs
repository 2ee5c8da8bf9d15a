//! A constraint at work in one generation.

use crate::{Constraint, Ending, Result, TokenId, TokenMask};

/// The constraint of a generation, its mask for the next token and the tokens that may end it.
#[derive(Debug)]
pub(crate) struct Guide {
    constraint: Box<dyn Constraint>,
    end_ids: Vec<TokenId>,
    mask: TokenMask,
    /// Whether `mask` is that of the next token.
    ready: bool,
}

impl Guide {
    /// `end_ids` are what ends the generation; the mask has `width` tokens.
    pub fn new(constraint: Box<dyn Constraint>, end_ids: Vec<TokenId>, width: usize) -> Self {
        Self { constraint, end_ids, mask: TokenMask::new(width), ready: false }
    }

    /// What may come next, the end tokens included where the text may end.
    pub fn mask(&mut self) -> Result<&TokenMask> {
        if !self.ready {
            self.mask.clear();
            self.constraint.mask(&mut self.mask)?;
            if self.constraint.ending()? != Ending::Forbidden {
                self.end_ids.iter().for_each(|&id| self.mask.allow(id));
            }
            self.ready = true;
        }
        Ok(&self.mask)
    }

    /// Takes a token of the text; end tokens are none.
    pub fn commit(&mut self, id: TokenId) -> Result<()> {
        self.ready = false;
        self.constraint.commit(id)
    }

    /// Whether nothing more may come but an end token.
    pub fn is_complete(&mut self) -> Result<bool> {
        Ok(self.constraint.ending()? == Ending::Required)
    }

    /// What must come next, an end token included when there is but one.
    pub fn forced(&mut self) -> Result<Vec<TokenId>> {
        match self.constraint.ending()? {
            Ending::Required => {
                Ok(self.end_ids.get(..1).filter(|_| self.end_ids.len() == 1).unwrap_or_default().to_vec())
            }
            Ending::Allowed => Ok(Vec::new()),
            Ending::Forbidden => self.constraint.forced(),
        }
    }
}
