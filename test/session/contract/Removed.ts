/**
 * Method: the session is removed by another process at one of two instants within each verb, after its first look-up or
 * before its first append. The removal is real; only its instant is chosen, by a look over the verb's shoulder.
 */
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Cause, type Context, Effect, Exit, Option, Predicate, Stream } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { SessionOwner } from "../../../packages/log/src/coordination/SessionOwner.ts"
import { ActivityID, MessageID, SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { SessionStore } from "../../../packages/log/src/store/SessionStore.ts"
import { newSession, type Runtimes, say, temporaryFolder } from "../../support/Harness.ts"
import { otherRef, ref } from "../../support/ScriptedModel.ts"

type Facade = Context.Tag.Service<typeof Sessions>

/** The question that the session's model asks. */
const refOf = (sessionID: SessionID) => ({
  sessionID,
  messageID: MessageID.make(`msg_${sessionID.slice(4)}`),
  callID: "call"
})

/** Every verb on one session, without `ask`, which is `prompt` and `events`: `writes` must say that it is not there, `reads` may show it as it was. */
const verbs: Record<
  Exclude<keyof Facade, "active" | "addressed" | "ask" | "create" | "interrupted" | "list" | "named" | "waiting">,
  readonly ["reads" | "writes", (sessions: Facade, sessionID: SessionID) => Effect.Effect<unknown, unknown>]
> = {
  answer: ["writes", ({ answer }, sessionID) => answer({ ...refOf(sessionID), answers: ["yes"] })],
  branch: ["writes", ({ branch }, sessionID) => branch(refOf(sessionID))],
  compact: ["writes", ({ compact }, sessionID) => compact(sessionID)],
  context: ["reads", ({ context }, sessionID) => context(sessionID)],
  dismissQuestion: ["writes", ({ dismissQuestion }, sessionID) => dismissQuestion(refOf(sessionID))],
  events: ["reads", ({ events }, sessionID) => Stream.runHead(events({ sessionID }))],
  eventsMarked: ["reads", ({ eventsMarked }, sessionID) => Stream.runHead(eventsMarked({ sessionID }))],
  follow: ["reads", ({ follow }, sessionID) => Stream.runHead(follow({ sessionID }))],
  fork: ["reads", ({ fork }, sessionID) => fork({ sessionID })],
  get: ["reads", ({ get }, sessionID) => get(sessionID)],
  history: ["reads", ({ history }, sessionID) => history({ sessionID })],
  inbox: ["reads", ({ inbox }, sessionID) => inbox(sessionID)],
  label: ["writes", ({ label }, sessionID) => label({ ...refOf(sessionID), label: "name" })],
  // It does nothing where there is nothing to interrupt (CO-6).
  interrupt: ["reads", ({ interrupt }, sessionID) => interrupt(sessionID)],
  live: ["reads", ({ live }, sessionID) => Stream.runHead(Stream.interruptWhen(live(sessionID), Effect.void))],
  message: ["reads", ({ message }, sessionID) => message(sessionID, refOf(sessionID).messageID)],
  messages: ["reads", ({ messages }, sessionID) => messages({ sessionID })],
  move: ["writes", ({ move }, sessionID) => move(sessionID, { directory: tmpdir() })],
  place: [
    "writes",
    ({ place }, sessionID) =>
      place(sessionID, { address: { scope: "private", uid: 1, kind: "agent", name: "a", session: sessionID.slice(4) } })
  ],
  prompt: ["writes", ({ prompt }, sessionID) => prompt({ sessionID, prompt: { text: "hi" }, resume: false })],
  questions: ["reads", ({ questions }, sessionID) => questions(sessionID)],
  remove: ["reads", ({ remove }, sessionID) => remove(sessionID)],
  rename: ["writes", ({ rename }, sessionID) => rename(sessionID, "name")],
  request: ["reads", ({ request }, sessionID) => request({ sessionID, at: 5 })],
  reset: ["writes", ({ reset }, sessionID) => reset(sessionID)],
  undo: ["writes", ({ undo }, sessionID) => undo({ sessionID })],
  redo: ["writes", ({ redo }, sessionID) => redo({ sessionID })],
  resume: ["writes", ({ resume }, sessionID) => resume(sessionID)],
  setBudget: ["writes", ({ setBudget }, sessionID) => setBudget(sessionID, { tokens: 1 })],
  settle: ["writes", ({ settle }, sessionID) => settle(sessionID)],
  switchAgent: ["writes", ({ switchAgent }, sessionID) => switchAgent(sessionID, "plan")],
  switchModel: ["writes", ({ switchModel }, sessionID) => switchModel(sessionID, otherRef)],
  todos: ["reads", ({ todos }, sessionID) => todos(sessionID)],
  tree: ["reads", ({ tree }, sessionID) => tree({ sessionID })],
  unprune: ["writes", ({ unprune }, sessionID) => unprune(sessionID)],
  metrics: ["reads", ({ metrics }, sessionID) => metrics(sessionID)],
  usage: ["reads", ({ usage }, sessionID) => usage(sessionID)],
  wait: ["reads", ({ wait }, sessionID) => wait(sessionID)],
  withdraw: [
    "writes",
    ({ withdraw }, sessionID) => withdraw(sessionID, MessageID.make(`msg_waits_${sessionID.slice(4)}`))
  ]
}

/** A session with something for every verb: a prompt that waits, an open question, results that are not shown. */
const left = Effect.gen(function* () {
  const { id } = yield* newSession()
  const { callID, messageID: assistantMessageID } = refOf(id)
  yield* say(id, "waits", { resume: false, id: `msg_waits_${id.slice(4)}` })
  const step = { assistantMessageID, agent: "build", model: ref }
  const call = { assistantMessageID, callID, tool: "question", provider: { executed: false } }
  yield* (yield* EventLog).append(id, [
    draft("session.next.activity.started", { activityID: ActivityID.make(`act_${id.slice(4)}`), trigger: "resume" }),
    draft("session.next.step.started", step),
    draft("session.next.tool.input.started", { assistantMessageID, callID, name: "question" }),
    draft("session.next.tool.called", { ...call, input: { questions: [{ question: "Which?" }] } }),
    draft("session.next.context.pruned", { through: 2 })
  ])
  return id
})

const tagOf = (cause: Cause.Cause<unknown>): string => {
  const failure = Option.getOrUndefined(Cause.failureOption(cause))
  return Predicate.hasProperty(failure, "_tag") ? String(failure._tag) : Cause.pretty(cause)
}

/** Runs `removal` once, when the verb has looked the session up or is about to append. */
const removeAt = Effect.fnUntraced(function* (instant: "look-up" | "append", removal: Effect.Effect<unknown>) {
  const [log, store] = [yield* EventLog, yield* SessionStore]
  const [{ append }, { get, standing }] = [{ ...log }, { ...store }]
  let left = 1
  const once = Effect.suspend(() => (left-- > 0 ? removal : Effect.void))
  Object.assign(
    instant === "append" ? log : store,
    instant === "append"
      ? { append: (...args: Parameters<typeof append>) => Effect.zipRight(once, append(...args)) }
      : {
          get: (id: SessionID) => Effect.zipLeft(get(id), once),
          standing: (id: SessionID) => Effect.zipLeft(standing(id), once)
        }
  )
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => Object.assign(log, { append }) && Object.assign(store, { get, standing }))
  )
})

