/**
 * Runs sessions that another session starts and waits for. Tools are built below the facade, but need the facade for
 * child sessions, so the facade is attached later (`attached`). Limits how many children run at the same time,
 * separately for each depth: a session that waits for a child holds a slot one level up, so no level waits for itself.
 * Spec: TO-101..TO-104, TO-120..TO-123.
 */
import { Context, Deferred, Effect, Layer } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Message, Session } from "@daybook/log/domain/Message"
import type { CreateOptions, PromptOptions } from "./SessionOptions.ts"
import { Sessions } from "./Sessions.ts"

type Facade = Context.Tag.Service<typeof Sessions>
type Failure<Verb extends keyof Facade> = Facade[Verb] extends (...args: never) => Effect.Effect<unknown, infer E>
  ? E
  : never

export interface ChildOptions {
  readonly session: CreateOptions & { readonly id: SessionID }
  readonly prompt: Pick<PromptOptions, "id" | "prompt">
  readonly depth: number
  /** Called when the child exists, before it runs. */
  readonly created: (session: Session) => Effect.Effect<void>
}

export interface ChildResult {
  readonly session: Session
  /** Why the run failed. */
  readonly failure?: Failure<"resume">
  /** The text of its last answer. */
  readonly text: string
}

export class ChildSessions extends Context.Tag("@daybook/core/ChildSessions")<
  ChildSessions,
  {
    /**
     * Creates the child, prompts it, and waits until it settles. Interruption interrupts the child and waits for its
     * end. An existing id reuses that child.
     */
    readonly run: (
      options: ChildOptions
    ) => Effect.Effect<ChildResult, Failure<"create"> | Failure<"prompt"> | Failure<"messages">>
    readonly attach: (sessions: Facade) => Effect.Effect<void>
  }
>() {}

/** Children of one depth that may run at the same time. */
const childrenAtOnce = 8

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

/** Number of messages searched for the last answer. */
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
      // An explicit run instead of a wake, so that its failure is returned, not only logged. A model wrote the prompt,
      // so mentions are not expanded: otherwise it could read what it would need permission for.
      Effect.uninterruptibleMask((restore) =>
        Effect.zipRight(
          sessions.prompt({ ...prompt, sessionID, resume: false, expand: false }),
          Effect.onInterrupt(restore(sessions.resume(sessionID)), () =>
            Effect.ignoreLogged(sessions.interrupt(sessionID))
          ).pipe(
            Effect.as(undefined),
            Effect.catchAll((error: Failure<"resume">) => Effect.succeed(error))
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

/** Runs children of one database's sessions; `run` waits until `attached` is built. */
export const layer = Layer.effect(ChildSessions, make)

export const attached = Layer.effectDiscard(
  Effect.gen(function* () {
    const children = yield* ChildSessions
    yield* children.attach(yield* Sessions)
  })
)
