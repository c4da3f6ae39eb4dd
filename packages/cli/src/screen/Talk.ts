/**
 * The session that the screen shows, and what a person does with it: following, prompting, stopping, answering. It knows no
 * keys and no terminal. Spec: SC-502, SC-509, SC-510, SC-525 in specs/screen.md.
 */
import { Cause, Effect, Fiber } from "effect"
import { Agents } from "@daybook/core/agent/Agents"
import { ModelResolver } from "@daybook/core/model/ModelResolver"
import { Sessions } from "@daybook/core/session/Sessions"
import { Identifiers, type MessageID, type SessionID } from "@daybook/log/domain/Identifiers"
import type { Session } from "@daybook/log/domain/Message"
import { titleOfPrompt } from "@daybook/log/domain/Title"
import type { ModelRef } from "@daybook/log/domain/Values"
import { draft, type LiveEvent, type SessionEvent } from "@daybook/log/events/SessionEvents"
import { EventLog } from "@daybook/log/log/EventLog"
import { questionChange } from "@daybook/transcript/QuestionEvents"
import { placeOf } from "../host/HistoryPlace.ts"
import { Remote } from "../host/Remote.ts"
import { failureOfCause } from "../render/Failure.ts"
import { oneLine } from "../render/Plain.ts"
import * as Breadcrumb from "../terminal/Breadcrumb.ts"
import { isDefaultChosen, noModel } from "../host/Runtime.ts"
import type { Questions } from "./Ask.ts"
import * as Commands from "./Commands.ts"
import { follow, type Past } from "./SessionFollower.ts"
import * as HostCommand from "./HostCommand.ts"
import * as Pictures from "./Pictures.ts"
import * as View from "./View.ts"

/** The model and the agent of the next session. */
export interface Preferred {
  readonly model?: ModelRef
  readonly agent?: string
}

export type Services = Commands.Services | Identifiers

export interface Options {
  /** The folder of new sessions. */
  readonly directory: string
  /** The session that an empty Enter goes on with, while none is shown. */
  readonly offered: Session | undefined
  readonly preferred: Preferred
  /** The model of the folder's project for new sessions. */
  readonly projects: ModelRef | undefined
  /** Starts an effect of the screen's scope. */
  readonly fork: (effect: Effect.Effect<void, never, Services>) => Fiber.RuntimeFiber<void>
  readonly changed: () => void
  readonly keep: (block: View.Block) => void
  /** Another session is shown from here on. */
  readonly begins: (session: Session) => void
  /** An activity of the shown session has ended. */
  readonly settled: () => void
  /** A prompt was not taken: its text goes back. */
  readonly refused: (text: string) => void
}

/** A second Esc within this time stops the whole run, in milliseconds. */
const twice = 2_000

/** Events after which the session's record has other figures or another title. */
const spends = new Set<string>(["session.next.activity.settled", "session.next.step.ended", "session.next.renamed"])

const initial = ({ offered, preferred }: Options) => ({
  session: undefined as Session | undefined,
  offered,
  preferred,
  view: View.empty,
  /** The context window of the model in tokens; 0 if it is not known. */
  window: 0,
  /** Open questions of models, by session and call. */
  questions: new Map<string, Questions>(),
  stopping: false,
  /** The last stop, in milliseconds since the epoch. */
  escaped: 0,
  /** The command that runs for the person. */
  command: undefined as { readonly line: string; fiber: Fiber.RuntimeFiber<void> | undefined } | undefined,
  following: undefined as Fiber.RuntimeFiber<void> | undefined
})

/** The shown session and the services that change it. `remote` is the server whose sessions are shown; its models are unknown here. */
export interface Talk {
  readonly options: Options
  readonly state: ReturnType<typeof initial>
  readonly sessions: Sessions["Type"]
  readonly log: EventLog["Type"]
  readonly remote: Remote["Type"]
  /** Runs an effect in the background; a failure is a note. */
  readonly act: <A, E>(effect: Effect.Effect<A, E, Services>) => Fiber.RuntimeFiber<void>
  readonly note: (text: string, bad?: boolean) => void
}

