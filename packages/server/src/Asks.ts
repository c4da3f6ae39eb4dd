/**
 * Permissions that wait for an answer of a client: what tools ask, kept in memory while it is open, for everybody who
 * follows the session. The first answer counts. Questions of models are in the log and need no place here.
 * Spec: SO-95..SO-99 in specs/socket.md.
 */
import { createHash, randomBytes } from "node:crypto"
import { Answer, PermissionAsker, type PermissionRequest, type QuestionRef, type SessionID } from "@daybook/core"
import { Context, Deferred, Effect, Layer, type Duration } from "effect"

/** An ask that is open. */
export interface OpenAsk {
  readonly ask: string
  readonly request: PermissionRequest
}

/** Somebody who follows a session, and whether permissions can be answered from there now. */
export interface Follower {
  readonly canAnswer: () => boolean
  /** Called when the asks of the session have changed. */
  readonly changed: () => void
}

/** What became of an answer. */
export type Given = "taken" | "closed" | "unknown"

/** Where the permissions of a runtime are asked, and the clients of its sockets answer. */
export interface Asks {
  /** The asker for `Daybook.layer`. Another one, a terminal for example, is asked at the same time. */
  readonly layer: Layer.Layer<PermissionAsker>
  readonly layerBeside: <E, R>(other: Layer.Layer<PermissionAsker, E, R>) => Layer.Layer<PermissionAsker, E, R>
  readonly open: (sessionID: SessionID) => ReadonlyArray<OpenAsk>
  /** The ask is closed: of a question this is known from the log. */
  readonly remember: (ask: string, decision: string) => void
  /** The decision that closed it, as far back as is remembered. */
  readonly decisionOf: (ask: string) => string | undefined
  readonly answer: (sessionID: SessionID, ask: string, answer: Answer) => Given
  /** Counts the follower, until it is given back. */
  readonly follow: (sessionID: SessionID, follower: Follower) => () => void
  /** A client of the session was shown the ask and can answer it: it stays open for others from now on. */
  readonly shown: (ask: string) => void
  /** Something about the followers of sessions has changed. */
  readonly look: () => void
}

interface Pending extends OpenAsk {
  readonly answered: Deferred.Deferred<Answer>
  shown: boolean
}

/** Closed asks that are remembered, to tell a late answer from a wrong one. */
const rememberedAsks = 1024

/** The name of a question to clients. */
export const questionAsk = ({ callID, messageID, sessionID }: QuestionRef): string =>
  `ask-${createHash("sha256").update(`${sessionID}/${messageID}/${callID}`).digest("hex").slice(0, 32)}`

/** `patience`: how long a permission waits for an answer until it is refused; ten minutes by default. */
export const make = ({ patience = "10 minutes" }: { readonly patience?: Duration.DurationInput } = {}): Asks => {
  const pending = new Map<string, Pending>()
  const followers = new Map<SessionID, Set<Follower>>()
  const closed = new Map<string, string>()

  const tell = (sessionID: SessionID): void => {
    for (const { changed } of followers.get(sessionID) ?? []) changed()
  }

  const close = (ask: string, decision: string): void => {
    const known = pending.get(ask)
    if (known === undefined) return
    pending.delete(ask)
    remember(ask, decision)
    tell(known.request.sessionID)
  }

  const remember = (ask: string, decision: string): void => {
    closed.set(ask, decision)
    for (const oldest of closed.keys()) {
      if (closed.size <= rememberedAsks) break
      closed.delete(oldest)
    }
  }

  const settle = ({ answered, ask }: Pending, answer: Answer): void => {
    close(ask, answer._tag === "AlwaysFor" ? "always" : answer._tag.toLowerCase())
    Deferred.unsafeDone(answered, Effect.succeed(answer))
  }

  /** Where nobody who follows can answer, and nobody could, it is refused: they would wait for nothing. */
  const look = (): void => {
    for (const each of pending.values()) {
      const those = [...(followers.get(each.request.sessionID) ?? [])]
      if (!each.shown && those.length > 0 && !those.some(({ canAnswer }) => canAnswer())) {
        settle(each, Answer.Unavailable())
      }
    }
  }

  const ask = (request: PermissionRequest): Effect.Effect<Answer> =>
    Effect.gen(function* () {
      const each: Pending = {
        ask: `ask-${randomBytes(16).toString("hex")}`,
        request,
        answered: yield* Deferred.make<Answer>(),
        shown: false
      }
      pending.set(each.ask, each)
      tell(request.sessionID)
      look()
      return yield* Deferred.await(each.answered).pipe(
        Effect.timeoutTo({ duration: patience, onSuccess: (answer) => answer, onTimeout: () => Answer.Unavailable() }),
        Effect.ensuring(Effect.sync(() => close(each.ask, "closed")))
      )
    })

  return {
    layer: Layer.succeed(PermissionAsker, { ask }),
    layerBeside: (other) =>
      Layer.map(other, (context) => {
        const { ask: askOther } = Context.get(context, PermissionAsker)
        return Context.make(PermissionAsker, {
          ask: (request) => Effect.raceFirst(ask(request), askOther(request))
        })
      }),
    open: (sessionID) => [...pending.values()].filter(({ request }) => request.sessionID === sessionID),
    remember,
    decisionOf: (name) => closed.get(name),
    answer: (sessionID, name, answer) => {
      const known = pending.get(name)
      if (known?.request.sessionID !== sessionID) return closed.has(name) ? "closed" : "unknown"
      settle(known, answer)
      return "taken"
    },
    follow: (sessionID, follower) => {
      const those = followers.get(sessionID) ?? new Set()
      followers.set(sessionID, those.add(follower))
      look()
      return () => {
        those.delete(follower)
        if (those.size === 0 && followers.get(sessionID) === those) followers.delete(sessionID)
        look()
      }
    },
    shown: (name) => {
      const known = pending.get(name)
      if (known !== undefined) known.shown = true
    },
    look
  }
}
