/**
 * The live shells in which agents run the commands of `bash`: one per session, opened with its first command and recorded in
 * the session. Calls of a session run one at a time. Spec: SL-230..SL-237 in specs/shell.md.
 */
import { createHash } from "node:crypto"
import { realpath } from "node:fs/promises"
import { Context, Deferred, Effect, Fiber, Layer, Mailbox, type Scope, Stream } from "effect"
import type { Chunk } from "@daybook/core/child/ShellProcess"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import { firstOf } from "@daybook/core/support/Race"
import type { ToolCall } from "@daybook/core/tool/ToolDefinition"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Location } from "@daybook/log/domain/Values"
import { EventLog } from "@daybook/log/log/EventLog"
import type { CommandPlace, CommandRequest, CommandEnd, LiveShells, Running } from "@daybook/tools/CommandRunner"
import type { CalledCommand, Flow, LiveCommandsSettings } from "../ShellOptions.ts"
import * as Shells from "../Shells.ts"
import type { ExecResult } from "../domain/ExecResult.ts"
import type { CloseReason } from "../domain/ShellError.ts"
import * as ShellRecord from "../record/ShellRecord.ts"

// Passes the output of a command on to a reader that may be slower: the shell is not read while too much waits.

/** Bytes that wait before the shell is not read any more. */
const mostHeld = 1_048_576

interface CommandOutput {
  readonly take: CalledCommand["take"]
  /** For one reader. Ends with `end`. */
  readonly output: Stream.Stream<Chunk>
  readonly end: Effect.Effect<void>
  /** Drops the rest, so that the command never waits: its reader has stopped. */
  readonly discard: Effect.Effect<void>
}

export const makeOutput = Effect.map(Mailbox.make<Chunk>(), (mailbox): CommandOutput => {
  let waiting = 0
  let dropping = false
  let paused: Flow | undefined
  const resume = () => {
    paused?.resume()
    paused = undefined
  }
  return {
    take: (stream, bytes, flow) => {
      if (dropping) return
      waiting += bytes.length
      mailbox.unsafeOffer({ stream, bytes })
      if (waiting <= mostHeld || paused !== undefined) return
      paused = flow
      flow.pause()
    },
    output: Stream.map(Mailbox.toStream(mailbox), (chunk) => {
      waiting -= chunk.bytes.length
      if (waiting === 0) resume()
      return chunk
    }),
    end: Effect.asVoid(mailbox.end),
    discard: Effect.sync(() => {
      dropping = true
      resume()
    })
  }
})

/** The shell of a session, while it is open. */
interface OpenShell {
  readonly id: string
  readonly agent: string
  readonly location: Location
  /** Where commands run that name no folder. */
  own: string
  /** The lines that changed it. */
  before: string
}

/** A session's place for commands. */
interface Entry {
  /** Held by the call whose turn it is. */
  readonly turn: Effect.Semaphore
  readonly record: ShellRecord.ShellRecord["Type"]
  shell: OpenShell | undefined
  /** Why the last shell closed. */
  why: string | undefined
}

/** Sessions without an open shell that are remembered. */
const mostIdle = 1_024
/** Characters of lines that changed a shell. A longer text is not judged: every line asks then (BR-2). */
const longestBefore = 20_000

const whys: Readonly<Record<CloseReason, string>> = {
  destroyed: "it was closed",
  reaped: "it was idle for too long",
  exited: "it ended",
  timeout: "it did not answer",
  lost: "it was lost",
  shutdown: "the runtime ended",
  processes: "it had too many processes",
  memory: "it used too much memory",
  unprotected: "a file that its sandbox protects was replaced"
}

const failed = (message: string) => new ToolFailure({ type: "tool.execution", message })

const isSame = (folder: string, real: string) =>
  Effect.orElseSucceed(
    Effect.map(
      Effect.tryPromise(() => realpath(folder)),
      (found) => found === real
    ),
    () => false
  )

const sameLocation = (one: Location, other: Location): boolean =>
  one.directory === other.directory && one.workspaceID === other.workspaceID