export const make = Effect.fn("Talk.make")(function* (options: Options) {
  const note: Talk["note"] = (text, bad = false) => options.keep({ type: "note", text, bad })
  const act: Talk["act"] = (effect) =>
    options.fork(
      Effect.asVoid(effect).pipe(
        Effect.catchAllCause((cause) =>
          Effect.sync(() => {
            if (!Cause.isInterruptedOnly(cause)) note(failureOfCause(cause).sentence ?? "that failed", true)
          })
        ),
        Effect.ensuring(Effect.sync(options.changed))
      )
    )
  const services = yield* Effect.all({ sessions: Sessions, log: EventLog, remote: Remote })
  return { ...services, options, state: initial(options), act, note } satisfies Talk
})

export const directory = ({ options, state }: Talk) => state.session?.location.directory ?? options.directory

export const title = ({ state: { session, view } }: Talk) =>
  oneLine(view.title ?? session?.title ?? session?.id ?? "", 60)

const refresh = (talk: Talk, sessionID: SessionID) =>
  talk.act(
    Effect.map(talk.sessions.get(sessionID), (session) => {
      if (talk.state.session?.id === sessionID) talk.state.session = session
    })
  )

// ---- the model

/** The model that the next session has: the chosen one, or the project's unless its agent has one. */
const modelOfNext = Effect.fnUntraced(function* ({ options: { directory, projects }, state }: Talk) {
  const { agent, model } = state.preferred
  if (model !== undefined || projects === undefined) return model
  const { model: ofAgent } = yield* (yield* Agents).get(agent, { directory })
  return ofAgent === undefined ? projects : undefined
})

/** Finds the model's window. */
export const measure = (talk: Talk) => {
  const { remote, state } = talk
  if (remote !== undefined) return
  const measured = Effect.gen(function* () {
    const stored = state.view.model ?? state.session?.model
    const ref = stored ?? (state.session === undefined ? yield* modelOfNext(talk) : undefined)
    const { info } = yield* (yield* ModelResolver).resolve(ref)
    state.window = info.contextTokens
    if (state.view.model === undefined) state.view = { ...state.view, model: info.ref }
  })
  talk.act(Effect.ignore(measured))
}

/** Says before the first prompt that the model cannot be used, or that there is none. */
export const announce = (talk: Talk) => {
  if (talk.remote !== undefined) return
  talk.act(
    Effect.gen(function* () {
      const ref = yield* modelOfNext(talk)
      const { info } = yield* (yield* ModelResolver).resolve(ref)
      const isChosen = ref !== undefined || (yield* isDefaultChosen)
      if (info.ref.providerID === "offline" && !isChosen) talk.note(`${noModel}; then start daybook again`)
    })
  )
}

export const prefer = (talk: Talk, next: Preferred) => {
  const { state } = talk
  state.preferred = { ...state.preferred, ...next }
  state.view = { ...state.view, ...next }
  measure(talk)
}

// ---- questions of models

const keyOf = (ref: { readonly sessionID: string; readonly callID: string }) => `${ref.sessionID} ${ref.callID}`

const askQuestions = (talk: Talk, sessionID: SessionID) =>
  talk.act(
    Effect.map(talk.sessions.questions(sessionID), (open) => {
      const { questions } = talk.state
      const keys = new Set(open.map(keyOf))
      for (const key of questions.keys()) {
        if (key.startsWith(`${sessionID} `) && !keys.has(key)) questions.delete(key)
      }
      for (const pending of open) {
        if (!questions.has(keyOf(pending))) questions.set(keyOf(pending), { pending, answers: [] })
      }
    })
  )

export const answer = (talk: Talk, { pending }: Questions, next: Questions | ReadonlyArray<string>) => {
  const { questions } = talk.state
  if ("pending" in next) return void questions.set(keyOf(pending), next)
  questions.delete(keyOf(pending))
  talk.act(talk.sessions.answer({ ...pending, answers: next }))
}

export const dismiss = (talk: Talk, { pending }: Questions) => {
  talk.state.questions.delete(keyOf(pending))
  talk.act(talk.sessions.dismissQuestion(pending))
}

