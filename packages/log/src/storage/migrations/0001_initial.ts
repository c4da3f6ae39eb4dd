/**
 * Creates the schema. A released migration is never edited: a change is a new migration. Spec: specs/storage.md.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(
    [
      // One row: the random part of this database's event ids.
      sql`CREATE TABLE log_identity (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        identity TEXT NOT NULL
      ) STRICT`,
      sql`INSERT INTO log_identity (one, identity) VALUES (1, lower(hex(randomblob(4))))`,
      // One row per session: head, floor, replay owner, execution owner and lease. AUTOINCREMENT: a key is never reused.
      // `session_id` is null while the rows of a removed session are deleted: no look-up by id finds it.
      sql`CREATE TABLE event_sequence (
        session INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT UNIQUE,
        seq INTEGER NOT NULL,
        floor INTEGER NOT NULL DEFAULT -1,
        replay_owner TEXT,
        owner_id TEXT,
        owner_epoch INTEGER NOT NULL DEFAULT 0,
        lease_until INTEGER NOT NULL DEFAULT 0,
        interrupt_epoch INTEGER NOT NULL DEFAULT 0,
        interrupt_activity TEXT,
        lease_beat INTEGER NOT NULL DEFAULT 0,
        lease_ms INTEGER NOT NULL DEFAULT 15000,
        incarnation INTEGER
      ) STRICT`,
      sql`CREATE INDEX event_sequence_removed ON event_sequence (session) WHERE session_id IS NULL`,
      // Permission events have negative keys, so that a partial index can select them.
      sql`CREATE TABLE event_type (
        type INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE
      ) STRICT`,
      // AUTOINCREMENT: a position is never reused, even after the newest session was removed. `id` is null unless the
      // event was replayed from another log.
      sql`CREATE TABLE event (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        session INTEGER NOT NULL REFERENCES event_sequence (session) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        type INTEGER NOT NULL REFERENCES event_type (type),
        created INTEGER NOT NULL,
        checksum INTEGER NOT NULL,
        id TEXT,
        data TEXT NOT NULL,
        UNIQUE (session, seq)
      ) STRICT`,
      sql`CREATE UNIQUE INDEX event_id ON event (id) WHERE id IS NOT NULL`,
      sql`CREATE INDEX event_permission ON event (position) WHERE type < 0`,
      // For people with a shell; Daybook does not read it.
      sql`CREATE VIEW events AS SELECT e.position, s.session_id, e.seq,
          coalesce(e.id, printf('evt_%012x%s%010x', e.created, i.identity, e.position)) AS id, t.name AS type,
          strftime('%Y-%m-%dT%H:%M:%fZ', e.created / 1000.0, 'unixepoch') AS created, e.data
        FROM event e JOIN event_sequence s ON s.session = e.session JOIN event_type t ON t.type = e.type
          JOIN log_identity i ON i.one = 1 WHERE s.session_id IS NOT NULL`,
      // One row per pruned session: the state at the floor, the position of the last removed event, and who prunes now.
      sql`CREATE TABLE session_floor (
        session_id TEXT PRIMARY KEY REFERENCES event_sequence (session_id) ON DELETE CASCADE,
        base TEXT,
        position INTEGER,
        claim TEXT
      ) STRICT`,
      // Where the decisions about permissions are that retention moved to `content`, to list them over all sessions.
      sql`CREATE TABLE kept_decision (
        position INTEGER PRIMARY KEY,
        session_id TEXT NOT NULL REFERENCES event_sequence (session_id) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        UNIQUE (session_id, seq)
      ) STRICT`,
      sql`CREATE INDEX session_floor_position ON session_floor (position) WHERE position IS NOT NULL`,
      sql`CREATE INDEX session_floor_claim ON session_floor (session_id) WHERE claim IS NOT NULL`,
      // WITHOUT ROWID stores small rows under their key, which saves a tree; long rows would leave most of a page
      // empty.
      sql`CREATE TABLE session (
        id TEXT PRIMARY KEY REFERENCES event_sequence (session_id) ON DELETE CASCADE,
        parent_id TEXT,
        directory TEXT NOT NULL,
        location TEXT NOT NULL,
        title TEXT,
        agent TEXT,
        model TEXT,
        cost REAL NOT NULL,
        tokens_input REAL NOT NULL,
        tokens_output REAL NOT NULL,
        tokens_reasoning REAL NOT NULL,
        tokens_cache_read REAL NOT NULL,
        tokens_cache_write REAL NOT NULL,
        activity_id TEXT,
        activity_state TEXT,
        time_created INTEGER NOT NULL,
        time_updated INTEGER NOT NULL,
        activity_error TEXT,
        frame TEXT,
        pruned_seq INTEGER,
        compaction_requested TEXT,
        compaction_running TEXT,
        budget TEXT,
        address TEXT,
        root TEXT,
        epoch INTEGER,
        baseline_seq INTEGER,
        imported TEXT,
        path TEXT,
        forked TEXT,
        origin TEXT,
        instructions TEXT,
        provisional INTEGER,
        turns INTEGER NOT NULL,
        tool_calls INTEGER NOT NULL,
        duration_ms INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID`,
      sql`CREATE INDEX session_updated ON session (time_updated, id)`,
      sql`CREATE INDEX session_directory ON session (directory, time_updated, id)`,
      sql`CREATE INDEX session_title ON session (title) WHERE title IS NOT NULL`,
      sql`CREATE INDEX session_running ON session (id) WHERE activity_state = 'running'`,
      // A child's spending counts for its parents.
      sql`CREATE INDEX session_parent ON session (parent_id) WHERE parent_id IS NOT NULL`,
      sql`CREATE UNIQUE INDEX session_address ON session (address) WHERE address IS NOT NULL`,
      sql`CREATE TABLE session_input (
        id TEXT NOT NULL UNIQUE,
        session INTEGER NOT NULL REFERENCES event_sequence (session) ON DELETE CASCADE,
        delivery TEXT NOT NULL,
        admitted_seq INTEGER NOT NULL,
        promoted_seq INTEGER,
        withdrawn_seq INTEGER,
        PRIMARY KEY (session, admitted_seq),
        UNIQUE (session, promoted_seq)
      ) STRICT, WITHOUT ROWID`,
      sql`CREATE INDEX session_input_waiting ON session_input (session, admitted_seq) WHERE promoted_seq IS NULL`,
      // A removal leaves no event; this table tells consumers that keep copies of sessions.
      sql`CREATE TABLE session_removal (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL,
        position INTEGER NOT NULL,
        swept INTEGER NOT NULL DEFAULT 0
      ) STRICT`,
      sql`CREATE INDEX session_removal_unswept ON session_removal (number) WHERE swept = 0`,
      sql`CREATE TABLE session_message (
        id TEXT NOT NULL UNIQUE,
        session INTEGER NOT NULL REFERENCES event_sequence (session) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        type TEXT NOT NULL,
        call_id TEXT,
        first_kept INTEGER,
        all_kept INTEGER,
        settled INTEGER,
        time_created INTEGER NOT NULL,
        PRIMARY KEY (session, seq)
      ) STRICT, WITHOUT ROWID`,
      // Partial indexes: they hold only the few messages that are searched by type.
      sql`CREATE INDEX session_message_compaction ON session_message (session, seq) WHERE type = 'compaction'`,
      sql`CREATE INDEX session_message_system ON session_message (session, seq) WHERE type = 'system'`,
      sql`CREATE TABLE session_part (
        session INTEGER NOT NULL REFERENCES event_sequence (session) ON DELETE CASCADE,
        message_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        seq INTEGER NOT NULL,
        name TEXT,
        status TEXT NOT NULL,
        opened INTEGER,
        raw INTEGER,
        called INTEGER,
        progress INTEGER,
        settled INTEGER,
        time_created INTEGER NOT NULL,
        PRIMARY KEY (session, message_id, kind, key)
      ) STRICT, WITHOUT ROWID`,
      sql`CREATE INDEX session_part_unsettled ON session_part (session, seq) WHERE settled IS NULL`,
      // A session's todo list is the result of the last call of one tool.
      sql`CREATE INDEX session_part_todo ON session_part (session, seq) WHERE name = 'todo'`,
      sql`CREATE TABLE session_instruction (
        session INTEGER NOT NULL REFERENCES event_sequence (session) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        PRIMARY KEY (session, seq)
      ) STRICT, WITHOUT ROWID`,
      // The moves of the leaf: each begins a segment of the session's tree.
      sql`CREATE TABLE session_leaf (
        session INTEGER NOT NULL REFERENCES event_sequence (session) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        message_id TEXT,
        PRIMARY KEY (session, seq)
      ) STRICT, WITHOUT ROWID`,
      sql`CREATE TABLE session_label (
        session INTEGER NOT NULL REFERENCES event_sequence (session) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        message_id TEXT NOT NULL,
        label TEXT,
        PRIMARY KEY (session, seq)
      ) STRICT, WITHOUT ROWID`,
      // Blocks of events that retention removed and that rows still refer to. Not WITHOUT ROWID: blocks are long. The
      // prompts stand first: to read what stands behind a long value, SQLite reads all of its pages.
      sql`CREATE TABLE content (
        session INTEGER NOT NULL REFERENCES event_sequence (session) ON DELETE CASCADE,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        prompts BLOB,
        packed BLOB NOT NULL,
        PRIMARY KEY (session, last)
      ) STRICT`,
      // For people with a shell. A text that is only in a block is null.
      sql`CREATE VIEW messages AS SELECT s.session_id, m.seq, m.id, m.type,
          strftime('%Y-%m-%dT%H:%M:%fZ', m.time_created / 1000.0, 'unixepoch') AS created,
          strftime('%Y-%m-%dT%H:%M:%fZ', z.created / 1000.0, 'unixepoch') AS settled,
          CASE m.type
            WHEN 'user' THEN (SELECT a.data ->> '$.prompt.text' FROM session_input i
              JOIN event a ON a.session = i.session AND a.seq = i.admitted_seq
              WHERE i.session = m.session AND i.promoted_seq = m.seq)
            WHEN 'assistant' THEN (SELECT group_concat(text, char(10)) FROM (
              SELECT t.data ->> '$.text' AS text FROM session_part p
              JOIN event t ON t.session = p.session AND t.seq = p.settled
              WHERE p.session = m.session AND p.message_id = m.id AND p.kind = 'text' ORDER BY p.seq))
            WHEN 'shell' THEN e.data ->> '$.command'
            ELSE e.data ->> '$.text'
          END AS text
        FROM session_message m JOIN event_sequence s ON s.session = m.session
          LEFT JOIN event e ON e.session = m.session AND e.seq = m.seq
          LEFT JOIN event z ON z.session = m.session AND z.seq = m.settled`,
      sql`CREATE VIEW parts AS SELECT s.session_id, p.message_id, p.seq, p.kind, p.key, p.name, p.status,
          strftime('%Y-%m-%dT%H:%M:%fZ', p.time_created / 1000.0, 'unixepoch') AS created,
          strftime('%Y-%m-%dT%H:%M:%fZ', z.created / 1000.0, 'unixepoch') AS settled,
          c.data -> '$.input' AS input,
          CASE p.kind WHEN 'tool' THEN coalesce(z.data -> '$.content', z.data -> '$.error')
            WHEN 'shell' THEN z.data ->> '$.output' ELSE z.data ->> '$.text' END AS output
        FROM session_part p JOIN event_sequence s ON s.session = p.session
          LEFT JOIN event c ON c.session = p.session AND c.seq = p.called
          LEFT JOIN event z ON z.session = p.session AND z.seq = p.settled WHERE s.session_id IS NOT NULL`,
      sql`CREATE VIEW prompts AS SELECT s.session_id, i.admitted_seq AS seq, i.id, i.delivery,
          CASE WHEN i.withdrawn_seq IS NOT NULL THEN 'withdrawn' WHEN i.promoted_seq IS NULL THEN 'waiting'
            ELSE 'promoted' END AS state,
          strftime('%Y-%m-%dT%H:%M:%fZ', a.created / 1000.0, 'unixepoch') AS created, a.data ->> '$.prompt.text' AS text
        FROM session_input i JOIN event_sequence s ON s.session = i.session
          LEFT JOIN event a ON a.session = i.session AND a.seq = i.admitted_seq`,
      // AUTOINCREMENT: approvals are revoked by number, so a number is never reused.
      sql`CREATE TABLE approval (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        folder TEXT NOT NULL,
        identity TEXT NOT NULL,
        permission TEXT NOT NULL,
        resource TEXT NOT NULL,
        definition TEXT NOT NULL,
        session_id TEXT,
        call_id TEXT,
        agent TEXT,
        uid INTEGER,
        uses INTEGER NOT NULL DEFAULT 0,
        time_created INTEGER NOT NULL,
        time_used INTEGER,
        time_revoked INTEGER,
        revoked_uid INTEGER
      ) STRICT`,
      sql`CREATE UNIQUE INDEX approval_valid ON approval (folder, identity, permission, resource, definition)
        WHERE time_revoked IS NULL`,
      sql`CREATE TABLE consumer (
        name TEXT PRIMARY KEY,
        session_id TEXT,
        incarnation INTEGER,
        cursor INTEGER NOT NULL,
        removals INTEGER NOT NULL,
        epoch INTEGER NOT NULL,
        owner_id TEXT,
        time_updated INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID`,
      sql`CREATE INDEX consumer_session ON consumer (session_id)`,
      // The details may quote the event, so a removed session takes them along.
      sql`CREATE TABLE consumer_poison (
        consumer TEXT NOT NULL REFERENCES consumer (name) ON DELETE CASCADE,
        cursor INTEGER NOT NULL,
        session_id TEXT REFERENCES event_sequence (session_id) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        position INTEGER,
        type TEXT NOT NULL,
        details TEXT NOT NULL,
        skipped INTEGER NOT NULL,
        time_created INTEGER NOT NULL,
        PRIMARY KEY (consumer, cursor)
      ) STRICT, WITHOUT ROWID`,
      sql`CREATE INDEX consumer_poison_session ON consumer_poison (session_id)`,
      sql`CREATE INDEX consumer_poison_stop ON consumer_poison (consumer) WHERE skipped = 0`
    ],
    (statement) => statement,
    { discard: true }
  )
)