export const removal = ({ open }: Runtimes) => {
  for (const instant of ["look-up", "append"] as const) {
    it.scopedLive(
      `IB-9: a verb whose session another process removes at its ${instant} fails with SessionNotFound`,
      () =>
        Effect.gen(function* () {
          const filename = join(yield* temporaryFolder, "daybook.db")
          const [here, there] = [yield* open({ filename }), yield* open({ filename })]
          for (const [name, [kind, verb]] of Object.entries(verbs)) {
            const id = yield* Effect.provide(left, here)
            const owns = name === "answer" || name === "dismissQuestion"
            const removing = Effect.provide(
              Effect.flatMap(EventLog, (log) => Effect.orDie(log.remove(id))),
              there
            )
            const exit = yield* Effect.provide(
              Effect.flatMap(Sessions, (sessions) =>
                Effect.scoped(
                  Effect.gen(function* () {
                    // A question waits for an answer only while its process lives.
                    if (owns) yield* (yield* SessionOwner).acquire(id)
                    yield* removeAt(instant, removing)
                    return yield* Effect.exit(verb(sessions, id))
                  })
                )
              ),
              here
            )
            const outcome = Exit.match(exit, { onSuccess: () => "success", onFailure: tagOf })
            const rest = yield* Effect.provide(
              Effect.flatMap(SessionStore, (store) => Effect.option(store.get(id))),
              there
            )
            // A verb that does not look the session up before it writes is not met by the first instant.
            if (kind === "writes" && (instant === "append" || Option.isNone(rest))) {
              assert.strictEqual(`${name}: ${outcome}`, `${name}: SessionNotFound`)
            } else if (Option.isNone(rest)) {
              // There was no turn to show before the removal either.
              assert.include(
                ["success", "SessionNotFound", ...(name === "request" ? ["NothingShown"] : [])],
                outcome,
                name
              )
            }
          }
        })
    )
  }
}
