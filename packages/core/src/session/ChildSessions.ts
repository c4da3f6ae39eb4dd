/**
 * Sessions that another session starts and waits for. Tools lie below execution, and this is what they need of the
 * facade above it: the facade is handed in once it is there (`attached`). Bounds how many children run at a time, for
 * each depth on its own: who waits for a child holds a place one level further up, so no level waits for itself.
 * Spec: TO-101..TO-104.
 */
import { Context, Deferred, Effect, Layer } from "effect"
import type { SessionID } from "../Identifiers.ts"
import type { Message, Session } from "./Message.ts"
import type { RunError } from "./RunError.ts"
import { Sessions, type CreateOptions, type PromptOptions } from "./Sessions.ts"

type Facade = Context.Tag.Service<typeof Sessions>
type Failure<Verb extends keyof Facade> = Facade[Verb] extends (...args: never) => Effect.Effect<unknown, infer E>
  ? E
  : never

/** A child to be, and what it is told. */
export interface ChildOptions {
  readonly session: CreateOptions & { readonly id: SessionID }
  readonly prompt: Pick<PromptOptions, "id" | "prompt">
  /** How many sessions are above it. */
  readonly depth: number
  /** Told as soon as the child is there, before it runs. */
  readonly created: (session: Session) => Effect.Effect<void>
}

/** What a child's run came to. */
export interface ChildResult {
  /** The session after its run. */
  readonly session: Session
  /** Why the run failed. */
  readonly failure?: RunError
  /** The text of its last answer. */
  readonly text: string
}

export class ChildSessions extends Context.Tag("@daybook/core/ChildSessions")<
  ChildSessions,
  {
    /**
     * Creates the child, prompts it, and waits until it has settled. Interruption interrupts the child and waits for
     * that. An id that exists is the same child.
     */
    readonly run: (
      options: ChildOptions
    ) => Effect.Effect<ChildResult, Failure<"create"> | Failure<"prompt"> | Failure<"messages">>
    readonly attach: (sessions: Facade) => Effect.Effect<void>
  }
>() {}

/** Children of one depth that run at the same time. */
export const childrenAtOnce = 8

const textOf = (messages: ReadonlyArray<Message>): string => {
  for (const message of messages) {
    if (message.type !== "assistant") continue
    const texts = message.content.flatMap((part) =>
      part.type === "text" && part.text !== undefined && part.text !== "" ? [part.text] : []
    )
    if (texts.length > 0) return texts.join("\n\n")
  }
  return ""
}

/** Messages that are looked through for the last answer. */
const lookedThrough = 20

const make = Effect.gen(function* () {
  const facade = yield* Deferred.make<Facade>()
  const places = new Map<number, Effect.Semaphore>()

  const atDepth = (depth: number): Effect.Semaphore => {
    const known = places.get(depth)
    if (known !== undefined) return known
    const made = Effect.unsafeMakeSemaphore(childrenAtOnce)
    places.set(depth, made)
    return made
  }

  const run = Effect.fn("ChildSessions.run")(function* ({ created, depth, prompt, session: options }: ChildOptions) {
    const sessions = yield* Deferred.await(facade)
    const { id: sessionID } = yield* sessions.create(options)
    yield* created(yield* sessions.get(sessionID))
    const failure = yield* atDepth(depth).withPermits(1)(
      // A run of its own, and not a wake: what it fails with is told, and not only logged. A model wrote the words: were
      // their mentions resolved, it could read what it would have to ask for.
      Effect.uninterruptibleMask((restore) =>
        Effect.zipRight(
          sessions.prompt({ ...prompt, sessionID, resume: false, expand: false }),
          Effect.onInterrupt(restore(sessions.resume(sessionID)), () =>
            Effect.ignoreLogged(sessions.interrupt(sessionID))
          ).pipe(
            Effect.as(undefined),
            Effect.catchAll((error: RunError) => Effect.succeed(error))
          )
        )
      )
    )
    const session = yield* sessions.get(sessionID)
    const { items } = yield* sessions.messages({ sessionID, order: "desc", limit: lookedThrough })
    return { session, text: textOf(items), ...(failure === undefined ? {} : { failure }) }
  })

  return ChildSessions.of({ run, attach: (sessions) => Effect.asVoid(Deferred.succeed(facade, sessions)) })
})

/** Children of the sessions of one database. They wait until `attached` is there. */
export const layer = Layer.effect(ChildSessions, make)

/** Hands the facade in. */
export const attached = Layer.effectDiscard(
  Effect.gen(function* () {
    const children = yield* ChildSessions
    yield* children.attach(yield* Sessions)
  })
)
