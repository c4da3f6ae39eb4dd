/**
 * The connections to PostgreSQL: a pool for the stores' statements, which waits for a server that is away, and one line
 * for appends, which sends the statements of a commit together. Values of rows are those of SQLite: numbers, texts, and
 * 1 or 0 for a condition. Spec: PG-10, PG-11, PG-16 in specs/postgres.md.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import * as SqlError from "@effect/sql/SqlError"
import * as PgClient from "@effect/sql-pg/PgClient"
import { OutsideClock } from "@daybook/log/log/SqlEventLog"
import { forAtMost } from "@daybook/log/support/ForAtMost"
import { Patience, reasonOf, unreached } from "@daybook/log/storage/Transaction"
import { type Clock, Duration, Effect, Predicate, Redacted, Schedule, type Scope, Stream } from "effect"
import * as Pg from "pg"

// Each text is prepared once, and every value that SQLite takes can be stored. `@effect/sql-pg` sends texts without names, and
// to parse and plan the longer statements of the stores costs more than to run them (PG-11).

/** Texts that are prepared: a connection keeps each. Statements with lists have a text for each length. */
const most = 400

const names = new Map<string, string>()

const nameOf = (text: string): string | undefined => {
  const known = names.get(text)
  if (known !== undefined || names.size >= most) return known
  const name = `daybook_${names.size + 1}`
  names.set(text, name)
  return name
}

const [greatest, smallest] = ["9223372036854775807", "-9223372036854775808"]

/** A text has no U+0000, and no integer is beyond 64 bits: a caller's cursor or id may be anything. */
const storable = (value: unknown): unknown => {
  if (typeof value === "string") return value.includes("\0") ? value.replaceAll("\0", "\uFFFD") : value
  if (typeof value === "number" && !Number.isSafeInteger(value)) {
    if (Number.isNaN(value)) return null
    return value > Number(greatest) ? greatest : value < Number(smallest) ? smallest : value
  }
  return Array.isArray(value) ? value.map(storable) : value
}

/** Gives a statement with parameters the name of its text. */
const prepared = (config: Pg.QueryConfig): Pg.QueryConfig => {
  const { values = [] } = config
  if (values.length === 0) return config
  const name = config.name ?? nameOf(config.text)
  const stored = { ...config, values: values.map(storable) }
  return name === undefined ? stored : { ...stored, name }
}

type Query = (config: unknown, values?: unknown, callback?: unknown) => unknown

const isStatement = (config: unknown): config is Pg.QueryConfig =>
  typeof config === "object" && config !== null && !("submit" in config) && "text" in config

class PoolClient extends Pg.Client {
  constructor(config?: string | Pg.ClientConfig) {
    super(config)
    const send = this.query.bind(this) as Query
    const query: Query = (config, values, callback) => {
      if (isStatement(config)) return send(prepared(config), values, callback)
      return typeof config === "string" && Array.isArray(values)
        ? send(prepared({ text: config, values }), undefined, callback)
        : send(config, values, callback)
    }
    // One function in place of the declared overloads.
    Object.assign(this, { query })
  }
}

/** Where the database is. */
export interface Settings {
  /** `postgres://USER:PASSWORD@HOST:PORT/DATABASE`. */
  readonly url: Redacted.Redacted
  /** The schema of Daybook's tables. */
  readonly schema: string
  readonly connections: number
}

const [int8, numeric, boolean, json] = [20, 1700, 16, 114]

const parsers: ReadonlyMap<number, (text: string) => unknown> = new Map<number, (text: string) => unknown>([
  [int8, Number],
  [numeric, Number],
  [boolean, (text: string) => (text === "t" ? 1 : 0)],
  [json, (text: string) => text]
])

const types: Pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: "text" | "binary") =>
    (format === "binary" ? undefined : parsers.get(oid)) ?? Pg.types.getTypeParser(oid, format ?? "text")
}

/** A connection that does nothing in a transaction for so long is cut off: it would hold up every append. */
const idleMillis = 10_000

const connectMillis = 5_000

/** The settings of each connection. The search path is one of them, so that no statement names the schema. */
const settingsOf = ({ schema }: Settings): ReadonlyArray<string> => [
  `search_path = "${schema}"`,
  // No statement is worth a compilation.
  "jit = off",
  "statement_timeout = 60000",
  `idle_in_transaction_session_timeout = ${idleMillis}`
]

/**
 * The settings of the line: a plan that fits any number of rows, and finds each by its key. Without statistics, as in the first
 * minutes of a table, the server would read all rows.
 */
const byKey = [
  "plan_cache_mode = force_generic_plan",
  "enable_seqscan = off",
  "enable_hashjoin = off",
  "enable_mergejoin = off"
]

const optionsOf = ({ url }: Settings): Pg.ClientConfig => {
  const address = new URL(Redacted.value(url))
  // As in libpq, these modes encrypt and do not check the server's name: hosts of PostgreSQL give such addresses.
  const isLax = ["prefer", "require", "verify-ca"].includes(address.searchParams.get("sslmode") ?? "")
  if (isLax) address.searchParams.set("uselibpqcompat", "true")
  return {
    connectionString: address.toString(),
    application_name: address.searchParams.get("application_name") ?? "daybook",
    connectionTimeoutMillis: connectMillis,
    keepAlive: true,
    types
  }
}

