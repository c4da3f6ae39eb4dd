/**
 * Keeps what the bot intends to publish, what Discord shows of it, and how far it has read, in one database. A change of
 * what is intended and the cursor of its events are one transaction. Reasons: decision 0069. Spec: DI-10..DI-13, DI-40,
 * DI-44 in specs/discord.md.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Array as Arr, Context, Effect, Layer, Option, Schema } from "effect"
import type { MessageID } from "@daybook/log/domain/Identifiers"
import type { Delivery } from "@daybook/log/domain/Values"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import { immediately } from "@daybook/log/storage/Transaction"
import { threadOf } from "../domain/Names.ts"
import { Body, type Change, nonceOf, type PostKey, Target } from "../post/Post.ts"
import { fold, foldTask, initial, State } from "../post/PostFold.ts"
import { failed, open, type OutboxFailed } from "./OutboxFile.ts"

// The records of the outbox, as it returns them.

/** A message that Discord does not show as it should be. */
export interface DuePost {
  readonly id: number
  readonly nonce: string
  readonly body: Body
  /** The body of an attempt to create it whose result is unknown. */
  readonly attempt: Body | undefined
  /** Every message that the attempt may have made is later than this one. */
  readonly anchor: string | undefined
  /** Its id, if it exists. */
  readonly message: string | undefined
  readonly target: Target | undefined
}

/** A message that begins a thread. */
export interface Beginning {
  readonly channel: string
  readonly message: string
  readonly target: Extract<Target, { readonly type: "begin" }>
}

/** A reaction that Discord does not show as it should be. */
export interface DueReaction {
  readonly message: string
  readonly emoji: string | null
  readonly shown: string | null
}

/** A channel or thread that the bot reads. */
export interface Place {
  readonly channel: string
  readonly parent: string | null
  /** The last message that was handled. */
  readonly last: string | null
  /** Why nothing can be posted there. */
  readonly problem: string | null
  /** 1: it was deleted. */
  readonly closed: number
}

/** The replacement of a waiting prompt by the prompt of the edited message. */
export interface Edit {
  readonly message: string
  readonly channel: string
  /** The prompt to withdraw. */
  readonly former: MessageID
  readonly delivery: Delivery
}

type PostChange = Extract<Change, { readonly type: "post" }>

type Done<A = void> = Effect.Effect<A, OutboxFailed>

const bodyJson = Schema.parseJson(Body)
const encodeBody = Schema.encodeSync(bodyJson)
const decodeBody = Schema.decodeSync(bodyJson)
const targetJson = Schema.parseJson(Target)
const encodeTarget = Schema.encodeSync(targetJson)
const decodeTarget = Schema.decodeSync(targetJson)
const stateJson = Schema.parseJson(State)
const encodeState = Schema.encodeSync(stateJson)
const decodeState = Schema.decodeSync(stateJson)

interface PostRow {
  readonly id: number
  readonly nonce: string
  readonly body: string
  readonly attempt: string | null
  readonly anchor: string | null
  readonly target: string | null
  readonly message: string | null
}

export interface Options {
  readonly filename: string
  /** Values that are never published. */
  readonly secrets?: ReadonlyArray<string> | undefined
}

// Folds events of a session into changes of posts and reactions.

const putPost = (sql: SqlClient, channel: string, { body, grows, key, target }: PostChange) =>
  sql`INSERT INTO post (nonce, channel, body, grows, target, due)
    VALUES (${nonceOf(key)}, ${channel}, ${encodeBody(body)}, ${grows === true ? 1 : 0}, ${target === undefined ? null : encodeTarget(target)}, 1)
    ON CONFLICT (nonce) DO UPDATE SET body = excluded.body, grows = excluded.grows, target = coalesce(excluded.target, target),
      due = dropped IS NULL AND (due OR body <> excluded.body)`

const putReaction = (sql: SqlClient, channel: string, message: string, emoji: string | null) =>
  sql`INSERT INTO reaction (message, channel, emoji, shown, due) VALUES (${message}, ${channel}, ${emoji}, NULL, 1)
    ON CONFLICT (message) DO UPDATE SET emoji = excluded.emoji, due = 1`

/** Stores a change, and returns its channel: a thread may begin with a message of its parent. */
const change = Effect.fnUntraced(function* (sql: SqlClient, thread: string, each: Change) {
  if (each.type === "post") return yield* Effect.as(putPost(sql, thread, each), thread)
  const [place] = each.message === thread ? yield* sql<Place>`SELECT * FROM place WHERE channel = ${thread}` : []
  const channel = place?.parent ?? thread
  return yield* Effect.as(putReaction(sql, channel, each.message, each.emoji), channel)
})

