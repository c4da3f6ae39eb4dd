/**
 * Holds the open permissions of tools in memory and shows them to every follower of their session. The first answer
 * counts. Questions of the model are in the log and are not held here. Spec: SO-95..SO-99 in specs/socket.md.
 */
import { createHash, randomBytes } from "node:crypto"
import { Clock, Context, Deferred, Duration, Effect, Layer } from "effect"
import type { QuestionRef } from "@daybook/core/domain/Question"
import { Answer, PermissionAsker, type PermissionRequest } from "@daybook/core/permission/PermissionAsker"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { putNewest } from "@daybook/log/support/Newest"

export interface OpenAsk {
  readonly ask: string
  readonly request: PermissionRequest
  readonly askedAt: number
  readonly expiresAt: number | undefined
}

/** How many milliseconds are left for an answer; empty if it waits without a limit. */
export const timeLeft = ({ expiresAt }: OpenAsk): Effect.Effect<{ readonly timeLeftMs?: number }> =>
  Effect.map(Clock.currentTimeMillis, (now) =>
    expiresAt === undefined ? {} : { timeLeftMs: Math.max(0, expiresAt - now) }
  )

/** A follower of a session; `canAnswer` says whether its client can answer permissions now. */
export interface Follower {
  readonly canAnswer: () => boolean
  /** Runs when the asks of the session have changed. */
  readonly changed: () => void
}

export type AnswerOutcome = "taken" | "closed" | "unknown"

/** Connects the permissions of a runtime with the clients of its sockets. */
export interface Asks {
  /** The asker for `Daybook.layer`. */
  readonly layer: Layer.Layer<PermissionAsker>
  /** This asker together with another, such as a terminal; both ask at the same time, and the first answer counts. */
  readonly layerBeside: <E, R>(other: Layer.Layer<PermissionAsker, E, R>) => Layer.Layer<PermissionAsker, E, R>
  readonly open: (sessionID: SessionID) => ReadonlyArray<OpenAsk>
  readonly all: () => ReadonlyArray<OpenAsk>
  readonly remember: (ask: string, decision: string) => void
  /** The decision that closed the ask, if it is still remembered. */
  readonly decisionOf: (ask: string) => string | undefined
  readonly answer: (sessionID: SessionID, ask: string, answer: Answer) => AnswerOutcome
  /** Adds a follower; the returned function removes it. */
  readonly follow: (sessionID: SessionID, follower: Follower) => () => void
  /** Records that a client that can answer was shown the ask, so that it stays open when that client leaves. */
  readonly shown: (ask: string) => void
  /** Checks again whether open asks can still be answered; call it when a follower's `canAnswer` changed. */
  readonly look: () => void
}

interface Pending extends OpenAsk {
  readonly answered: Deferred.Deferred<Answer>
  shown: boolean
}

/** Closed asks that are remembered, so that a late answer differs from an unknown ask. */
const rememberedAsks = 1024

export const questionAsk = ({ callID, messageID, sessionID }: QuestionRef): string =>
  `ask-${createHash("sha256").update(`${sessionID}/${messageID}/${callID}`).digest("hex").slice(0, 32)}`

interface State {
  readonly pending: Map<string, Pending>
  readonly followers: Map<SessionID, Set<Follower>>
  readonly closed: Map<string, string>
}

const notify = ({ followers }: State, sessionID: SessionID): void => {
  for (const { changed } of followers.get(sessionID) ?? []) changed()
}

const remember = ({ closed }: State, ask: string, decision: string): void =>
  putNewest(closed, ask, decision, rememberedAsks)

const close = (state: State, ask: string, decision: string): void => {
  const known = state.pending.get(ask)
  if (known === undefined) return
  state.pending.delete(ask)
  remember(state, ask, decision)
  notify(state, known.request.sessionID)
}

const settle = (state: State, { answered, ask }: Pending, answer: Answer): void => {
  close(state, ask, answer._tag === "AlwaysFor" ? "always" : answer._tag.toLowerCase())
  Deferred.unsafeDone(answered, Effect.succeed(answer))
}

