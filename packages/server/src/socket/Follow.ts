/**
 * Follows a session for one client: its events, deltas and asks become frames until the last frame. A slow client delays only
 * its own follower: deltas are joined up to a bound, and above it the durable texts replace them.
 * Spec: SO-20..SO-28, SO-95..SO-98 in specs/socket.md (FR-6, FR-7, FR-9, FL-5, IX-6).
 *
 *   events and deltas ─┐
 *   asks ──────────────┼─> small queue ─> frames ─> write
 *   stuck ─────────────┘
 */
import { Effect, Option, Queue, Stream } from "effect"
import type { PendingQuestion } from "@daybook/core/domain/Question"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Session } from "@daybook/log/domain/Message"
import type { LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"
import type { Followed } from "@daybook/log/log/EventLog"
import { present } from "@daybook/log/support/Optional"
import { clip } from "@daybook/transcript/Fold"
import { questionChange } from "@daybook/transcript/QuestionEvents"
import * as RunStream from "@daybook/transcript/RunStream"
import { agentDirectory, type EventRow } from "@daybook/transcript/row/Rows"
import { type Asks, type OpenAsk, questionAsk, timeLeft } from "../shared/Asks.ts"
import { type Backend, Refused, refusedBy } from "./Backend.ts"
import type { ConnectionClosed } from "./Listener.ts"
import { deltaTexts, encodeFrame, type Frame, type RunFrame } from "./Wire.ts"

// Converts the rows and texts of a run into frames, for one run or all.

/** An output: a piece of a run's text or reasoning, or a frame and the position of its event. */
export type Told = RunStream.TextItem | { readonly type: "frame"; readonly frame: Frame; readonly position: number }

/** Takes one event and returns the frames: those of the followed run, or all rows as in the file. */
export const step = (
  state: RunStream.State,
  event: SessionEvent | LiveEvent
): readonly [RunStream.State, ReadonlyArray<Told>] => {
  const [next, items] = RunStream.step(state, event)
  return [next, items.flatMap((item) => toldOf(state.followed, item))]
}

const toldOf = (followed: RunStream.Followed | undefined, item: RunStream.Item): ReadonlyArray<Told> => {
  if (item.type !== "row") return [item]
  const { event, row } = item
  const frame = followed === undefined ? row : frameOf(row, followed, event)
  return frame === undefined ? [] : [{ type: "frame", frame, position: event.position }]
}

/** Code units of a tool result in a frame, at most. */
const longestResult = 65_536

/** The content that the model was shown, as far as a frame holds it; files by name. */
const resultOf = (event: SessionEvent) => {
  if (event.type !== "session.next.tool.success") return { content: [] }
  const { content, result, structured } = event.data
  const shown = content.map((part) => (part.type === "text" ? part.text : `[${part.mime} ${part.name ?? ""}]`))
  const whole = shown.length > 0 ? shown.join("\n") : JSON.stringify(result ?? structured)
  const text = clip(whole, longestResult)
  return {
    content: [{ type: "text" as const, text }],
    ...(text.length === whole.length ? {} : { truncated: true as const, length: whole.length })
  }
}

/** A row of the followed run as a frame; undefined for rows that only `resume` shows. */
const frameOf = (row: EventRow, { id, run }: RunStream.Followed, event: SessionEvent): Frame | undefined => {
  const ofRun = { ...(id === undefined ? {} : { id }), run, event: row.id }
  switch (row.type) {
    case "start":
      return { type: row.type, ...ofRun, ...(row.model === undefined ? {} : { model: row.model }) }
    case "message": {
      const { content, length, problem, role, truncated, type } = row
      return {
        type,
        ...ofRun,
        role,
        content: content.map(({ text }) => ({ type: "text", text })),
        ...present({ truncated, length, problem })
      }
    }
    case "tool_call": {
      const { input, name, tool_call_id, type } = row
      return { type, ...ofRun, tool_call_id, name, input }
    }
    case "tool_result": {
      const { name, tool_call_id, type } = row
      return { type, ...ofRun, tool_call_id, name, ...resultOf(event) }
    }
    case "error": {
      const { code, message, recoverable, tool, tool_call_id, type } = row
      return {
        type,
        ...ofRun,
        ...present({ tool, tool_call_id }),
        code,
        message,
        ...(recoverable === undefined ? {} : { recoverable })
      }
    }
    case "done":
      return { type: row.type, ...ofRun, status: row.status }
    case "state":
      return undefined
    default:
      return row satisfies never
  }
}

// Shows a session's asks to one client as frames: permissions of tools, and questions of the model.

export interface AskOptions {
  readonly asks: Asks
  /** Whether the client can answer permissions now. */
  readonly canAnswer: () => boolean
}

type AskFrame = Extract<RunFrame, { readonly type: "ask" }>

const permissionFrame = (
  of: object,
  { ask, request }: OpenAsk,
  session: Session | undefined,
  { timeLeftMs }: Effect.Effect.Success<ReturnType<typeof timeLeft>>
): AskFrame => ({
  type: "ask",
  ...of,
  ask,
  kind: "permission",
  tool_call_id: request.callID,
  permission: request.permission,
  resources: request.resources,
  title: request.title,
  always: request.always,
  agent: request.agent,
  session_id: request.sessionID,
  ...(request.sessionTitle === undefined ? {} : { session_title: request.sessionTitle }),
  ...(session === undefined ? {} : { cwd: agentDirectory(session.root, request.location.directory) }),
  tool: request.tool,
  subject: request.subject,
  notes: request.notes,
  ...(timeLeftMs === undefined ? {} : { time_left_ms: timeLeftMs })
})

const questionFrame = (of: object, question: PendingQuestion): AskFrame => ({
  type: "ask",
  ...of,
  ask: questionAsk(question),
  kind: "question",
  tool_call_id: question.callID,
  questions: question.questions
})

/** `changed` runs when there may be frames to take. */
const makeAskFrames = Effect.fnUntraced(function* (
  { sessions, store }: Backend,
  sessionID: SessionID,
  { asks, canAnswer }: AskOptions,
  changed: () => void
) {
  /** Asks that were shown to the client and not closed since. */
  const told = new Map<string, AskFrame["kind"]>()
  let [due, questionsDue] = [true, true]
  let questions: ReadonlyArray<PendingQuestion> = []
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      asks.follow(sessionID, {
        canAnswer,
        changed: () => {
          due = true
          changed()
        }
      })
    ),
    (leave) => Effect.sync(leave)
  )

  /** Takes an event that may open or close a question. */
  const see = (event: SessionEvent | LiveEvent): void => {
    const change = questionChange(event)
    if (change === undefined) return
    if (change.type === "answered" || change.type === "dismissed")
      asks.remember(questionAsk({ sessionID, ...change }), change.type === "answered" ? "answered" : "dismiss")
    // A call that ends closes its question, if it was shown.
    if (change.type !== "ended" || told.size > 0) due = questionsDue = true
  }

  /** The frames since the last call, for this run. */
  const take = Effect.fnUntraced(function* ({ id, run }: RunStream.Followed) {
    if (!due) return []
    due = false
    if (questionsDue) {
      questionsDue = false
      // A removed session has no questions.
      questions = yield* Effect.orElseSucceed(sessions.questions(sessionID), () => [])
    }
    const of = { ...(id === undefined ? {} : { id }), run }
    const permissions = asks.open(sessionID)
    const session =
      permissions.length === 0 ? undefined : Option.getOrUndefined(yield* Effect.option(store.get(sessionID)))
    const open = [
      ...(yield* Effect.forEach(permissions, (each) =>
        Effect.map(timeLeft(each), (left) => permissionFrame(of, each, session, left))
      )),
      ...questions.map((each) => questionFrame(of, each))
    ]
    const frames: Array<RunFrame> = []
    for (const ask of told.keys()) {
      if (open.some((each) => each.ask === ask)) continue
      told.delete(ask)
      frames.push({ type: "answered", ...of, ask, decision: asks.decisionOf(ask) ?? "closed" })
    }
    for (const frame of open) {
      if (frame.kind === "permission" && canAnswer()) asks.shown(frame.ask)
      if (told.has(frame.ask)) continue
      told.set(frame.ask, frame.kind)
      frames.push(frame)
    }
    return frames
  })

  return { see, take }
})

