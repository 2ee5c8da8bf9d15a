//! Context of a call: values that a tool receives without being in its schema.

use lm_conversation::CancelHandle;
use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

/// Context of one call. A `#[tool]` function takes it as an argument of the type `&CallContext`, which is not in the schema.
///
/// ```
/// use lm_tools::{CallContext, Toolset, ToolCall, tool};
///
/// /// Waits until it is cancelled.
/// #[tool]
/// fn wait(context: &CallContext) -> String {
///     while !context.is_cancelled() {
///         std::thread::sleep(std::time::Duration::from_millis(1));
///     }
///     "cancelled".to_owned()
/// }
///
/// let tools = Toolset::new().with(wait::tool())?;
/// let cancel = lm_tools::CancelHandle::new();
/// let mut results = tools.start(vec![ToolCall::new("wait", Default::default())], &cancel, None);
/// cancel.cancel();
/// assert_eq!(results.next().expect("one result a call").content.text(), "cancelled");
/// # Ok::<(), lm_tools::Error>(())
/// ```
/// The default context has no name, no limits and no states: for a tool that is called directly.
#[derive(Clone, Debug, Default)]
pub struct CallContext {
    call: Arc<Call>,
}

#[derive(Debug, Default)]
struct Call {
    id: Option<String>,
    name: String,
    cancel: CancelHandle,
    deadline: Option<Instant>,
    states: States,
}

impl CallContext {
    pub(crate) fn new(
        (id, name): (Option<String>, String),
        cancel: CancelHandle,
        deadline: Option<Instant>,
        states: States,
    ) -> Self {
        Self { call: Arc::new(Call { id, name, cancel, deadline, states }) }
    }

    /// Id of the call, which its result carries.
    pub fn id(&self) -> Option<&str> {
        self.call.id.as_deref()
    }

    /// Name under which the tool was called.
    pub fn name(&self) -> &str {
        &self.call.name
    }

    /// Returns true if nobody waits for the result any more: the turn was cancelled, or the time limit has passed.
    pub fn is_cancelled(&self) -> bool {
        self.call.cancel.is_cancelled()
    }

    /// Handle of this call alone, for requests that the tool makes itself.
    pub fn cancel_handle(&self) -> &CancelHandle {
        &self.call.cancel
    }

    /// Time at which the call is abandoned; `None`: never.
    pub fn deadline(&self) -> Option<Instant> {
        self.call.deadline
    }

    /// State of the type `T`, from [`Toolset::with_state`](crate::Toolset::with_state).
    pub fn state<T: Send + Sync + 'static>(&self) -> Option<State<T>> {
        let state = self.call.states.0.get(&TypeId::of::<T>())?.clone();
        state.downcast().ok().map(State)
    }
}

/// State of a toolset, shared by its tools: an argument of a `#[tool]` function that is not in the schema.
///
/// ```
/// use lm_tools::{State, ToolCall, Toolset, tool};
/// use std::sync::Mutex;
///
/// #[derive(Default)]
/// struct Notes(Mutex<Vec<String>>);
///
/// /// Adds a note.
/// #[tool]
/// fn add_note(notes: State<Notes>, /** the text */ text: String) -> usize {
///     let mut notes = notes.0.lock().expect("no tool panics while it holds the lock");
///     notes.push(text);
///     notes.len()
/// }
///
/// let tools = Toolset::new().with_state(Notes::default()).with(add_note::tool())?;
/// let call = ToolCall::from_json(serde_json::json!({"name": "add_note", "arguments": {"text": "milk"}}))?;
/// assert_eq!(tools.call(&call).content.text(), "1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct State<T>(Arc<T>);

impl<T> Clone for State<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Type of a [`State`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateType {
    id: TypeId,
    name: &'static str,
}

impl StateType {
    /// The type `T`.
    pub fn of<T: 'static>() -> Self {
        Self { id: TypeId::of::<T>(), name: type_name::<T>() }
    }

    /// Name of the type, for messages.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// States by type.
#[derive(Clone, Default)]
pub(crate) struct States(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl States {
    pub(crate) fn insert<T: Send + Sync + 'static>(&mut self, state: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(state));
    }

    pub(crate) fn has(&self, ty: StateType) -> bool {
        self.0.contains_key(&ty.id)
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("States").field("len", &self.0.len()).finish()
    }
}
