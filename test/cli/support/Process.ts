/** Runs real processes of the command with their own folder, database and environment. Tests wait for their output. */
import Database from "better-sqlite3"
import { Clock, Effect, type Scope } from "effect"
import { spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { waitingFor } from "../../support/Waiting.ts"
import { build } from "./Bundle.ts"
import { atTerminal, startWarm, type Terminal } from "./Warm.ts"

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface Running {
  readonly pid: number
  /** Completes when the stream's text so far satisfies the predicate; dies if the process ends first. */
  readonly until: (stream: "stdout" | "stderr", holds: (text: string) => boolean) => Effect.Effect<string>
  readonly signal: (name: NodeJS.Signals) => Effect.Effect<void>
  /** Stops reading stdout, like `head`. */
  readonly closeStdout: Effect.Effect<void>
  /** Types at the terminal; only for a process with a terminal. */
  readonly type: (keys: string) => Effect.Effect<void>
  readonly ended: Effect.Effect<Ended>
}

export interface Options {
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string | Uint8Array
  readonly cwd?: string
  /** The user to run as; only if the test runs as root. */
  readonly uid?: number
  /** The only group of that user's process. */
  readonly gid?: number
  /**
   * Runs in a new terminal of this size: all output is on stdout, after a line with the terminal's name. The input stays open.
   */
  readonly terminal?: Terminal
  /** Runs in a terminal of this size that earlier commands may have used, and nothing is typed at. */
  readonly sharedTerminal?: Terminal
}

/** A place to run in: an empty working folder, and beside it the database's folder. */
export interface Place {
  readonly root: string
  readonly cwd: string
  readonly database: string
  /** Starts in a process that has loaded the command before, if the options permit it. */
  readonly start: (words: ReadonlyArray<string>, options?: Options) => Effect.Effect<Running, never, Scope.Scope>
  /** Starts in a process of its own: for its start, its end, its output pipe, or what it remembers. */
  readonly startAlone: (words: ReadonlyArray<string>, options?: Options) => Effect.Effect<Running, never, Scope.Scope>
  /** Takes the database's write lock; the inner effect releases it. */
  readonly lock: Effect.Effect<Effect.Effect<void>, never, Scope.Scope>
  /** Changes the database behind the command's back. */
  readonly sql: (statement: string) => Effect.Effect<void>
  /** Runs to the end. */
  readonly run: (words: ReadonlyArray<string>, options?: Options) => Effect.Effect<Ended>
  readonly runAlone: (words: ReadonlyArray<string>, options?: Options) => Effect.Effect<Ended>
  /** Starts `ctx` in a process of its own. */
  readonly startCtx: (words: ReadonlyArray<string>, options?: Options) => Effect.Effect<Running, never, Scope.Scope>
  readonly ctx: (words: ReadonlyArray<string>, options?: Options) => Effect.Effect<Ended>
}

type Optional = "uid" | "gid" | "terminal" | "sharedTerminal"
type Complete = Required<Omit<Options, Optional>> & Pick<Options, Optional>

/** Starts a process that runs one command. */
const startCold = (bin: string, words: ReadonlyArray<string>, options: Complete, look: () => void) => {
  const { cwd, env, gid, input, terminal = options.sharedTerminal, uid } = options
  const command = [process.execPath, bin, ...words]
  const [file = "", ...args] = terminal === undefined ? command : atTerminal(command, terminal)
  const child = spawn(file, args, {
    cwd,
    env,
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid })
  })
  const text = { stdout: "", stderr: "" }
  let ended: Ended | undefined
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream].setEncoding("utf8").on("data", (part: string) => {
      text[stream] += part
      look()
    })
  }
  child.once("close", (code, signal) => {
    ended = { code, signal, ...text }
    look()
  })
  child.stdin.on("error", () => undefined)
  if (terminal === undefined) child.stdin.end(input)
  return {
    pid: child.pid ?? 0,
    text,
    get ended() {
      return ended
    },
    signal: (name: NodeJS.Signals) => void child.kill(name),
    type: (keys: string) => void child.stdin.write(keys),
    closeStdout: () => void child.stdout.destroy()
  }
}

const killed = (running: Running) => Effect.zipRight(running.signal("SIGKILL"), running.ended)

/** Ends a command so that its process can run another one, if it ends within two seconds of real time. */
const politely = (running: Running) =>
  Effect.zipRight(running.signal("SIGTERM"), running.ended).pipe(
    // A finalizer is not interruptible.
    Effect.interruptible,
    Effect.timeoutOption("2 seconds"),
    Effect.withClock(Clock.make())
  )

/** Only a process of its own has these; `canShare` is false for a command with a terminal. */
const notShared = { type: () => undefined, closeStdout: () => undefined }