/** Gives a new connection its settings, with statements: poolers refuse settings at the start of a connection. */
const configure = async (client: Pg.ClientBase, settings: ReadonlyArray<string>): Promise<void> => {
  const text = settings.map((setting) => `SET ${setting}`).join("; ")
  const statement: Pg.QueryConfig & Pg.ClientConfig = { text, query_timeout: connectMillis }
  await client.query(statement)
}

/** The server's process behind a connection. */
const backendOf = async (client: Pg.ClientBase): Promise<unknown> => {
  const { rows } = await client.query<{ readonly pid: number }>("SELECT pg_backend_pid() AS pid")
  return rows[0]?.pid
}

const transactionPooler =
  "a pooler there gives each transaction another connection, and Daybook needs connections of its own: give the address " +
  "of PostgreSQL itself, or of a pooler in session mode"

/**
 * Refuses a pooler in transaction mode, before it gets settings that other clients would inherit. PostgreSQL names its process when a
 * connection begins; a pooler names a number that belongs to no process of the server.
 */
const refuseTransactionPooler = async (client: Pg.ClientBase, settings: Settings): Promise<void> => {
  const first = await backendOf(client)
  if (Predicate.hasProperty(client, "processID") && client.processID === first) return
  const other = new Pg.Client(optionsOf(settings))
  other.on("error", () => {})
  await other.connect()
  try {
    // Several looks: among other clients a connection often gets the same process again.
    for (let look = 0; look < 8; look += 1) {
      await other.query("BEGIN")
      if ((await backendOf(other)) === first || (await backendOf(client)) !== first) throw new Error(transactionPooler)
      await other.query("ROLLBACK")
    }
  } finally {
    await other.end()
  }
}

const failed = (cause: unknown) => new SqlError.SqlError({ cause, message: "Failed to execute statement" })

/** Growing pauses from 5 ms to 1 s. */
export const pauses = Schedule.exponential("5 millis", 1.7).pipe(
  Schedule.union(Schedule.spaced("1 second")),
  Schedule.jittered
)

/** A database is away or busy for about ten seconds before an append fails. */
export const patience = forAtMost("10 seconds")(pauses)

const isAway = (error: SqlError.SqlError): boolean => reasonOf(error) === "away"

/**
 * Waits for a connection while the server is away. All callers share one period, which begins with the first failure. After
 * the period each caller tries once, so that a request does not wait again for each of its statements.
 */
const patiently = <A, R>(connect: Effect.Effect<A, SqlError.SqlError, R>, clock: Clock.Clock) => {
  let since: bigint | undefined
  const missed = () => void (since ??= clock.unsafeCurrentTimeNanos())
  const reached = () => void (since = undefined)
  const attempt = Effect.tapBoth(connect, {
    onFailure: (error) => (isAway(error) ? Effect.sync(missed) : Effect.void),
    onSuccess: () => Effect.sync(reached)
  })
  const waiting = (error: SqlError.SqlError) =>
    Effect.flatMap(Patience, (longest) => {
      // Not the wall clock, which can be stepped.
      const away = () => clock.unsafeCurrentTimeNanos() - (since ?? 0n)
      const isTime = () => Duration.lessThan(Duration.nanos(away()), longest)
      const schedule = forAtMost(longest)(pauses)
      return isTime()
        ? Effect.withClock(Effect.retry(attempt, { schedule, while: (again) => isAway(again) && isTime() }), clock)
        : Effect.fail(error)
    })
  return attempt.pipe(
    Effect.catchIf(isAway, waiting),
    Effect.mapError((error) => (isAway(error) ? unreached(error) : error))
  )
}

/** The pool, as a client of `@effect/sql`. Fails if the database does not answer. */
export const pool = (settings: Settings) =>
  Effect.gen(function* () {
    const client = yield* connected(settings)
    // Uninterruptible, because the driver does not give a connection back whose caller was interrupted.
    const acquirer = patiently(Effect.uninterruptible(client.reserve), yield* OutsideClock)
    return yield* SqlClient.make({
      acquirer,
      compiler: PgClient.makeCompiler(),
      spanAttributes: [["db.system.name", "postgresql"]]
    })
  })

const connected = (settings: Settings) =>
  PgClient.fromPool({
    acquire: Effect.acquireRelease(
      Effect.tryPromise({
        try: async () => {
          let isKnown = false
          const made = new Pg.Pool({
            ...optionsOf(settings),
            Client: PoolClient,
            max: settings.connections,
            idleTimeoutMillis: 60_000,
            onConnect: async (client) => {
              if (!isKnown) await refuseTransactionPooler(client, settings)
              isKnown = true
              await configure(client, settingsOf(settings))
            }
          })
          // A connection that fails while nobody uses it leaves the pool: the next statement gets another one.
          made.on("error", () => {})
          await made.query("SELECT 1").catch(async (cause: unknown) => {
            await made.end()
            throw cause
          })
          return made
        },
        catch: failed
      }),
      (made) => Effect.ignore(Effect.timeoutOption(Effect.interruptible(Effect.promise(() => made.end())), 1_000))
    )
  })