const stateOf = (sql: SqlClient, session: string) =>
  Effect.map(
    sql<{ readonly state: string }>`SELECT state FROM fold WHERE session = ${session}`,
    ([row]) => row && decodeState(row.state)
  )

const threadIn = (sql: SqlClient, session: string) => {
  const own = threadOf(session)
  return own === undefined ? Effect.map(stateOf(sql, session), (state) => state?.thread) : Effect.succeed(own)
}

/** The state of a session without its own thread. Undefined: it is not a task of a session that has a thread. */
const taskOf = Effect.fnUntraced(function* (sql: SqlClient, session: string, [first]: ReadonlyArray<SessionEvent>) {
  const known = yield* stateOf(sql, session)
  if (known !== undefined || first?.type !== "session.created" || first.data.parentID === undefined) return known
  const thread = yield* threadIn(sql, first.data.parentID)
  return thread === undefined ? undefined : { ...initial, thread }
})

/** Folds the events of a session; returns the channels with something to send. */
const applyTo = Effect.fnUntraced(function* (
  sql: SqlClient,
  session: string,
  events: ReadonlyArray<SessionEvent>,
  secrets: ReadonlyArray<string>
) {
  const own = threadOf(session)
  const before = own === undefined ? yield* taskOf(sql, session, events) : yield* stateOf(sql, session)
  const channels = new Set<string>()
  let state = before ?? initial
  for (const event of events) {
    // A task has its thread until its run ends.
    const thread = own ?? state.thread
    if (thread === undefined) break
    const folded = (own === undefined ? foldTask : fold)(state, event, secrets)
    state = folded.state
    for (const each of folded.changes) channels.add(yield* change(sql, thread, each))
  }
  if (before === undefined && state === initial) return channels
  const json = encodeState(state)
  // Only sessions that run have a row.
  if (json === encodeState(initial)) yield* sql`DELETE FROM fold WHERE session = ${session}`
  else yield* sql`INSERT OR REPLACE INTO fold VALUES (${session}, ${json})`
  return channels
})

// The questions to the database and its changes, by table.

/** The database, with the ways to run statements. */
const connect = Effect.fnUntraced(function* (filename: string) {
  const sql = yield* open(filename)
  const run = <A>(effect: Effect.Effect<A, SqlError.SqlError>): Done<A> =>
    effect.pipe(
      Effect.catchAllDefect((defect) => Effect.fail(defect)),
      Effect.mapError(failed(filename)),
      Effect.uninterruptible
    )
  const done = (effect: Effect.Effect<unknown, SqlError.SqlError>): Done => Effect.asVoid(run(effect))
  return {
    sql,
    run,
    done,
    /** The statements in one transaction. */
    all: (statements: ReadonlyArray<Effect.Effect<unknown, SqlError.SqlError>>) =>
      done(immediately(sql)(Effect.all(statements))),
    exists: (rows: Effect.Effect<ReadonlyArray<unknown>, SqlError.SqlError>) =>
      run(Effect.map(rows, ({ length }) => length > 0)),
    first: <Row, A>(rows: Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError>, of: (row: Row | undefined) => A) =>
      run(Effect.map(rows, ([row]) => of(row))),
    each: <Row, A>(rows: Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError>, of: (row: Row) => Option.Option<A>) =>
      run(Effect.map(rows, Arr.filterMap(of)))
  }
})

type Database = Effect.Effect.Success<ReturnType<typeof connect>>

/** Ids are numbers as texts. */
const isBefore = (sql: SqlClient, column: "channel" | "last" | "message", id: string) => {
  const name = sql.literal(column)
  return sql`(length(${name}) < ${id.length} OR (length(${name}) = ${id.length} AND ${name} < ${id}))`
}