/** The lines with one more. Beyond the limit their hash replaces the rest, so that each state has a text of its own. */
const withLine = (before: string, line: string): string => {
  if (before === line || before.endsWith(`\n${line}`)) return before
  const all = before === "" ? line : `${before}\n${line}`
  if (all.length <= longestBefore) return all
  return `${all.slice(0, longestBefore)}\n${createHash("sha256").update(all).digest("hex")}`
}

const newShell = (why: string | undefined): string =>
  `This is a new shell${why === undefined ? "" : ` (the one before: ${why})`}; it has nothing of an earlier one.`

/** Why the shell stopped the command. */
const stoppedOf = ({ closed, timed_out }: ExecResult): Pick<CommandEnd, "stopped"> =>
  closed === "processes" || closed === "memory" ? { stopped: closed } : timed_out === true ? { stopped: "timeout" } : {}

const endedOf = (result: ExecResult, rest: Pick<CommandEnd, "cwd" | "notices">): CommandEnd => ({
  code: result.exit_code,
  signal: null,
  ...stoppedOf(result),
  ...(result.late_output === undefined ? {} : { late: result.late_output }),
  ...rest
})

/** The shells of all sessions. */
const makeHost = Effect.fnUntraced(function* (settings: LiveCommandsSettings) {
  // Permissions decide about dangerous commands, unless the operator's policy does.
  const policy = { allowDangerous: true, ...settings.policy }
  const built = yield* Layer.build(Layer.provide(Shells.layer({ ...settings, policy }), ShellRecord.none))
  return {
    log: yield* EventLog,
    scope: yield* Effect.scope,
    shells: Context.get(built, Shells.Shells),
    entries: new Map<SessionID, Entry>()
  }
})

type Host = Effect.Effect.Success<ReturnType<typeof makeHost>>

const entryOf = Effect.fnUntraced(function* ({ entries }: Host, sessionID: SessionID) {
  const made: Entry = {
    turn: yield* Effect.makeSemaphore(1),
    record: yield* ShellRecord.inSession(sessionID),
    shell: undefined,
    why: undefined
  }
  // Read after the last pause, so that two calls of a session never make an entry each.
  const entry = entries.get(sessionID) ?? made
  entries.delete(sessionID)
  entries.set(sessionID, entry)
  for (const [id, { shell }] of entries) {
    if (entries.size <= mostIdle) break
    if (shell === undefined && id !== sessionID) entries.delete(id)
  }
  return entry
})

/** Closes the shell when its session is removed or moves, and when another process took the session over. */
const follow = ({ log, shells }: Host, sessionID: SessionID, { turn }: Entry, { id, location }: OpenShell) =>
  Effect.gen(function* () {
    const { incarnation, seq } = yield* log.head(sessionID)
    const close = Effect.asVoid(shells.destroy(id))
    yield* Stream.runForEach(log.tail({ sessionID, after: seq, incarnation }), (event) => {
      if (event.type === "session.next.moved" && !sameLocation(event.data.location, location)) {
        return turn.withPermits(1)(close)
      }
      return event.type === "session.next.shell.closed" && event.data.shellID === id ? close : Effect.void
    })
  }).pipe(
    Effect.catchTag("SessionNotFound", () => shells.destroy(id)),
    Effect.catchAll((error) => Effect.logWarning(`shell ${id} does not follow ${sessionID}: ${error.message}`))
  )

const open = (host: Host, call: ToolCall, entry: Entry, { cwd, elsewhere, env, home }: CommandRequest) =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const { scope, shells } = host
      const own = elsewhere ? home : cwd
      const options = { target: { transport: "local" as const, cwd: own }, writable: [home] }
      // Interruptible, as the fibers that it starts must be.
      const id = yield* restore(shells.create(options, { record: entry.record, env }))
      const shell: OpenShell = { id, agent: call.agent.name, location: call.location, own, before: "" }
      entry.shell = shell
      const closed = Effect.map(shells.closed(id), (reason) => {
        if (entry.shell !== shell) return
        entry.shell = undefined
        entry.why = whys[reason]
      })
      const followed = Effect.zipRight(follow(host, call.sessionID, entry, shell), Effect.never)
      yield* Effect.forkIn(Effect.interruptible(Effect.raceFirst(closed, followed)), scope)
      return shell
    })
  )