/** Asks the questions of the sessions that run in this process, such as those of tasks. */
export const listen = (talk: Talk) =>
  talk.remote !== undefined
    ? Effect.void
    : talk.log.listen((events) =>
        Effect.sync(() => {
          for (const event of events) {
            if (event.sessionID !== talk.state.session?.id && questionChange(event) !== undefined) {
              askQuestions(talk, event.sessionID)
            }
          }
        })
      )

// ---- following

/** Names the message after which the history goes on. New lines are written below the messages that were left. */
const tellPlace = (talk: Talk, sessionID: SessionID, leafID: MessageID | undefined) =>
  talk.act(Effect.map(placeOf(sessionID, leafID), (place) => talk.note(`the session goes on ${place}`)))

const onEvent = (talk: Talk, event: SessionEvent | LiveEvent) => {
  const { options, state } = talk
  const before = state.view
  const [view, blocks] = View.step(before, event)
  state.view = view
  if (before.activity !== undefined && view.activity === undefined) options.settled()
  blocks.forEach((block) =>
    block.type === "moved" ? tellPlace(talk, event.sessionID, block.messageID) : options.keep(block)
  )
  if (view.activity === undefined) state.stopping = false
  if (before.model !== view.model) measure(talk)
  if (spends.has(event.type)) refresh(talk, event.sessionID)
  if (questionChange(event) !== undefined) askQuestions(talk, event.sessionID)
  options.changed()
}

const onPast = (talk: Talk, session: Session, { events, isCut, waiting }: Past) => {
  const { options, state } = talk
  if (isCut) talk.note(`earlier messages: daybook show ${session.id}`)
  state.view = { ...View.empty, model: session.model, agent: session.agent, title: session.title }
  for (const event of events) {
    const [view, blocks] = View.step(state.view, event)
    state.view = view
    blocks.forEach(options.keep)
  }
  const isRunning = session.activity?.state === "running"
  state.view = {
    ...state.view,
    waiting: new Map(waiting.map(({ delivery, id, prompt }) => [id, { text: prompt.text, delivery }])),
    ...(isRunning ? {} : { activity: undefined, running: new Map(), texts: new Map() })
  }
  measure(talk)
  askQuestions(talk, session.id)
  options.changed()
}

const followed = Effect.fnUntraced(function* (
  talk: Talk,
  { agent, id }: Session,
  chosen: Preferred,
  shown: () => void
) {
  const { remote, sessions, state } = talk
  // A server settles its own sessions.
  if (remote === undefined) yield* Effect.ignore(sessions.settle(id))
  if (chosen.model !== undefined) yield* sessions.switchModel(id, chosen.model)
  if (chosen.agent !== undefined && chosen.agent !== agent) yield* sessions.switchAgent(id, chosen.agent)
  const now = yield* sessions.get(id)
  state.session = now
  const past = (before: Past) => {
    onPast(talk, now, before)
    shown()
  }
  yield* follow(id, { past, event: (event) => onEvent(talk, event) })
})

/** Shows a session, or the beginning of a new one. `shown` is called once its end is written. */
export const show = Effect.fnUntraced(function* (
  talk: Talk,
  session: Session | undefined,
  preferred: Preferred = {},
  shown: () => void = () => undefined
) {
  const { options, state } = talk
  if (state.following !== undefined) yield* Fiber.interruptFork(state.following)
  Object.assign(state, { session, offered: undefined, view: View.empty, stopping: false })
  state.questions.clear()
  if (session === undefined) {
    talk.note("a new session begins with your next prompt")
    return measure(talk)
  }
  state.preferred = {}
  options.begins(session)
  state.following = talk.act(followed(talk, session, preferred, shown))
})

// ---- what a person does

/** The shown session, or a new one that is shown from here on. */
const current = Effect.fnUntraced(function* (talk: Talk, text: string) {
  const { options, sessions, state } = talk
  if (state.session !== undefined) return state.session
  const session = yield* sessions.create({
    location: { directory: options.directory },
    agent: state.preferred.agent,
    model: yield* modelOfNext(talk),
    title: titleOfPrompt(text),
    provisional: true
  })
  yield* show(talk, session)
  return session
})