const start = (bin: string, words: ReadonlyArray<string>, options: Complete, alone: boolean) =>
  Effect.acquireRelease(
    Effect.sync((): Running => {
      const watchers = new Set<() => void>()
      const look = () => [...watchers].forEach((watcher) => watcher())
      const process = alone
        ? startCold(bin, words, options, look)
        : Object.assign(startWarm(bin, { ...options, words }, options.sharedTerminal, look), notShared)
      const { text } = process
      /** The end of its output, printed when a wait takes long. */
      const tail = () => JSON.stringify({ stdout: text.stdout.slice(-1000), stderr: text.stderr.slice(-1000) })
      const watch = <A>(seen: () => Effect.Effect<A> | undefined) =>
        Effect.async<A>((resume) => {
          const watcher = () => {
            const result = seen()
            if (result === undefined) return
            watchers.delete(watcher)
            resume(result)
          }
          watchers.add(watcher)
          watcher()
          return Effect.sync(() => watchers.delete(watcher))
        })
      return {
        pid: process.pid,
        until: (stream, holds) =>
          watch(() =>
            holds(text[stream])
              ? Effect.succeed(text[stream])
              : process.ended === undefined
                ? undefined
                : Effect.dieMessage(
                    `ended with ${process.ended.code} before it printed that: ${JSON.stringify(process.ended)}`
                  )
          ).pipe(waitingFor(() => `${stream} that satisfies ${holds}: ${tail()}`)),
        signal: (name) =>
          Effect.sync(() => {
            if (process.ended === undefined) process.signal(name)
          }),
        type: (keys) => Effect.sync(() => process.type(keys)),
        closeStdout: Effect.sync(() => process.closeStdout()),
        ended: watch(() => (process.ended === undefined ? undefined : Effect.succeed(process.ended))).pipe(
          waitingFor(() => `the end of ${words.join(" ")}: ${tail()}`)
        )
      }
    }),
    (running) => Effect.zipRight(alone ? Effect.void : politely(running), killed(running))
  )

/** The variables for reports of `npm run mutate`; none in other runs. */
const reporting = (): Record<string, string> => {
  const { DAYBOOK_HITS: hits, DAYBOOK_TEST_FILE: file } = process.env
  return hits === undefined || file === undefined ? {} : { DAYBOOK_HITS: hits, DAYBOOK_TEST_FILE: file }
}

/** Variables that the process or its libraries read at the start. */
const startVariables = /^(?:DAYBOOK_DEBUG|DAYBOOK_HITS|NODE_|TZ$|LANG$|LC_|UV_|COLUMNS$|LINES$)/

/** Whether a process that runs several commands can run this one: no terminal of its own, and the user of the tests. */
const canShare = ({ env, gid, terminal, uid }: Complete): boolean =>
  uid === undefined &&
  gid === undefined &&
  terminal === undefined &&
  !Object.keys(env).some((name) => startVariables.test(name))

/** A fresh place, removed with the scope. */
export const place: Effect.Effect<Place, never, Scope.Scope> = Effect.gen(function* () {
  const { bin, ctx } = build()
  const root = yield* Effect.acquireRelease(
    Effect.sync(() => realpathSync(mkdtempSync(join(tmpdir(), "daybook-cli-")))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  )
  const cwd = join(root, "a folder")
  mkdirSync(cwd)
  const database = join(root, "data", "daybook.sqlite")
  const complete = (options: Options = {}): Complete => ({
    ...options,
    cwd: options.cwd ?? cwd,
    input: options.input ?? "",
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: root,
      DAYBOOK_DB: database,
      DAYBOOK_NAMING: "off",
      ...reporting(),
      ...options.env
    }
  })
  const startIn = (words: ReadonlyArray<string>, options: Options | undefined, alone: boolean) => {
    const command = complete(options)
    return start(bin, words, command, alone || !canShare(command))
  }
  const startCtx = (words: ReadonlyArray<string>, options?: Options) => start(ctx, words, complete(options), true)
  const sharedCtx = (words: ReadonlyArray<string>, options?: Options) => {
    const command = complete(options)
    return start(ctx, words, command, !canShare(command))
  }
  const toTheEnd = (started: Effect.Effect<Running, never, Scope.Scope>) =>
    Effect.scoped(Effect.flatMap(started, ({ ended }) => ended))
  return {
    root,
    cwd,
    database,
    start: (words, options) => startIn(words, options, false),
    startAlone: (words, options) => startIn(words, options, true),
    lock: Effect.map(
      Effect.acquireRelease(
        Effect.sync(() => {
          const connection = new Database(database)
          connection.exec("BEGIN IMMEDIATE")
          return connection
        }),
        (connection) => Effect.sync(() => connection.close())
      ),
      (connection) => Effect.sync(() => connection.exec("ROLLBACK"))
    ),
    sql: (statement) =>
      Effect.sync(() => {
        const connection = new Database(database)
        connection.exec(statement)
        connection.close()
      }),
    run: (words, options) => toTheEnd(startIn(words, options, false)),
    runAlone: (words, options) => toTheEnd(startIn(words, options, true)),
    startCtx,
    ctx: (words, options) => toTheEnd(sharedCtx(words, options))
  }
})

/** Parses JSON lines. */
export const jsonLines = (text: string): ReadonlyArray<Record<string, unknown>> =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))