/** Items queued between the log and the client. */
const ahead = 16

/** Code units per write. */
const writeLength = 256 * 1024

export type Write = (text: string) => Effect.Effect<void, ConnectionClosed>

export interface FollowOptions {
  readonly backend: Backend
  readonly sessionID: SessionID
  /** The cursor from which the session is followed. */
  readonly after: number
  readonly state: RunStream.State
  readonly write: Write
  /** Which frames are written; all by default. */
  readonly shows?: (frame: Frame) => boolean
  readonly isLast: (frame: Frame) => boolean
  /** How asks of the session are shown; by default none are. */
  readonly asking?: AskOptions
  /** Runs when the first run begins that the client is shown. */
  readonly onStart?: () => void
  /** Completes with the reason if the run cannot begin. */
  readonly stuck: Effect.Effect<Refused>
}

type Item = Followed | { readonly type: "asks" } | { readonly type: "failed" | "stuck"; readonly refused: Refused }

/** Writes the frames; ends after the last one, or fails with the reason if the session can no longer be followed. */
export const follow = Effect.fn("Follow.follow")(function* (options: FollowOptions) {
  const { after, backend, sessionID } = options
  const queue = yield* Queue.bounded<Item>(ahead)
  let { state } = options
  yield* Stream.runForEach(backend.log.follow({ sessionID, after }), (item) => Queue.offer(queue, item)).pipe(
    Effect.catchAll((error) => Queue.offer(queue, { type: "failed" as const, refused: refusedBy(error) })),
    Effect.forkScoped
  )
  yield* options.stuck.pipe(
    Effect.flatMap((refused) => Queue.offer(queue, { type: "stuck" as const, refused })),
    Effect.forkScoped
  )

  const asks =
    options.asking === undefined
      ? undefined
      : // If the queue is full, its items wake this follower as well.
        yield* makeAskFrames(backend, sessionID, options.asking, () => void Queue.unsafeOffer(queue, { type: "asks" }))
  const out = writer(options)
  /** Writes new asks while a run is shown. */
  const tellAsks = Effect.suspend(() =>
    asks === undefined || state.current === undefined
      ? Effect.void
      : Effect.flatMap(asks.take(state.current), (frames) =>
          Effect.forEach(frames, (frame) => out.tell({ type: "frame", frame, position: 0 }), { discard: true })
        )
  )
  let telling = false
  yield* Effect.zipRight(tellAsks, out.flush)
  for (;;) {
    for (const item of yield* Queue.takeBetween(queue, 1, ahead)) {
      if ("refused" in item) {
        // A stuck prompt behind the current run does not concern it.
        if (item.type === "stuck" && state.current !== undefined) continue
        yield* out.flush
        return yield* item.refused
      }
      if (item.type === "asks" || item.type === "replay.complete") continue
      const [next, told] = step(state, item)
      asks?.see(item)
      // Asks close before the end of their run.
      if (next.current === undefined) yield* tellAsks
      state = next
      if (!telling && state.current !== undefined) {
        telling = true
        options.onStart?.()
      }
      for (const what of told) {
        yield* out.tell(what)
        if (what.type === "frame" && options.isLast(what.frame)) return yield* out.flush
      }
    }
    yield* tellAsks
    yield* out.flush
  }
}, Effect.scoped)

