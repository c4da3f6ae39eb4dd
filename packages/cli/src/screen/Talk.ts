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

export type Talk = Effect.Effect.Success<ReturnType<typeof make>>

export const make = Effect.fn("Talk.make")(function* (options: Options) {
  const { changed, directory, fork, keep } = options
  const sessions = yield* Sessions
  const log = yield* EventLog
  const resolver = yield* ModelResolver
  const agents = yield* Agents
  const identifiers = yield* Identifiers
  const remote = yield* Remote

  const state = {
    session: undefined as Session | undefined,
    offered: options.offered,
    preferred: options.preferred,
    view: View.empty,
    /** The context window of the model in tokens; 0 if it is not known. */
    window: 0,
    /** Open questions of models, by session and call. */
    questions: new Map<string, Questions>(),
    stopping: false,
    /** The command that runs for the person. */
    command: undefined as { readonly line: string; fiber: Fiber.RuntimeFiber<void> | undefined } | undefined
  }
  let following: Fiber.RuntimeFiber<void> | undefined
  let escaped = 0

  const note = (text: string, bad = false) => keep({ type: "note", text, bad })

  /** Runs an effect in the background; a failure is a note. */
  const act = <A, E>(effect: Effect.Effect<A, E, Services>) =>
    fork(
      Effect.asVoid(effect).pipe(
        Effect.catchAllCause((cause) =>
          Effect.sync(() => {
            if (!Cause.isInterruptedOnly(cause)) note(failureOfCause(cause).sentence ?? "that failed", true)
          })
        ),
        Effect.ensuring(Effect.sync(changed))
      )
    )

  const refresh = (sessionID: SessionID) =>
    act(
      Effect.map(sessions.get(sessionID), (session) => {
        if (state.session?.id === sessionID) state.session = session
      })
    )

  /** The model that the next session has: the chosen one, or the project's unless its agent has one. */
  const modelOfNext = Effect.gen(function* () {
    const { agent, model } = state.preferred
    if (model !== undefined || options.projects === undefined) return model
    const { model: ofAgent } = yield* agents.get(agent, { directory })
    return ofAgent === undefined ? options.projects : undefined
  })

  /** Finds the model's window. A server's models are not known here. */
  const measure = () => {
    if (remote !== undefined) return
    act(
      Effect.ignore(
        Effect.gen(function* () {
          const stored = state.view.model ?? state.session?.model
          const ref = stored ?? (state.session === undefined ? yield* modelOfNext : undefined)
          const { info } = yield* resolver.resolve(ref)
          state.window = info.contextTokens
          if (state.view.model === undefined) state.view = { ...state.view, model: info.ref }
        })
      )
    )
  }

  /** Says before the first prompt that the model cannot be used, or that there is none. A server's models are not known here. */
  const announce = () => {
    if (remote !== undefined) return
    act(
      Effect.gen(function* () {
        const ref = yield* modelOfNext
        const { info } = yield* resolver.resolve(ref)
        const isChosen = ref !== undefined || (yield* isDefaultChosen)
        if (info.ref.providerID === "offline" && !isChosen) note(`${noModel}; then start daybook again`)
      })
    )
  }

  // ---- questions of models

  const keyOf = (ref: { readonly sessionID: string; readonly callID: string }) => `${ref.sessionID} ${ref.callID}`

  const askQuestions = (sessionID: SessionID) =>
    act(
      Effect.map(sessions.questions(sessionID), (open) => {
        const keys = new Set(open.map(keyOf))
        for (const key of state.questions.keys()) {
          if (key.startsWith(`${sessionID} `) && !keys.has(key)) state.questions.delete(key)
        }
        for (const pending of open) {
          if (!state.questions.has(keyOf(pending))) state.questions.set(keyOf(pending), { pending, answers: [] })
        }
      })
    )

  const answer = (questions: Questions, next: Questions | ReadonlyArray<string>) => {
    const { pending } = questions
    if ("pending" in next) return void state.questions.set(keyOf(pending), next)
    state.questions.delete(keyOf(pending))
    act(sessions.answer({ ...pending, answers: next }))
  }

  const dismiss = ({ pending }: Questions) => {
    state.questions.delete(keyOf(pending))
    act(sessions.dismissQuestion(pending))
  }

  // ---- following

  /** Names the message after which the history goes on. New lines are written below the messages that were left. */
  const tellPlace = (sessionID: SessionID, leafID: MessageID | undefined) =>
    act(Effect.map(placeOf(sessionID, leafID), (place) => note(`the session goes on ${place}`)))

  const onEvent = (event: SessionEvent | LiveEvent) => {
    const before = state.view
    const [view, blocks] = View.step(before, event)
    state.view = view
    if (before.activity !== undefined && view.activity === undefined) options.settled()
    blocks.forEach((block) => (block.type === "moved" ? tellPlace(event.sessionID, block.messageID) : keep(block)))
    if (view.activity === undefined) state.stopping = false
    if (before.model !== view.model) measure()
    if (spends.has(event.type)) refresh(event.sessionID)
    if (questionChange(event) !== undefined) askQuestions(event.sessionID)
    changed()
  }

  const onPast =
    (session: Session) =>
    ({ events, isCut, waiting }: Past) => {
      if (isCut) note(`earlier messages: daybook show ${session.id}`)
      state.view = { ...View.empty, model: session.model, agent: session.agent, title: session.title }
      for (const event of events) {
        const [view, blocks] = View.step(state.view, event)
        state.view = view
        blocks.forEach(keep)
      }
      const isRunning = session.activity?.state === "running"
      state.view = {
        ...state.view,
        waiting: new Map(waiting.map(({ delivery, id, prompt }) => [id, { text: prompt.text, delivery }])),
        ...(isRunning ? {} : { activity: undefined, running: new Map(), texts: new Map() })
      }
      measure()
      askQuestions(session.id)
      changed()
    }

  /** Applies the model and the agent that were named for a session that exists. */
  const switched = Effect.fnUntraced(function* (session: Session, { agent, model }: Preferred) {
    if (model !== undefined) yield* sessions.switchModel(session.id, model)
    if (agent !== undefined && agent !== session.agent) yield* sessions.switchAgent(session.id, agent)
  })

  const followed = (session: Session, preferred: Preferred, shown: () => void) =>
    Effect.gen(function* () {
      // A server settles its own sessions.
      if (remote === undefined) yield* Effect.ignore(sessions.settle(session.id))
      yield* switched(session, preferred)
      const now = yield* sessions.get(session.id)
      state.session = now
      const past = (before: Past) => {
        onPast(now)(before)
        shown()
      }
      yield* follow(session.id, { past, event: onEvent })
    })

  /** Shows a session, or the beginning of a new one. `shown` is called once its end is written. */
  const show = (
    session: Session | undefined,
    preferred: Preferred = {},
    shown: () => void = () => undefined
  ): Effect.Effect<void> =>
    Effect.gen(function* () {
      if (following !== undefined) yield* Fiber.interruptFork(following)
      Object.assign(state, { session, offered: undefined, view: View.empty, stopping: false })
      state.questions.clear()
      if (session === undefined) {
        note("a new session begins with your next prompt")
        return measure()
      }
      state.preferred = {}
      options.begins(session)
      following = act(followed(session, preferred, shown))
    })

  // ---- what a person does

  const create = Effect.fnUntraced(function* (text: string) {
    const { agent } = state.preferred
    const model = yield* modelOfNext
    const title = titleOfPrompt(text)
    const session = yield* sessions.create({ location: { directory }, agent, model, title, provisional: true })
    yield* show(session)
    return session
  })

  const prompt = (text: string, delivery: View.WaitingPrompt["delivery"], chips: ReadonlySet<string>) =>
    act(
      Effect.gen(function* () {
        const files = yield* Pictures.attached(text, chips)
        const session = state.session ?? (yield* create(text))
        const id = yield* identifiers.message
        yield* sessions.prompt({
          id,
          sessionID: session.id,
          prompt: { text, ...(files.length === 0 ? {} : { files }) },
          delivery
        })
        yield* Breadcrumb.leave({ directory: session.location.directory, sessionID: session.id })
      }).pipe(Effect.tapErrorCause(() => Effect.sync(() => options.refused(text))))
    )

  /** Runs a command of the person. The model sees it, unless it is private. */
  const shell = (command: string, isPrivate: boolean) => {
    const run = Effect.gen(function* () {
      // The folder of a server's session is on another machine.
      const folder = remote === undefined ? state.session?.location.directory : undefined
      const output = yield* HostCommand.run(command, folder ?? directory)
      if (isPrivate || remote !== undefined) keep({ type: "shell", command, output })
      if (isPrivate) return
      if (remote !== undefined) return note("the model of a server is not shown what runs on this machine")
      const session = state.session ?? (yield* create(command))
      const messageID = yield* identifiers.message
      const callID = `call_${messageID.slice(4)}`
      yield* log.append(session.id, [
        draft("session.next.shell.started", { messageID, callID, command }),
        draft("session.next.shell.ended", { callID, output })
      ])
    })
    const running = { line: command, fiber: undefined as Fiber.RuntimeFiber<void> | undefined }
    state.command = running
    const ended = Effect.sync(() => {
      if (state.command === running) state.command = undefined
    })
    const stopped = Effect.sync(() => note(`stopped: ${oneLine(command, 200)}`))
    running.fiber = act(
      Effect.ensuring(
        Effect.onInterrupt(run, () => stopped),
        ended
      )
    )
  }

  /** Enter without a text: goes on with the offered session, or runs what waits. */
  const goOn = () => {
    const { offered, session, view } = state
    if (session === undefined && offered !== undefined) return void act(show(offered))
    if (session !== undefined && view.activity === undefined && view.waiting.size > 0) act(sessions.resume(session.id))
  }

  /** Stops the person's command, else the activity; a second time the whole run. Returns whether there was something to stop. */
  const stop = (now: number): boolean => {
    const { command, session, view } = state
    if (command?.fiber !== undefined) {
      act(Fiber.interrupt(command.fiber))
      return true
    }
    if (session === undefined || (view.activity === undefined && !state.stopping)) return false
    const isSecond = state.stopping || now - escaped < twice
    escaped = now
    state.stopping = true
    const only = isSecond || view.activity === undefined ? undefined : { activityID: view.activity.id }
    act(sessions.interrupt(session.id, only))
    return true
  }

  /** Takes the last waiting prompt back. */
  const takeBack = (use: (text: string) => void) => {
    const last = [...state.view.waiting].at(-1)
    const { session } = state
    if (last === undefined || session === undefined) return
    const [id, { text }] = last
    act(Effect.map(sessions.withdraw(session.id, id), () => use(text)))
  }

  /** Stops what runs in this process; what another process runs goes on. */
  const leave = Effect.gen(function* () {
    const { session, view } = state
    if (session === undefined || remote !== undefined) return
    if (!(yield* sessions.active).includes(session.id)) return
    state.stopping = view.activity !== undefined
    changed()
    yield* Effect.ignore(sessions.interrupt(session.id))
  })

  /** Asks the questions of the sessions that run in this process, such as those of tasks. */
  const listen =
    remote !== undefined
      ? Effect.void
      : log.listen((events) =>
          Effect.sync(() => {
            for (const event of events) {
              if (event.sessionID !== state.session?.id && questionChange(event) !== undefined) {
                askQuestions(event.sessionID)
              }
            }
          })
        )

  const prefer = (next: Preferred) => {
    state.preferred = { ...state.preferred, ...next }
    state.view = { ...state.view, ...next }
    measure()
  }

  return {
    state,
    act,
    announce,
    answer,
    dismiss,
    directory: () => state.session?.location.directory ?? directory,
    goOn,
    leave,
    listen,
    measure,
    note,
    prefer,
    prompt,
    shell,
    show,
    stop,
    takeBack,
    title: () => oneLine(state.view.title ?? state.session?.title ?? state.session?.id ?? "", 60)
  }
})
