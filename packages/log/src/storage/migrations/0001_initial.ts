/**
 * Creates the first schema. A released migration is never edited: a change is a new migration. Spec: specs/storage.md.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(
    [
      // WITHOUT ROWID stores small rows under their key, which saves a tree; long rows would leave most of a page
      // empty. One row per session: head, floor, replay owner, execution owner and lease.
      sql`CREATE TABLE event_sequence (
        session_id TEXT PRIMARY KEY,
        seq INTEGER NOT NULL,
        floor INTEGER NOT NULL DEFAULT -1,
        replay_owner TEXT,
        owner_id TEXT,
        owner_epoch INTEGER NOT NULL DEFAULT 0,
        lease_until INTEGER NOT NULL DEFAULT 0,
        interrupt_epoch INTEGER NOT NULL DEFAULT 0
      ) STRICT, WITHOUT ROWID`,
      // AUTOINCREMENT: a position is never reused, even after the newest session was removed.
      sql`CREATE TABLE event (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        session_id TEXT NOT NULL REFERENCES event_sequence (session_id) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        type TEXT NOT NULL,
        created INTEGER NOT NULL,
        data TEXT NOT NULL,
        checksum INTEGER NOT NULL,
        UNIQUE (session_id, seq)
      ) STRICT`,
      sql`CREATE TABLE session (
        id TEXT PRIMARY KEY REFERENCES event_sequence (session_id) ON DELETE CASCADE,
        parent_id TEXT,
        leaf_id TEXT,
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
        time_updated INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID`,
      sql`CREATE INDEX session_updated ON session (time_updated, id)`,
      sql`CREATE INDEX session_directory ON session (directory, time_updated, id)`,
      sql`CREATE INDEX session_running ON session (id) WHERE activity_state = 'running'`,
      sql`CREATE TABLE session_input (
        id TEXT PRIMARY KEY,
        session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        prompt TEXT NOT NULL,
        delivery TEXT NOT NULL,
        admitted_seq INTEGER NOT NULL,
        promoted_seq INTEGER,
        time_created INTEGER NOT NULL,
        UNIQUE (session_id, promoted_seq)
      ) STRICT`,
      sql`CREATE INDEX session_input_waiting ON session_input (session_id, admitted_seq) WHERE promoted_seq IS NULL`,
      sql`CREATE TABLE session_message (
        id TEXT PRIMARY KEY,
        session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        parent_id TEXT,
        type TEXT NOT NULL,
        data TEXT,
        settled TEXT,
        time_created INTEGER NOT NULL,
        time_settled INTEGER,
        UNIQUE (session_id, seq)
      ) STRICT, WITHOUT ROWID`,
      // Partial indexes: they hold only the few messages that are searched by type.
      sql`CREATE INDEX session_message_compaction ON session_message (session_id, seq) WHERE type = 'compaction'`,
      sql`CREATE INDEX session_message_system ON session_message (session_id, seq) WHERE type = 'system'`,
      sql`CREATE TABLE session_part (
        session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        message_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        seq INTEGER NOT NULL,
        name TEXT,
        status TEXT NOT NULL,
        opened TEXT,
        raw TEXT,
        called TEXT,
        progress TEXT,
        settled TEXT,
        time_created INTEGER NOT NULL,
        time_ran INTEGER,
        time_settled INTEGER,
        PRIMARY KEY (session_id, message_id, kind, key)
      ) STRICT`,
      sql`CREATE INDEX session_part_unsettled ON session_part (session_id) WHERE settled IS NULL`,
      sql`CREATE TABLE session_context_epoch (
        session_id TEXT PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
        baseline TEXT NOT NULL,
        snapshot TEXT NOT NULL,
        baseline_seq INTEGER NOT NULL
      ) STRICT`,
      sql`CREATE TABLE permission (
        project TEXT NOT NULL,
        permission TEXT NOT NULL,
        resource TEXT NOT NULL,
        time_created INTEGER NOT NULL,
        PRIMARY KEY (project, permission, resource)
      ) STRICT, WITHOUT ROWID`,
      // A consumer stores its cursor with its derived data, in the same transaction.
      sql`CREATE TABLE consumer_checkpoint (
        consumer TEXT PRIMARY KEY,
        position INTEGER NOT NULL,
        data TEXT,
        time_updated INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID`
    ],
    (statement) => statement,
    { discard: true }
  )
)
