//! The conversation of a chat in the store: after each turn, the tree of messages has what the history has.

use anyhow::Result;
use lm_store::{Change, Conversation, Error, Owner, Store};
use lm_template::{Map, Message, Role, Value};

use crate::kept_message::{of_kept, to_kept};

/// Characters of a title that is made of a question.
const TITLE: usize = 60;

/// A conversation of the store. Nothing is written before the first question.
pub struct Kept {
    store: Store,
    owner: Owner,
    model: String,
    /// Id of the conversation; `None` before it is created.
    id: Option<String>,
    /// Text that the title of a conversation is made of, if that is not its first message: files come before
    /// the text of the user.
    typed: Option<String>,
    settings: Map<String, Value>,
    /// The messages of the history with their ids; roles that are not kept have none.
    path: Vec<(Option<String>, Message)>,
}

/// A kept conversation, opened for a chat.
pub struct Opened {
    pub title: String,
    pub system: String,
    pub history: Vec<Message>,
    /// A last question without an answer, which is not in the history.
    pub unanswered: Option<String>,
}

impl Kept {
    /// Keeps the conversation of a chat with this model.
    pub fn new(store: Store, model: &str) -> Self {
        let (model, owner) = (model.to_owned(), Owner::local());
        Self { store, owner, model, id: None, typed: None, settings: Map::new(), path: Vec::new() }
    }

    /// Id of the conversation; `None` before it is created.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Sets what the user has typed of the next message.
    pub fn set_typed(&mut self, text: &str) {
        self.typed = Some(text.to_owned());
    }

    /// Begins another conversation.
    pub fn restart(&mut self) {
        (self.id, self.settings, self.path) = (None, Map::new(), Vec::new());
    }

    /// Opens the conversation of this id.
    ///
    /// # Errors
    /// When it does not exist, or cannot be read.
    pub fn open(&mut self, id: &str) -> Result<Opened> {
        let found = self.store.get(&self.owner, id)?;
        let conversation = found.ok_or_else(|| Error::Unknown { name: id.to_owned() })?;
        let (path, unanswered) = answered(&conversation);
        let history = path.iter().map(|(_, message)| message.clone()).collect();
        self.path = path.into_iter().map(|(id, message)| (Some(id), message)).collect();
        let Conversation { id, title, settings, .. } = conversation;
        let system = settings.get("system").and_then(Value::as_str).unwrap_or_default().to_owned();
        (self.id, self.settings) = (Some(id), settings);
        Ok(Opened { title, system, history, unanswered })
    }

    /// Writes what differs from the history: new messages, as a branch where they replace others; a reply
    /// that was continued; and messages that were taken back are removed.
    ///
    /// # Errors
    /// When the store cannot be written; the next call tries again.
    pub fn sync(&mut self, history: &[Message], system: &str) -> Result<()> {
        match self.write(history, system) {
            // Another program has deleted the conversation, or the branch.
            Err(Error::Unknown { .. } | Error::Invalid { .. }) if self.id.is_some() => {
                self.restart();
                Ok(self.write(history, system)?)
            }
            written => Ok(written?),
        }
    }

    fn write(&mut self, history: &[Message], system: &str) -> lm_store::Result<()> {
        let mut common =
            self.path.iter().zip(history).take_while(|((_, kept), message)| kept == *message).count();
        let settings = self.settings_with(system);
        let is_system_kept =
            settings["system"] == self.settings.get("system").cloned().unwrap_or_else(|| "".into());
        if common == history.len() && common == self.path.len() && (self.id.is_none() || is_system_kept) {
            return Ok(());
        }
        let mut change = Change::default();
        let mut path = self.path[..common].to_vec();
        if let Some((id, longer)) = self.continued(common, history) {
            let parent = parent_of(&path);
            if let Some(mut kept) = to_kept(longer, parent.as_deref(), &self.model) {
                kept.id.clone_from(&id);
                change.messages.push(kept);
                path.push((Some(id), longer.clone()));
                common += 1;
            }
        }
        for message in &history[common..] {
            let parent = parent_of(&path);
            let kept = to_kept(message, parent.as_deref(), &self.model);
            if let Some(kept) = &kept {
                change.selected.insert(parent.unwrap_or_default(), kept.id.clone());
            }
            path.push((kept.as_ref().map(|kept| kept.id.clone()), message.clone()));
            change.messages.extend(kept);
        }
        if common == history.len() {
            let first = self.path[common.min(self.path.len())..].iter().find_map(|(id, _)| id.clone());
            change.removed.extend(first);
        }
        let id = match &self.id {
            Some(id) => id.clone(),
            None => {
                let Some(first) = title(history) else { return Ok(()) };
                let typed = self.typed.as_deref().filter(|_| history.len() == 1);
                let title = typed.and_then(title_of).unwrap_or(first);
                let new = Conversation::new(&title);
                (change.create, change.title) = (true, Some(title));
                new.id
            }
        };
        change.settings = (settings != self.settings || change.create).then(|| settings.clone());
        self.store.apply(&self.owner, &id, &change)?;
        (self.id, self.settings, self.path) = (Some(id), settings, path);
        Ok(())
    }

    /// The kept reply at this place, if the history has it with more text: `/continue` has written on in it.
    fn continued<'h>(&self, at: usize, history: &'h [Message]) -> Option<(String, &'h Message)> {
        let ((id, kept), message) = (self.path.get(at)?, history.get(at)?);
        let are_replies =
            kept.role == Role::Assistant && message.role == Role::Assistant && kept.tool_calls.is_empty();
        let is_longer = message.content.text().starts_with(&kept.content.text());
        Some((id.clone().filter(|_| are_replies && is_longer)?, message))
    }

    fn settings_with(&self, system: &str) -> Map<String, Value> {
        let mut settings = self.settings.clone();
        settings.insert("model".to_owned(), self.model.as_str().into());
        settings.insert("system".to_owned(), system.into());
        settings
    }
}