/** Refuses asks that no answering client was shown, if no follower can answer: they would wait in vain. */
const refuseUnanswerable = (state: State): void => {
  for (const each of state.pending.values()) {
    const followers = [...(state.followers.get(each.request.sessionID) ?? [])]
    if (!each.shown && followers.length > 0 && !followers.some(({ canAnswer }) => canAnswer())) {
      settle(state, each, Answer.Unavailable())
    }
  }
}

/** A timer of the system runs for less than 25 days. */
const longestSleep = Duration.toMillis("1 day")

/** Waits until this time. */
const until = (time: number): Effect.Effect<void> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    now >= time
      ? Effect.void
      : Effect.zipRight(
          Effect.sleep(Math.min(time - now, longestSleep)),
          Effect.suspend(() => until(time))
        )
  )

const ask = Effect.fnUntraced(function* (
  state: State,
  request: PermissionRequest,
  patience: number
): Effect.fn.Return<Answer> {
  const askedAt = yield* Clock.currentTimeMillis
  const expiresAt = Number.isFinite(patience) ? askedAt + patience : undefined
  const each: Pending = {
    ask: `ask-${randomBytes(16).toString("hex")}`,
    request,
    askedAt,
    expiresAt,
    answered: yield* Deferred.make<Answer>(),
    shown: false
  }
  state.pending.set(each.ask, each)
  notify(state, request.sessionID)
  refuseUnanswerable(state)
  const expiry =
    expiresAt === undefined
      ? Effect.void
      : Effect.map(until(expiresAt), () => {
          // An answer that was taken counts, even if it has not been read yet.
          if (state.pending.has(each.ask)) settle(state, each, Answer.Expired({ waited: patience }))
        })
  return yield* Effect.scoped(Effect.zipRight(Effect.forkScoped(expiry), Deferred.await(each.answered))).pipe(
    Effect.ensuring(Effect.sync(() => close(state, each.ask, "closed")))
  )
})

const follow = (state: State, sessionID: SessionID, follower: Follower): (() => void) => {
  const { followers } = state
  const present = followers.get(sessionID) ?? new Set()
  followers.set(sessionID, present.add(follower))
  refuseUnanswerable(state)
  return () => {
    present.delete(follower)
    if (present.size === 0 && followers.get(sessionID) === present) followers.delete(sessionID)
    refuseUnanswerable(state)
  }
}

/** `patience` is how long a permission waits for an answer before it is refused; without a limit by default. */
export const make = ({ patience = Duration.infinity }: { readonly patience?: Duration.DurationInput } = {}): Asks => {
  const state: State = { pending: new Map(), followers: new Map(), closed: new Map() }
  const { closed, pending } = state
  const asker = { ask: (request: PermissionRequest) => ask(state, request, Math.round(Duration.toMillis(patience))) }
  return {
    layer: Layer.succeed(PermissionAsker, asker),
    layerBeside: (other) =>
      Layer.map(other, (context) => {
        const { ask: askOther } = Context.get(context, PermissionAsker)
        return Context.make(PermissionAsker, {
          ask: (request) => Effect.raceFirst(asker.ask(request), askOther(request))
        })
      }),
    open: (sessionID) => [...pending.values()].filter(({ request }) => request.sessionID === sessionID),
    all: () => [...pending.values()],
    remember: (name, decision) => remember(state, name, decision),
    decisionOf: (name) => closed.get(name),
    answer: (sessionID, name, answer) => {
      const known = pending.get(name)
      if (known?.request.sessionID !== sessionID) return closed.has(name) ? "closed" : "unknown"
      settle(state, known, answer)
      return "taken"
    },
    follow: (sessionID, follower) => follow(state, sessionID, follower),
    shown: (name) => {
      const known = pending.get(name)
      if (known !== undefined) known.shown = true
    },
    look: () => refuseUnanswerable(state)
  }
}