const foldsOf = ({ all, exists, first, run, sql }: Database, secrets: ReadonlyArray<string>) => ({
  cursor: first(
    sql<{ readonly cursor: string | null }>`SELECT cursor FROM consumer`,
    (row) => row?.cursor ?? undefined
  ),
  /** Moves the cursor to another database: what earlier events published is not changed any more. */
  begin: (cursor: string) =>
    all([
      sql`UPDATE consumer SET cursor = ${cursor}`,
      sql`DELETE FROM fold`,
      sql`UPDATE post SET due = 0, dropped = 'another database' WHERE due = 1`
    ]),
  /** Folds events and moves the cursor; returns the channels with something to send. */
  apply: (events: ReadonlyArray<SessionEvent>, cursor: string) => {
    const sessions = Object.entries(Arr.groupBy(events, ({ sessionID }) => sessionID))
    const applied = Effect.forEach(sessions, ([session, list]) => applyTo(sql, session, list, secrets))
    const moved = sql`UPDATE consumer SET cursor = ${cursor}`
    return run(
      immediately(sql)(Effect.map(Effect.zipLeft(applied, moved), (all) => new Set(all.flatMap((each) => [...each]))))
    )
  },
  /** The thread that shows a session: its own, or that of the session that assigned it as a task. */
  threadOf: (session: string) => run(threadIn(sql, session)),
  /** Sessions that run, and where their runs began. */
  running: run(sql<{ readonly session: string; readonly since: number }>`
    SELECT session, state ->> 'since' AS since FROM fold WHERE since IS NOT NULL`),
  /** Whether a call of a running session is open: it may wait for a permission. */
  isCalling: exists(sql`SELECT 1 FROM fold WHERE state ->> 'calls' <> '{}' LIMIT 1`)
})

const postsOf = ({ done, each, exists, first, sql }: Database) => ({
  /** Intends a post that no event makes. */
  put: (channel: string, post: PostChange) => done(putPost(sql, channel, post)),
  /** Changes a post whose text still grows; one that is settled or dropped stays as it is. */
  grow: (key: PostKey, body: Body) =>
    exists(
      sql`UPDATE post SET body = ${encodeBody(body)}, due = 1 WHERE nonce = ${nonceOf(key)} AND grows = 1
        AND dropped IS NULL RETURNING 1`
    ),
  due: each(
    sql<{ readonly channel: string }>`SELECT channel FROM post WHERE due = 1
      UNION SELECT channel FROM reaction WHERE due = 1`,
    ({ channel }) => Option.some(channel)
  ),
  nextPost: (channel: string) =>
    first(
      sql<PostRow>`SELECT id, nonce, body, attempt, anchor, target, message FROM post WHERE channel = ${channel} AND due = 1
        ORDER BY id LIMIT 1`,
      (row) =>
        row && {
          ...row,
          body: decodeBody(row.body),
          attempt: row.attempt === null ? undefined : decodeBody(row.attempt),
          anchor: row.anchor ?? undefined,
          message: row.message ?? undefined,
          target: row.target === null ? undefined : decodeTarget(row.target)
        }
    ),
  /** The next request creates the post with this body, as a message behind the anchor. */
  attempted: (id: number, body: Body, anchor: string) =>
    done(sql`UPDATE post SET attempt = ${encodeBody(body)}, anchor = coalesce(anchor, ${anchor}) WHERE id = ${id}`),
  /** The attempt failed for certain. */
  notCreated: (id: number) => done(sql`UPDATE post SET attempt = NULL, anchor = NULL WHERE id = ${id}`),
  /** The post is this message now, and shows the body. */
  created: (id: number, message: string, shown: Body) =>
    done(
      sql`UPDATE post SET message = ${message}, attempt = NULL, due = body <> ${encodeBody(shown)} WHERE id = ${id}`
    ),
  shown: (id: number, shown: Body) => done(sql`UPDATE post SET due = body <> ${encodeBody(shown)} WHERE id = ${id}`),
  /** The post is not sent. */
  dropped: (id: number, reason: string) =>
    done(sql`UPDATE post SET due = 0, attempt = NULL, dropped = ${reason} WHERE id = ${id}`),
  /** The newest message of the channel that is a post. */
  newest: (channel: string) =>
    first(
      sql<{ readonly message: string }>`SELECT message FROM post WHERE channel = ${channel} AND message IS NOT NULL
        ORDER BY id DESC LIMIT 1`,
      (row) => row?.message
    ),
  isPost: (message: string) => exists(sql`SELECT 1 FROM post WHERE message = ${message}`),
  /** Whether a message of the bot is a post, or may be the message of an open request. */
  isExplained: (channel: string, message: string) =>
    exists(
      sql`SELECT 1 FROM post WHERE message = ${message}
        UNION SELECT 1 FROM post WHERE channel = ${channel} AND due = 1 AND attempt IS NOT NULL`
    ),
  /** Whether the post was ever intended. */
  isPut: (key: PostKey) => exists(sql`SELECT 1 FROM post WHERE nonce = ${nonceOf(key)}`),
  /** How many posts of a channel wait to be sent. */
  waiting: (channel: string) =>
    first(
      sql<{ readonly count: number }>`SELECT count(*) AS count FROM post WHERE channel = ${channel} AND due = 1`,
      (row) => row?.count ?? 0
    ),
  react: (channel: string, message: string, emoji: string | null) => done(putReaction(sql, channel, message, emoji)),
  nextReaction: (channel: string) =>
    first(
      sql<DueReaction>`SELECT message, emoji, shown FROM reaction WHERE channel = ${channel} AND due = 1
        ORDER BY message LIMIT 1`,
      (row) => row
    ),
  reacted: (message: string, shown: string | null) =>
    done(sql`UPDATE reaction SET shown = ${shown}, due = emoji IS NOT ${shown} WHERE message = ${message}`)
})

