/**
 * Keeps one server connected: connects, offers its tools while it is connected, and reconnects after a fault with growing
 * pauses. Supervisors do not affect each other. Spec: MC-5, MC-7..MC-14, MC-20..MC-25, MC-540..MC-542.
 *
 *   connecting -> connected -> (lost: tools withdrawn) -> failed -> (pause) -> connected ...
 *        \     <- (session forgotten: tools stay) -/         |
 *         \--------------------------------------------------^
 */
import { Cause, Clock, Duration, Effect, Fiber, Option, Schedule } from "effect"
import { connect, type Connection } from "./Connection.ts"
import { inSentence, redactor, ServerFault } from "./McpServer.ts"
import { connectTimeout, forget, type OfferedTools, report, type Supervised } from "./OfferedTools.ts"
import { describeListing, type Listing } from "./ToolListing.ts"
import * as Transports from "./Transports.ts"

const late = (lastWords: () => string) => ({
  duration: connectTimeout,
  onTimeout: () =>
    new ServerFault({ details: `it did not answer within ${Duration.format(connectTimeout)}${lastWords()}` })
})

/** 1, 2, 4 ... seconds, at most a minute, forever: a server may return at any time. */
const pauses = Schedule.union(Schedule.exponential("1 second"), Schedule.spaced("1 minute"))

/** A connection of this length resets the pauses. */
const steady = Duration.toMillis("1 minute")

/** Connects and lists the tools. The connection lives in the caller's scope, also on failure. */
const open = Effect.fnUntraced(function* ({ server, start }: Supervised) {
  const redact = redactor(server)
  const way = yield* Transports.open(yield* start(server), redact)
  return yield* Effect.gen(function* () {
    const connection = yield* connect(server, way, redact)
    return { connection, listing: yield* connection.listTools }
  }).pipe(Effect.timeoutFail(late(way.lastWords)))
})

/** Offers the tools of a connection until it is lost, and lists them again when the server announces a change. */
const serve = Effect.fnUntraced(function* (
  supervised: Supervised,
  tools: OfferedTools,
  connection: Connection,
  listing: Listing
) {
  const { cache, connections, name, server } = supervised
  yield* Effect.acquireRelease(
    Effect.sync(() => connections.set(name, connection)),
    () => Effect.sync(() => connections.get(name) === connection && connections.delete(name))
  )
  const show = Effect.fnUntraced(function* (listed: Listing) {
    const details = describeListing(listed)
    const count = yield* tools.sync(listed)
    // A command may end as soon as the server is connected.
    yield* Effect.uninterruptible(cache.save(name, server, listed))
    yield* report(supervised, { state: "connected", tools: count, ...(details === undefined ? {} : { details }) })
  })
  yield* show(listing)
  const follow = Effect.zipRight(
    connection.changed,
    Effect.timeoutFail(
      connection.listTools,
      late(() => "")
    )
  ).pipe(
    Effect.flatMap(show),
    // The tools do not change; `lost` detects the loss of the server.
    Effect.catchAll(({ details }) =>
      Effect.logWarning(`MCP server "${name}": its tools could not be listed again: ${details}`)
    ),
    Effect.forever
  )
  return yield* Effect.raceFirst(connection.lost, follow).pipe(
    // Before the connection closes: no call may begin on a lost one.
    Effect.onError((cause) => (isForgotten(cause) ? forget(supervised, connection) : tools.withdrawAll))
  )
}, Effect.scoped)

const isForgotten = (cause: Cause.Cause<ServerFault>): boolean =>
  Option.exists(Cause.failureOption(cause), ({ reason }) => reason === "forgotten")

const failed = (supervised: Supervised, tools: OfferedTools) => (fault: ServerFault) =>
  Effect.zipRight(tools.withdrawAll, report(supervised, { state: "failed", details: fault.details, tools: 0 }))

/** One connection, from connecting to its loss. */
const attempt = Effect.fn("Mcp.attempt")(function* (supervised: Supervised, tools: OfferedTools) {
  // Reported immediately: closing an unresponsive server may take seconds, and a caller may be waiting.
  const { connection, listing } = yield* Effect.tapError(open(supervised), failed(supervised, tools))
  return yield* serve(supervised, tools, connection, listing)
}, Effect.scoped)

/** One attempt; every failure, defects included, is reported. Returns whether the server only forgot the session. */
const attempted = (supervised: Supervised, tools: OfferedTools): Effect.Effect<boolean> =>
  attempt(supervised, tools).pipe(
    Effect.catchAllDefect((defect) => {
      const reason = defect instanceof Error ? inSentence(defect.message) : "unknown fault"
      return new ServerFault({ details: `its connection failed unexpectedly: ${reason}` })
    }),
    Effect.catchAll((fault) =>
      fault.reason === "forgotten" ? Effect.succeed(true) : Effect.as(failed(supervised, tools)(fault), false)
    )
  )

/** So often a forgotten session is replaced without a pause, until a connection is steady. */
const mostReplaced = 3

/**
 * Keeps the server connected until it is interrupted. Each attempt runs in a fiber of its own: a fiber can lose an
 * interrupt that arrives while a finalizer of its outer scope waits (the library restores the earlier references,
 * including the interrupt), and would then continue forever.
 */
export const supervise = Effect.fnUntraced(function* (supervised: Supervised, tools: OfferedTools) {
  const pause = yield* Schedule.driver(pauses)
  for (let replaced = 0; ;) {
    const began = yield* Clock.currentTimeMillis
    const isReplaceable = yield* Effect.acquireUseRelease(
      Effect.fork(Effect.interruptible(attempted(supervised, tools))),
      Fiber.join,
      Fiber.interrupt
    )
    if ((yield* Clock.currentTimeMillis) - began >= steady) {
      replaced = 0
      yield* pause.reset
    }
    if (isReplaceable && replaced++ < mostReplaced) continue
    yield* Effect.ignore(pause.next(undefined))
  }
})
