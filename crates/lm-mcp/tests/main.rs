//! Integration tests in one program; those that measure their process are programs of their own.

mod catalog;
mod common;
mod elicitation;
mod faults;
mod files;
mod hostile_http;
mod hostile_servers;
mod oauth;
mod odd_answers;
mod programs;
mod reconnects;
mod reference;
mod restarts;
mod revisions;
mod serving;
mod silent_servers;