/** A statement and its parameters. One with parameters is prepared once for each connection. */
export interface Sent {
  readonly text: string
  readonly values?: ReadonlyArray<unknown>
}

/** The rows of a statement, and how many it changed. */
export interface Answer {
  readonly rows: ReadonlyArray<unknown>
  readonly changed: number
}

/** One connection that is made when it is needed, and again when it broke. One caller at a time uses it. */
export interface Line {
  /**
   * Sends all statements at once, on a new connection if there is none, and returns their answers in order. Throws the first
   * failure, as `SqlError`.
   */
  readonly begin: (statements: ReadonlyArray<Sent>) => Promise<ReadonlyArray<Answer>>
  /** As `begin`, on its connection: a transaction never continues on another one. Fails as `away` if the connection broke. */
  readonly send: (statements: ReadonlyArray<Sent>) => Promise<ReadonlyArray<Answer>>
  /** Whether there is a connection. Without one, `begin` can fail with nothing sent. */
  readonly isConnected: () => boolean
  /** Ends the connection. The next statements get another one. */
  readonly drop: () => void
}

const closed = () => failed(new TypeError("The database connection is not open"))

const broken = () => failed(Object.assign(new Error("the connection ended in a transaction"), { code: "08006" }))

/** A new connection, not yet connected. */
export const client = (settings: Settings, options: Pg.ClientConfig = {}): Pg.Client => {
  const made = new Pg.Client({ ...optionsOf(settings), ...options })
  // Without a listener an error of the socket would end the process. Each statement under way fails with it.
  made.on("error", () => {})
  return made
}

/** The line of appends; the scope ends its connection. */
export const line = (settings: Settings): Effect.Effect<Line, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      let current: Promise<Pg.Client> | undefined
      let [isOpen, isConnected] = [true, false]

      const drop = (): void => {
        const dropped = current
        current = undefined
        isConnected = false
        void dropped?.then((made) => made.end()).catch(() => {})
      }

      const connected = (): Promise<Pg.Client> => {
        if (current !== undefined) return current
        const made = client(settings, { pipeline: true })
        const connecting = made.connect().then(async () => {
          await configure(made, [...settingsOf(settings), ...byKey])
          isConnected = current === connecting
          return made
        })
        current = connecting
        const forget = () => {
          if (current !== connecting) return
          current = undefined
          isConnected = false
        }
        made.on("error", forget)
        made.on("end", forget)
        connecting.catch(() => {
          forget()
          void made.end().catch(() => {})
        })
        return connecting
      }

      /** The connection of the last `begin`. */
      let begun: Promise<Pg.Client> | undefined

      const sendOn = async (connecting: Promise<Pg.Client>, statements: ReadonlyArray<Sent>) => {
        const made = await connecting.catch((cause: unknown) => {
          throw failed(cause)
        })
        // One packet: the server and this process wake up once for all of them.
        const { stream } = made.connection
        stream.cork()
        const sent = statements.map(({ text, values }) =>
          made.query(values === undefined ? { text } : prepared({ text, values: [...values] }))
        )
        stream.uncork()
        const answers = await Promise.allSettled(sent)
        return answers.map((answer) => {
          if (answer.status === "rejected") throw failed(answer.reason)
          return { rows: answer.value.rows, changed: answer.value.rowCount ?? 0 }
        })
      }

      const begin: Line["begin"] = async (statements) => {
        if (!isOpen) throw closed()
        begun = connected()
        return await sendOn(begun, statements)
      }

      const send: Line["send"] = async (statements) => {
        if (!isOpen) throw closed()
        if (begun === undefined || begun !== current) throw broken()
        return await sendOn(begun, statements)
      }

      const close = () => {
        isOpen = false
        drop()
      }
      return { begin, send, isConnected: () => isConnected, drop, close }
    }),
    ({ close }) => Effect.sync(close)
  )

/** The line as a connection of `@effect/sql`, for statements that others write. */
export const connectionOf = ({ send }: Line): Connection => {
  const sent = (text: string, values: ReadonlyArray<unknown>) =>
    Effect.tryPromise({
      try: async () => {
        const [answer = { rows: [], changed: 0 }] = await send([{ text, values }])
        return answer
      },
      catch: (thrown) => (thrown instanceof SqlError.SqlError ? thrown : failed(thrown))
    })
  // The clients of Daybook transform no rows.
  const execute: Connection["execute"] = (text, values) => Effect.map(sent(text, values), ({ rows }) => rows)
  return {
    execute,
    executeUnprepared: execute,
    executeRaw: (text, values) => Effect.map(sent(text, values), ({ changed, rows }) => ({ rows, rowCount: changed })),
    executeValues: (text, values) =>
      Effect.map(sent(text, values), ({ rows }) =>
        rows.map((row) => (typeof row === "object" && row !== null ? Object.values(row) : []))
      ),
    executeStream: () => Stream.dieMessage("this connection does not stream rows")
  }
}