/** Writes frames in few, bounded writes. The end of a run is written once the files reflect it. */
export const writer = ({
  backend,
  shows = () => true,
  write
}: Pick<FollowOptions, "backend" | "shows" | "write">): {
  readonly tell: (told: Told) => Effect.Effect<void, ConnectionClosed>
  readonly flush: Effect.Effect<void, ConnectionClosed>
} => {
  let lines = ""
  /** Pending text or reasoning of one run, joined into few deltas. */
  let text = ""
  let kind: "text" | "reasoning" = "text"
  let of: RunStream.Followed | undefined

  const write1 = Effect.suspend(() => {
    const ready = lines
    lines = ""
    return ready === "" ? Effect.void : write(ready)
  })
  const add = (frame: Frame) =>
    Effect.suspend(() => {
      if (!shows(frame)) return Effect.void
      lines += encodeFrame(frame)
      return lines.length < writeLength ? Effect.void : write1
    })
  const flushText = Effect.suspend(() => {
    const said = text
    const told = of
    text = ""
    if (said === "" || told === undefined) return Effect.void
    const id = told.id === undefined ? {} : { id: told.id }
    return Effect.forEach(
      deltaTexts(said),
      (piece) => add({ type: kind === "text" ? "delta" : "reasoning_delta", ...id, run: told.run, text: piece }),
      {
        discard: true
      }
    )
  })
  const flush = Effect.zipRight(flushText, write1)

  const tell = (told: Told): Effect.Effect<void, ConnectionClosed> => {
    if (told.type === "frame") {
      // The client reads the earlier frames while the files catch up.
      const current = told.frame.type === "done" ? Effect.zipRight(flush, backend.reached(told.position)) : flushText
      return Effect.zipRight(current, add(told.frame))
    }
    return Effect.suspend(() => {
      const before = of?.run === told.of.run && kind === told.type ? Effect.void : flushText
      return Effect.flatMap(before, () =>
        Effect.suspend(() => {
          of = told.of
          kind = told.type
          text += told.text
          return text.length < writeLength ? Effect.void : flushText
        })
      )
    })
  }

  return { tell, flush }
}
