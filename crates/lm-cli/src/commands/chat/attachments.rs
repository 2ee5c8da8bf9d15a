//! Files that messages begin with: whole ones, and passages of those that are too large.

use std::sync::Arc;

use anyhow::Result;
use lm_conversation::Conversation;
use lm_documents::Passages;
use lm_tokenizer::TextSegment;

use crate::counted::counted;
use crate::screen::one_line;
use crate::share::Share;
use crate::text_file::TextFile;

/// Most bytes of the passages that a message begins with, some 4,000 tokens: more take long to read, and hide
/// what was asked for.
const FIRST: usize = 16_000;
/// Bytes of the passages that a later message begins with: some 1,200 tokens.
const FURTHER: usize = 4_800;
/// Largest number of pages that a note names.
const MAX_PAGES: usize = 12;

/// Files of the next message, and large ones of earlier messages, of which later ones have further passages.
#[derive(Clone)]
pub struct Attachments {
    next: Vec<TextFile>,
    large: Vec<Large>,
    /// Largest share of the context that the files of a message may take.
    share: Share,
}

/// A file that is too large for a message.
#[derive(Clone)]
struct Large {
    file: TextFile,
    passages: Arc<Passages>,
    sent: Vec<usize>,
}

impl Attachments {
    /// Creates an empty list.
    pub fn new(share: Share) -> Self {
        Self { next: Vec::new(), large: Vec::new(), share }
    }

    /// Adds a file to the next message; returns a note with its size.
    pub fn add(&mut self, file: TextFile, conversation: &Conversation) -> Result<String> {
        let about = file.about().map(|about| format!(", {about}")).unwrap_or_default();
        let tokens = tokens(&file.prompt(), conversation)?;
        let name = one_line(&file.path.display().to_string());
        let share = self.room(conversation);
        let place = match tokens > share {
            true => {
                "; the next message has the passages that fit it, as the file is larger than --file-share"
                    .to_owned()
            }
            false => " before the next message".to_owned(),
        };
        self.next.push(file);
        Ok(format!("({name}: {}{about}{place}; /file alone drops it)", counted(tokens, "token")))
    }

    /// Drops all files.
    pub fn clear(&mut self) {
        (self.next, self.large) = (Vec::new(), Vec::new());
    }

    /// Forgets the large files of earlier messages: another conversation begins.
    pub fn forget_large(&mut self) {
        self.large.clear();
    }

    /// Takes the texts that a message begins with, and notes on the files of which it has passages.
    pub fn take(&mut self, message: &str, conversation: &Conversation) -> Result<(Vec<String>, Vec<String>)> {
        let (mut texts, mut notes) = (Vec::new(), Vec::new());
        for large in &mut self.large {
            let chosen = large.passages.choose_more(message, FURTHER, &large.sent);
            if !chosen.is_empty() {
                notes.push(large.note(&chosen, "more"));
                texts.push(large.take(chosen));
            }
        }
        let next = std::mem::take(&mut self.next);
        let room = self.room(conversation) / next.len().max(1);
        for file in next {
            let whole = file.prompt();
            let size = tokens(&whole, conversation)?;
            if size <= room {
                texts.push(whole);
                continue;
            }
            let mut large = Large::new(file);
            let bytes = (large.passages.bytes() * room / size).min(FIRST);
            let mut chosen = large.passages.choose(message, bytes);
            let fit = if chosen.is_empty() { "the first" } else { "those that fit the message" };
            if chosen.is_empty() {
                chosen = large.passages.first(bytes);
            }
            notes.push(large.note(&chosen, fit));
            texts.push(large.take(chosen));
            self.large.push(large);
        }
        Ok((texts, notes))
    }

    /// Tokens that the files of a message may take.
    fn room(&self, conversation: &Conversation) -> usize {
        self.share.of(conversation.engine().context_tokens())
    }
}

impl Large {
    fn new(file: TextFile) -> Self {
        let passages = Arc::new(Passages::new(file.text().to_owned()));
        Self { file, passages, sent: Vec::new() }
    }

    /// Text of passages, which count as sent.
    fn take(&mut self, chosen: Vec<usize>) -> String {
        let text = self.passages.prompt(&self.file.name(), &chosen);
        self.sent.extend(chosen);
        text
    }

    /// Note on the passages that a message begins with.
    fn note(&self, chosen: &[usize], fit: &str) -> String {
        let pages = self.passages.pages(chosen);
        let shown: Vec<String> = pages.iter().take(MAX_PAGES).map(usize::to_string).collect();
        let more = if pages.len() > MAX_PAGES { ", …" } else { "" };
        let shown = shown.join(", ");
        let pages = match pages.len() {
            0 => String::new(),
            1 => format!(": page {shown}"),
            _ => format!(": pages {shown}{more}"),
        };
        let name = one_line(&self.file.name());
        let (count, all) = (chosen.len(), self.passages.len());
        format!("({name}: {count} of {all} passages, {fit}{pages}; --file-share off sends all)")
    }
}

fn tokens(text: &str, conversation: &Conversation) -> Result<usize> {
    let tokenizer = conversation.engine().tokenizer();
    Ok(tokenizer.encode_segments(&[TextSegment::Content(text)])?.len())
}