export const prompt = (
  talk: Talk,
  text: string,
  delivery: View.WaitingPrompt["delivery"],
  chips: ReadonlySet<string>
) =>
  talk.act(
    Effect.gen(function* () {
      const files = yield* Pictures.attached(text, chips)
      const { id: sessionID, location } = yield* current(talk, text)
      const id = yield* (yield* Identifiers).message
      const prompt = { text, ...(files.length === 0 ? {} : { files }) }
      yield* talk.sessions.prompt({ id, sessionID, prompt, delivery })
      yield* Breadcrumb.leave({ directory: location.directory, sessionID })
    }).pipe(Effect.tapErrorCause(() => Effect.sync(() => talk.options.refused(text))))
  )

/** Runs a command of the person. The model sees it, unless it is private. */
export const shell = (talk: Talk, command: string, isPrivate: boolean) => {
  const { log, options, remote, state } = talk
  const run = Effect.gen(function* () {
    // The folder of a server's session is on another machine.
    const output = yield* HostCommand.run(command, remote === undefined ? directory(talk) : options.directory)
    if (isPrivate || remote !== undefined) options.keep({ type: "shell", command, output })
    if (isPrivate) return
    if (remote !== undefined) return talk.note("the model of a server is not shown what runs on this machine")
    const session = yield* current(talk, command)
    const messageID = yield* (yield* Identifiers).message
    const callID = `call_${messageID.slice(4)}`
    yield* log.append(session.id, [
      draft("session.next.shell.started", { messageID, callID, command }),
      draft("session.next.shell.ended", { callID, output })
    ])
  })
  const running: typeof state.command = { line: command, fiber: undefined }
  state.command = running
  const ended = Effect.sync(() => {
    if (state.command === running) state.command = undefined
  })
  const stopped = Effect.sync(() => talk.note(`stopped: ${oneLine(command, 200)}`))
  running.fiber = talk.act(
    Effect.ensuring(
      Effect.onInterrupt(run, () => stopped),
      ended
    )
  )
}

/** Enter without a text: goes on with the offered session, or runs what waits. */
export const goOn = (talk: Talk) => {
  const { offered, session, view } = talk.state
  if (session === undefined && offered !== undefined) return void talk.act(show(talk, offered))
  if (session !== undefined && view.activity === undefined && view.waiting.size > 0) {
    talk.act(talk.sessions.resume(session.id))
  }
}

/** Stops the person's command, else the activity; a second time the whole run. Returns whether there was something to stop. */
export const stop = (talk: Talk, now: number): boolean => {
  const { command, escaped, session, stopping, view } = talk.state
  if (command?.fiber !== undefined) {
    talk.act(Fiber.interrupt(command.fiber))
    return true
  }
  if (session === undefined || (view.activity === undefined && !stopping)) return false
  const isSecond = stopping || now - escaped < twice
  Object.assign(talk.state, { escaped: now, stopping: true })
  const only = isSecond || view.activity === undefined ? undefined : { activityID: view.activity.id }
  talk.act(talk.sessions.interrupt(session.id, only))
  return true
}

/** Takes the last waiting prompt back. */
export const takeBack = (talk: Talk, use: (text: string) => void) => {
  const { session, view } = talk.state
  const last = [...view.waiting].at(-1)
  if (last === undefined || session === undefined) return
  const [id, { text }] = last
  talk.act(Effect.map(talk.sessions.withdraw(session.id, id), () => use(text)))
}

/** Stops what runs in this process; what another process runs goes on. */
export const leave = Effect.fnUntraced(function* ({ options, remote, sessions, state }: Talk) {
  const { session, view } = state
  if (session === undefined || remote !== undefined) return
  if (!(yield* sessions.active).includes(session.id)) return
  state.stopping = view.activity !== undefined
  options.changed()
  yield* Effect.ignore(sessions.interrupt(session.id))
})
