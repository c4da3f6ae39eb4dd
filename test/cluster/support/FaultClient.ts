/**
 * A client of the fault harness. It prompts one session with ids of its own, repeats what was not acknowledged at another
 * node, and follows the session's events: it changes nodes at random, and goes on there by its cursor. Its pauses and its
 * patience with a silent stream are those of a real client.
 */
import { Deferred, Effect, Option, Schema } from "effect"
import type { Dice } from "./FaultModel.ts"
import type { FaultNode, Life } from "./FaultNodes.ts"

export const Stored = Schema.Struct(
  { seq: Schema.Number, type: Schema.String, data: Schema.Record({ key: Schema.String, value: Schema.Unknown }) },
  { key: Schema.String, value: Schema.Unknown }
)
export type Stored = typeof Stored.Type

const Frame = Schema.parseJson(
  Schema.Struct({
    frame: Schema.String,
    cursor: Schema.optional(Schema.String),
    event: Schema.optional(Stored),
    reason: Schema.optional(Schema.String),
    error: Schema.optional(Schema.Unknown)
  })
)

export interface FaultClient {
  readonly sessionID: string
  /** The ids of prompts that a node acknowledged. */
  readonly acknowledged: ReadonlyArray<string>
  /** The events that it heard, in order. */
  readonly heard: ReadonlyArray<Stored>
  /** Answers that no fault explains. */
  readonly surprises: ReadonlyArray<string>
  readonly connections: () => number
  /** Prompts until this, then waits until all that it prompted has ended. */
  readonly work: (until: () => boolean) => Effect.Effect<void>
}

/** A node that gives nothing for this long is left for another one. */
const patience = 4_000

const types = {
  promoted: "session.next.prompt.promoted",
  started: "session.next.activity.started",
  settled: "session.next.activity.settled"
}

/** Chooses among the nodes that serve, or waits for one. */
export const anyLife = (nodes: ReadonlyArray<FaultNode>, roll: Dice): Effect.Effect<Life> =>
  Effect.suspend(() => {
    const lives = nodes.flatMap(({ life }) => (life === undefined ? [] : [life]))
    const chosen = lives[Math.floor(roll() * lives.length)]
    return chosen === undefined ? Effect.raceAll(nodes.map(({ up }) => up)) : Effect.succeed(chosen)
  })

/** The answer of a node; none if it broke off or took too long. */
const send = (life: Life, path: string, body: unknown) =>
  Effect.option(
    Effect.tryPromise(async () => {
      const response = await fetch(life.base + path, {
        method: "POST",
        headers: life.headers,
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(patience)
      })
      return { status: response.status, text: await response.text() }
    })
  )

/** Why a stream may end while a fault lasts: the database is away before the stream follows. */
const isDatabaseAway = Schema.is(Schema.Struct({ _tag: Schema.Literal("LogUnavailable") }))

/**
 * What a node may answer while a fault lasts: the database is away or busy, or the node leaves (503), or it was frozen and
 * read nothing of the request in time (408).
 */
const isAway = (status: number): boolean => status === 503 || status === 408

export const faultClient = Effect.fnUntraced(function* (
  sessionID: string,
  directory: string,
  nodes: ReadonlyArray<FaultNode>,
  roll: Dice
) {
  const [acknowledged, heard, surprises]: [Array<string>, Array<Stored>, Array<string>] = [[], [], []]
  let [connections, promoted, open] = [0, 0, false]
  let grew = yield* Deferred.make<void>()

  const post = (path: string, body: unknown): Effect.Effect<void> =>
    Effect.gen(function* () {
      const answer = yield* send(yield* anyLife(nodes, roll), path, body)
      if (Option.isSome(answer) && answer.value.status < 300) return
      if (Option.isSome(answer) && !isAway(answer.value.status)) {
        surprises.push(`${path} was answered with ${answer.value.status}: ${answer.value.text.slice(0, 500)}`)
      }
      yield* Effect.sleep(50 + roll() * 200)
      return yield* post(path, body)
    })

  const note = (event: Stored) => {
    heard.push(event)
    if (event.type === types.promoted) promoted += 1
    if (event.type === types.started) open = true
    if (event.type === types.settled) open = false
    Deferred.unsafeDone(grew, Effect.void)
  }

  /** One connection: it ends when it broke, gave nothing for long, or the client goes elsewhere. */
  const connection = (life: Life, after: string | undefined, most: number) =>
    Effect.tryPromise(async (signal) => {
      const leaving = new AbortController()
      signal.addEventListener("abort", () => leaving.abort())
      let [cursor, frames] = [after, 0]
      let timer = setTimeout(() => leaving.abort(), patience)
      const take = (line: string) => {
        const { cursor: next, error, event, frame, reason } = Schema.decodeUnknownSync(Frame)(line)
        if (event !== undefined) note(event)
        if (next !== undefined) cursor = next
        frames += 1
        if (frame === "end" && reason !== "draining" && !isDatabaseAway(error))
          surprises.push(`a stream ended: ${JSON.stringify({ reason, error })}`)
      }
      try {
        const query = after === undefined ? "" : `?after=${encodeURIComponent(after)}`
        const response = await fetch(`${life.base}/sessions/${sessionID}/events${query}`, {
          headers: { ...life.headers, accept: "application/x-ndjson" },
          signal: leaving.signal
        })
        if (!response.ok || response.body === null) {
          if (!isAway(response.status)) surprises.push(`events: ${response.status} ${await response.text()}`)
          return cursor
        }
        let rest = ""
        for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
          clearTimeout(timer)
          timer = setTimeout(() => leaving.abort(), patience)
          const lines = (rest + part).split("\n")
          rest = lines.pop() ?? ""
          for (const line of lines) {
            if (line === "") continue
            take(line)
            // What this connection brings after that is dropped.
            if (frames >= most) return cursor
          }
        }
      } catch (cause) {
        if (!(cause instanceof Error) || cause.name === "ParseError") throw cause
      } finally {
        clearTimeout(timer)
        leaving.abort()
      }
      return cursor
    })

  const follow = (cursor: string | undefined): Effect.Effect<never> =>
    Effect.gen(function* () {
      const life = yield* anyLife(nodes, roll)
      connections += 1
      const most = roll() < 0.3 ? 1 + Math.floor(roll() * 12) : 200
      const next = yield* Effect.orDie(connection(life, cursor, most))
      yield* Effect.sleep(roll() * 100)
      return yield* follow(next)
    })

  const until = (holds: () => boolean): Effect.Effect<void> =>
    Effect.gen(function* () {
      while (!holds()) {
        grew = yield* Deferred.make<void>()
        yield* Deferred.await(grew)
      }
    })

  const prompts = (isDone: () => boolean) =>
    Effect.gen(function* () {
      for (let count = 0; !isDone(); count += 1) {
        const id = `msg_${sessionID.slice(4)}x${count}`
        yield* post(`/sessions/${sessionID}/prompts`, { id, prompt: { text: `This is ${id}.` }, delivery: "queue" })
        acknowledged.push(id)
        // One prompt waits while another runs.
        yield* until(() => isDone() || acknowledged.length - promoted < 2)
      }
      yield* until(() => promoted >= acknowledged.length && !open)
    })

  yield* post("/sessions", { id: sessionID, location: { directory } })
  yield* Effect.forkScoped(follow(undefined))
  const client: FaultClient = {
    sessionID,
    acknowledged,
    heard,
    surprises,
    connections: () => connections,
    work: prompts
  }
  return client
})
