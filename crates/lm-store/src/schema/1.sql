CREATE TABLE conversations (
    key INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    title TEXT NOT NULL,
    -- Times in ms since 1970.
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    -- JSON objects.
    settings TEXT NOT NULL DEFAULT '{}',
    selected TEXT NOT NULL DEFAULT '{}',
    UNIQUE (owner, id)
);
CREATE INDEX conversations_by_time ON conversations (owner, updated DESC, key DESC);

CREATE TABLE messages (
    key INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations (key) ON DELETE CASCADE,
    id TEXT NOT NULL,
    parent TEXT,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    -- Number of images and audio that are not kept.
    dropped INTEGER NOT NULL DEFAULT 0,
    -- Further fields, a JSON object.
    fields TEXT NOT NULL DEFAULT '{}',
    UNIQUE (conversation, id)
);
CREATE INDEX messages_by_parent ON messages (conversation, parent);

CREATE TABLE media (
    message INTEGER NOT NULL REFERENCES messages (key) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    url TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (message, position)
);
CREATE INDEX media_bytes ON media (bytes);

-- Words of messages, by their keys, and of titles, by the negative keys of their conversations. The text itself is not in it.
CREATE VIRTUAL TABLE search USING fts5 (
    text, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);

CREATE TRIGGER message_is_removed AFTER DELETE ON messages BEGIN
    DELETE FROM search WHERE rowid = old.key;
END;
CREATE TRIGGER conversation_is_removed AFTER DELETE ON conversations BEGIN
    DELETE FROM search WHERE rowid = -old.key;
END;