/** Runs the command, in a new shell if none is open. */
const runIn = Effect.fnUntraced(function* (
  host: Host,
  call: ToolCall,
  entry: Entry,
  request: CommandRequest,
  stop: Deferred.Deferred<void>,
  take: CommandOutput["take"]
) {
  const { shells } = host
  const { cwd, elsewhere, home, seconds, text } = request
  const { why } = entry
  const isNew = entry.shell === undefined
  const stopped = Effect.zipRight(Deferred.await(stop), Effect.interrupt)
  const shell = entry.shell ?? (yield* firstOf(open(host, call, entry, request), stopped))
  if (yield* Deferred.isDone(stop)) return yield* Effect.interrupt
  const { own } = shell
  const there = (yield* shells.folder(shell.id)) === own && (yield* isSame(own, cwd))
  if (request.changes) shell.before = withLine(shell.before, text)
  const gone = (reason: CloseReason) => {
    entry.why = whys[reason]
    if (entry.shell === shell) entry.shell = undefined
  }
  const result = yield* Effect.tapErrorTag(
    shells.exec(shell.id, text, {
      timeoutSeconds: seconds,
      stop: Deferred.await(stop),
      call: { callID: call.callID, take },
      ...(there ? {} : { cwd })
    }),
    "ShellClosed",
    ({ reason }) => Effect.sync(() => gone(reason))
  )
  if (result.closed !== undefined) gone(result.closed)
  const folder = (yield* shells.folder(shell.id)) ?? own
  if (!elsewhere) shell.own = folder
  return endedOf(result, {
    ...(shell.own === (isNew ? home : own) ? {} : { cwd: result.cwd }),
    notices: [
      ...(isNew ? [newShell(why)] : []),
      ...(result.closed === undefined
        ? []
        : [`The shell has closed (${whys[result.closed]}); the next call gets a new one.`])
    ]
  })
})

const start = (host: Host, call: ToolCall, entry: Entry) =>
  Effect.fnUntraced(function* (request: CommandRequest): Effect.fn.Return<Running, never, Scope.Scope> {
    const { discard, end, output, take } = yield* makeOutput
    const stop = yield* Deferred.make<void>()
    const ran = runIn(host, call, entry, request, stop, take).pipe(
      // Nothing ran: the shell closed since the call began.
      Effect.retry({ times: 1, while: ({ _tag }) => _tag === "ShellClosed" }),
      Effect.mapError(({ _tag, message }) =>
        _tag === "CommandBlocked" ? new ToolFailure({ type: "permission.denied", message }) : failed(message)
      ),
      Effect.ensuring(end)
    )
    // Stopped and never interrupted: an interruption would also reach the waits of a stop that has begun.
    const fiber = yield* Effect.forkDaemon(Effect.interruptible(ran))
    const ending = Effect.suspend(() =>
      fiber.unsafePoll() === null
        ? discard.pipe(
            Effect.zipRight(Deferred.succeed(stop, undefined)),
            Effect.zipRight(Fiber.await(fiber)),
            Effect.asVoid
          )
        : Effect.void
    )
    yield* Effect.addFinalizer(() => ending)
    return { output, exit: Fiber.join(fiber), end: ending }
  }, Effect.uninterruptible)

const enter = (host: Host, call: ToolCall) =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const entry = yield* entryOf(host, call.sessionID)
      yield* restore(entry.turn.take(1))
      yield* Effect.addFinalizer(() => entry.turn.release(1))
      const { shell } = entry
      if (shell !== undefined && (shell.agent !== call.agent.name || !sameLocation(shell.location, call.location))) {
        yield* host.shells.destroy(shell.id)
        entry.shell = undefined
        entry.why = "it belonged to another agent or folder"
      }
      const place: CommandPlace = {
        cwd: entry.shell?.own,
        before: entry.shell?.before ?? "",
        start: start(host, call, entry)
      }
      return place
    })
  ).pipe(Effect.provideService(EventLog, host.log))

/** Opens shells until the scope closes. */
export const make = Effect.fnUntraced(function* (settings: LiveCommandsSettings) {
  const host = yield* makeHost(settings)
  return { enter: (call: ToolCall) => enter(host, call) } satisfies LiveShells
})