/** The buttons of posts, and the messages that begin threads. */
const targetsOf = ({ each, first, sql }: Database) => ({
  /** What the buttons of a post act on. */
  targetOf: (nonce: string) =>
    first(sql<{ readonly target: string | null }>`SELECT target FROM post WHERE nonce = ${nonce}`, (row) =>
      row?.target == null ? undefined : decodeTarget(row.target)
    ),
  /** Messages that begin a thread which is not open yet. */
  beginnings: each(
    sql<{ readonly channel: string; readonly message: string; readonly target: string }>`
      SELECT channel, message, target FROM post WHERE target ->> 'type' = 'begin' AND message IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM place WHERE place.channel = post.message)`,
    ({ channel, message, target }) => {
      const decoded = decodeTarget(target)
      return decoded.type === "begin" ? Option.some({ channel, message, target: decoded }) : Option.none()
    }
  ),
  /** Permissions whose posts have buttons. */
  askings: each(
    sql<{ readonly channel: string; readonly target: string }>`SELECT channel, target FROM post
      WHERE target ->> 'type' = 'permission' AND body ->> 'buttons' IS NOT NULL`,
    ({ channel, target }) => {
      const decoded = decodeTarget(target)
      return decoded.type === "permission" ? Option.some({ channel, target: decoded }) : Option.none()
    }
  )
})

const placesOf = ({ all, done, first, run, sql }: Database) => ({
  place: (channel: string) => first(sql<Place>`SELECT * FROM place WHERE channel = ${channel}`, (row) => row),
  places: run(sql<Place>`SELECT * FROM place`),
  addPlace: (channel: string, parent: string | null, last: string | null) =>
    done(sql`INSERT OR IGNORE INTO place (channel, parent, last) VALUES (${channel}, ${parent}, ${last})`),
  /** The message was handled; an earlier one changes nothing. */
  handled: (channel: string, message: string) =>
    done(sql`UPDATE place SET last = ${message} WHERE channel = ${channel}
      AND (last IS NULL OR ${isBefore(sql, "last", message)})`),
  setProblem: (channel: string, problem: string | null) =>
    done(sql`UPDATE place SET problem = ${problem} WHERE channel = ${channel}`),
  /** Nothing more is sent to the channel. */
  closed: (channel: string, reason: string) =>
    all([
      sql`UPDATE post SET due = 0, attempt = NULL, dropped = ${reason} WHERE channel = ${channel} AND due = 1`,
      sql`DELETE FROM reaction WHERE channel = ${channel}`,
      sql`UPDATE place SET problem = ${reason}, closed = 1 WHERE channel = ${channel}`
    ]),
  beginEdit: (edit: Edit) => done(sql`INSERT OR REPLACE INTO edit ${sql.insert({ ...edit })}`),
  endEdit: (message: string) => done(sql`DELETE FROM edit WHERE message = ${message}`),
  edits: run(sql<Edit>`SELECT * FROM edit`),
  /** Forgets posts and reactions of messages before this id, except the newest post of each channel. */
  forget: (before: string) =>
    all([
      sql`DELETE FROM post WHERE due = 0 AND channel IN (SELECT channel FROM place WHERE closed = 1)`,
      sql`DELETE FROM place WHERE closed = 1 AND ${isBefore(sql, "channel", before)}`,
      sql`DELETE FROM post WHERE due = 0 AND message IS NOT NULL AND ${isBefore(sql, "message", before)}
            AND id NOT IN (SELECT max(id) FROM post WHERE message IS NOT NULL GROUP BY channel)`,
      sql`DELETE FROM reaction WHERE due = 0 AND ${isBefore(sql, "message", before)}`
    ])
})

/** The outbox in this file, until the scope closes. */
export const make = Effect.fn("Outbox.make")(function* ({ filename, secrets = [] }: Options) {
  const database = yield* connect(filename)
  return { ...foldsOf(database, secrets), ...postsOf(database), ...targetsOf(database), ...placesOf(database) }
})

export class Outbox extends Context.Tag("@daybook/discord/Outbox")<
  Outbox,
  Effect.Effect.Success<ReturnType<typeof make>>
>() {}

export const layer = (options: Options): Layer.Layer<Outbox, OutboxFailed> => Layer.scoped(Outbox, make(options))
