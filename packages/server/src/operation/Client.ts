/** A connected client of a socket: its open answers, the runs that it follows, and refusals for it. */
import { Cause, Effect, FiberSet, type Scope } from "effect"
import type { RunID } from "@daybook/transcript/row/Rows"
import type { Backend } from "../session/Backend.ts"
import type { Connection, ConnectionClosed } from "../socket/Connection.ts"
import type { Stopping } from "../socket/Stopping.ts"
import { Refused } from "../support/Refused.ts"
import * as Wire from "../wire/Wire.ts"

export interface Client {
  readonly connection: Connection
  /** Answers that continue beside the next requests. */
  readonly answers: FiberSet.FiberSet<void>
  /** Runs whose frames the client gets, each with the number of answers that write them. */
  readonly follows: Map<RunID, number>
  /** The number of answers in progress. */
  requests: number
}

export type Answer<A = void> = Effect.Effect<A, Refused | ConnectionClosed>

/** The request, and the run if known, that an answer belongs to. */
export interface About {
  readonly id: string | undefined
  run?: RunID
  /** Set once the client is shown a run; a stopping server waits for its end. */
  shown?: Backend["answers"]
}

const broken = new Refused({ code: "EIO", message: "an internal error ended the answer; it is in the server's log" })

export const make = (connection: Connection): Effect.Effect<Client, never, Scope.Scope> =>
  Effect.map(FiberSet.make<void>(), (answers) => ({ connection, answers, follows: new Map(), requests: 0 }))

export const write = ({ connection }: Client, frame: Wire.Frame): Effect.Effect<void, ConnectionClosed> =>
  connection.write(Wire.encodeFrame(frame))

export const refuse = (
  client: Client,
  { code, message }: Refused,
  { id, run }: Pick<About, "id" | "run">
): Effect.Effect<void, ConnectionClosed> => write(client, Wire.errorFrame({ code, message, id, run }))

/** Writes that the request waits; with `run`, its prompt is on disk. */
export const queued = (client: Client, id: string, run?: RunID): Effect.Effect<void, ConnectionClosed> =>
  write(client, { type: "queued", id, ...(run === undefined ? {} : { run }) })

/** Counts the answer as showing a run; call it when the run starts. */
export const showing =
  ({ answers }: Backend, about: About) =>
  (): void => {
    if (about.shown !== undefined) return
    about.shown = answers
    answers.begin()
  }

/** Counts the run as followed by the client while the effect runs. */
export const following = <A, E>({ follows }: Client, run: RunID, effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.acquireUseRelease(
    Effect.sync(() => follows.set(run, (follows.get(run) ?? 0) + 1)),
    () => effect,
    () =>
      Effect.sync(() => {
        const count = (follows.get(run) ?? 1) - 1
        if (count === 0) follows.delete(run)
        else follows.set(run, count)
      })
  )

/** Runs the answer beside the next requests. A refusal carries the request's id, and its run once known. */
export const answerBeside = (client: Client, stopping: Stopping, about: About, answer: Answer): Effect.Effect<void> =>
  Effect.suspend(() => {
    client.requests += 1
    return stopping.until(answer).pipe(
      Effect.catchTag("Refused", (refused) => refuse(client, refused, about)),
      Effect.catchTag("ConnectionClosed", () => Effect.void),
      Effect.catchAllCause((cause) =>
        Cause.isInterruptedOnly(cause)
          ? Effect.void
          : Effect.zipRight(
              Effect.logError("a request could not be answered", cause),
              Effect.ignore(refuse(client, broken, about))
            )
      ),
      Effect.ensuring(
        Effect.sync(() => {
          client.requests -= 1
          about.shown?.end()
        })
      ),
      FiberSet.run(client.answers),
      Effect.asVoid
    )
  })