fn parent_of(path: &[(Option<String>, Message)]) -> Option<String> {
    path.iter().rev().find_map(|(id, _)| id.clone())
}

/// Title of a conversation: the beginning of its first question.
fn title(history: &[Message]) -> Option<String> {
    let question = history.iter().find(|message| message.role == Role::User)?;
    Some(title_of(&question.content.text()).unwrap_or_else(|| "Image or audio".to_owned()))
}

/// Beginning of the first line of a text; `None` if it has none.
fn title_of(text: &str) -> Option<String> {
    let line = text.trim().lines().next()?;
    let title: String = line.chars().take(TITLE).collect();
    let cut = if title.len() < line.len() { "…" } else { "" };
    Some(title + cut)
}

/// The selected messages with their ids, up to the last answer; and the question after it, if it has none.
fn answered(conversation: &Conversation) -> (Vec<(String, Message)>, Option<String>) {
    let messages = conversation.path().into_iter().map(|kept| (kept.id.clone(), of_kept(kept)));
    // Replies that failed before their first word.
    let is_empty = |message: &Message| {
        message.role == Role::Assistant && message.content.is_empty() && message.tool_calls.is_empty()
    };
    let mut path: Vec<(String, Message)> = messages.filter(|(_, message)| !is_empty(message)).collect();
    let is_answer =
        |(_, message): &(String, Message)| message.role == Role::Assistant && message.tool_calls.is_empty();
    let end = path.iter().rposition(is_answer).map_or(0, |last| last + 1);
    let rest = path.split_off(end);
    let question = rest.into_iter().find(|(_, message)| message.role == Role::User);
    (path, question.map(|(_, message)| message.content.text_with_notes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> Kept {
        Kept::new(Store::in_memory().expect("a store"), "pocket")
    }

    fn user(text: &str) -> Message {
        Message::user(text)
    }

    fn reply(text: &str) -> Message {
        Message::assistant(text)
    }

    /// All texts of the conversation with their parents', and those of the shown branch.
    fn tree(kept: &Kept) -> (Vec<String>, Vec<String>) {
        let id = kept.id.as_deref().expect("is created");
        let conversation = kept.store.get(&kept.owner, id).expect("can be read").expect("is there");
        let text = |id: &str| {
            conversation
                .messages
                .iter()
                .find(|message| message.id == id)
                .map(|message| message.content.clone())
        };
        let edge = |message: &lm_store::Message| {
            format!("{}>{}", message.parent.as_deref().and_then(text).unwrap_or_default(), message.content)
        };
        let path = conversation.path().into_iter().map(|message| message.content.clone()).collect();
        (conversation.messages.iter().map(edge).collect(), path)
    }

    #[test]
    fn turns_regenerated_continued_and_taken_back() {
        let mut kept = kept();
        kept.sync(&[], "").expect("nothing is written");
        assert_eq!(kept.store.count(&kept.owner).expect("a number"), 0);
        let mut history = vec![user("one")];
        kept.sync(&history, "Be brief.").expect("is written");
        history.push(reply("two"));
        kept.sync(&history, "Be brief.").expect("is written");
        history[1] = reply("two and more");
        kept.sync(&history, "Be brief.").expect("is written");
        assert_eq!(tree(&kept).0, [">one", "one>two and more"]);
        history[1] = reply("another");
        kept.sync(&history, "Be brief.").expect("is written");
        history.extend([user("three"), reply("four")]);
        kept.sync(&history, "").expect("is written");
        let (edges, path) = tree(&kept);
        assert_eq!(edges, [">one", "one>two and more", "one>another", "another>three", "three>four"]);
        assert_eq!(path, ["one", "another", "three", "four"]);
        history.truncate(2);
        kept.sync(&history, "").expect("is written");
        assert_eq!(tree(&kept).1, ["one", "another"]);
        let list = kept.store.list(&kept.owner, 9, 0).expect("a list");
        assert_eq!((list.len(), list[0].title.as_str(), list[0].messages), (1, "one", 3));
        let opened = kept.open(&list[0].id).expect("is there");
        assert_eq!((opened.history, opened.unanswered, opened.system.as_str()), (history, None, ""));
    }

    #[test]
    fn deleted_conversation_is_written_again() {
        let mut kept = kept();
        let mut history = vec![user("one"), reply("two")];
        kept.sync(&history, "").expect("is written");
        let id = kept.id.clone().expect("is created");
        assert!(kept.store.delete(&kept.owner, &id).expect("is deleted"));
        history.extend([user("three"), reply("four")]);
        kept.sync(&history, "").expect("is written");
        assert_ne!(kept.id, Some(id));
        assert_eq!(tree(&kept).1, ["one", "two", "three", "four"]);
        kept.restart();
        kept.sync(&history[..2], "").expect("is written");
        assert_eq!(kept.store.count(&kept.owner).expect("a number"), 2);
    }

    #[test]
    fn unanswered_question_is_not_in_the_history() {
        let mut kept = kept();
        let history = [user("one"), reply("two"), user("three")];
        kept.sync(&history, "").expect("is written");
        let id = kept.id.clone().expect("is created");
        let opened = kept.open(&id).expect("is there");
        assert_eq!((opened.history.as_slice(), opened.unanswered.as_deref()), (&history[..2], Some("three")));
        // The next question is a branch beside it.
        kept.sync(&[&history[..2], &[user("four"), reply("five")]].concat(), "").expect("is written");
        let (edges, path) = tree(&kept);
        assert_eq!(edges.len(), 5);
        assert_eq!(path, ["one", "two", "four", "five"]);
    }
}
